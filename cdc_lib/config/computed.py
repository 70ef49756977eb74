"""``computed:`` columns of lake tables that the merge computes from the other columns of the row."""

from __future__ import annotations

from pydantic import Field, field_validator

from cdc_lib.config.rules import TableRule


class ComputedRule(TableRule):
    """Computed columns of some tables. Several rules may cover a table; the first one that has a column wins.

    Args:
        columns: names of lake columns, each with an expression in Spark SQL over columns of the same row.
    """

    columns: dict[str, str] = Field(
        min_length=1, description='Spark SQL by column, for example {total: "amount * quantity"}'
    )

    @field_validator("columns")
    @classmethod
    def _named(cls, columns: dict[str, str]) -> dict[str, str]:
        if wrong := [name for name in columns if not name.strip() or name.startswith("_")]:
            raise ValueError(
                f"{wrong[0]!r} is not a name of a computed column: names that begin with _ are the lake's own"
            )
        lower = [name.lower() for name in columns]
        if twice := [name for name in lower if lower.count(name) > 1]:
            raise ValueError(f"{twice[0]} is there twice")
        return columns
