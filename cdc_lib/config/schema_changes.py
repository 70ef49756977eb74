"""``schema_changes:`` what lake tables do when the source changes a table's definition, or removes all of its rows."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field

from cdc_lib.config.base import Section
from cdc_lib.config.rules import TablePattern, TableRule
from cdc_lib.model.schema_policy import Behaviour, FollowOrStop, SchemaPolicy

_ALLOWED = "follow, keep or stop"
_NO_KEEP = "follow or stop"
_DROP_TABLE = "follow, keep or stop; null: mirror tables keep their rows, other modes record that they are removed"


def _refuse_keep_wider(value: object) -> object:
    if value == "keep":
        raise ValueError("keep is not possible: the lake's column cannot hold the wider values; use follow or stop")
    return value


def _refuse_keep_name(value: object) -> object:
    if value == "keep":
        raise ValueError(
            "keep is not possible: rows would continue in a column of the new name, and older rows would lack their values "
            "there; use follow or stop"
        )
    return value


Widen = Annotated[FollowOrStop, BeforeValidator(_refuse_keep_wider)]
Rename = Annotated[FollowOrStop, BeforeValidator(_refuse_keep_name)]


class SchemaChangesTable(TableRule):
    """Other behaviours for some tables; unset keys are as for all tables."""

    tables: TablePattern = Field(description='a pattern of tables, for example "shop.orders"')
    add_column: Behaviour | None = Field(default=None, description=_ALLOWED)
    drop_column: Behaviour | None = Field(default=None, description=_ALLOWED)
    widen: Widen | None = Field(default=None, description=_NO_KEEP)
    rename: Rename | None = Field(default=None, description=_NO_KEEP)
    drop_table: Behaviour | None = Field(default=None, description=_DROP_TABLE)
    truncate: Behaviour | None = Field(default=None, description=_ALLOWED)


class SchemaChangesConfig(Section):
    """For each kind of change whether the lake follows it, keeps what it has, or stops the table until the file is changed.

    Args:
        add_column: ``follow``: the lake table gets the column; ``keep``: the column is ignored.
        drop_column: ``follow``: the lake's column is dropped; ``keep``: it stays, and is null in rows that are written later.
        widen: ``follow``: the lake's column gets a wider type where a new type at the source needs it.
        rename: ``follow``: the lake's column gets the new name.
        drop_table: ``follow``: all rows are removed; ``keep``: they stay until a table of the same name is created.
        truncate: ``follow``: all rows are removed; ``keep``: they stay.
        tables: exceptions; the first one that covers a table wins.
    """

    add_column: Behaviour = Field(default="follow", description=_ALLOWED)
    drop_column: Behaviour = Field(default="keep", description=_ALLOWED)
    widen: Widen = Field(default="follow", description=_NO_KEEP)
    rename: Rename = Field(default="follow", description=_NO_KEEP)
    drop_table: Behaviour | None = Field(default=None, description=_DROP_TABLE)
    truncate: Behaviour = Field(default="follow", description=_ALLOWED)
    tables: tuple[SchemaChangesTable, ...] = Field(
        default=(), description="list of tables, add_column, drop_column, widen, rename, drop_table, truncate"
    )

    def policy(self, database: str, table: str) -> SchemaPolicy:
        """Return the behaviours of a table."""
        one = next((one for one in self.tables if one.covers(database, table)), None)
        if one is None:
            return SchemaPolicy(
                self.add_column, self.drop_column, self.widen, self.rename, self.drop_table, self.truncate
            )
        # null is a value of drop_table
        drop_table = one.drop_table if "drop_table" in one.model_fields_set else self.drop_table
        return SchemaPolicy(
            one.add_column or self.add_column,
            one.drop_column or self.drop_column,
            one.widen or self.widen,
            one.rename or self.rename,
            drop_table,
            one.truncate or self.truncate,
        )
