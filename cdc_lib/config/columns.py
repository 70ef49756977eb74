"""``columns:`` and ``masks:`` what of a table's rows is stored, and how."""

from __future__ import annotations

from typing import Self

from pydantic import Field, field_validator, model_validator

from cdc_lib.config.patterns import is_exact, matches_column
from cdc_lib.config.rules import ColumnChoice, TablePattern, TableRule, checked_columns
from cdc_lib.model.mask import Mask, MaskKind


class ColumnsRule(ColumnChoice, TableRule):
    """Which columns of some tables are taken; the others are neither read nor selected nor stored."""

    tables: TablePattern = Field(description='a pattern of tables, for example "shop.customers"')


class MaskRule(TableRule):
    """How columns of some tables are masked before anything of them is stored."""

    tables: TablePattern = Field(description='a pattern of tables, for example "shop.customers"')
    columns: tuple[str, ...] = Field(min_length=1, description='list of columns, for example ["email", "phone*"]')
    mask: MaskKind = Field(description="hash, redact, truncate or keep_last")
    text: str | None = Field(default=None, description="redact: what is for every value; null without it")
    characters: int | None = Field(default=None, ge=1, le=1000, description="truncate and keep_last: 1 to 1000")

    _columns = field_validator("columns")(checked_columns)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        needs_characters = self.mask in ("truncate", "keep_last")
        if needs_characters != (self.characters is not None):
            said = "needs characters: 1 to 1000" if needs_characters else "takes no characters"
            raise ValueError(f"the mask {self.mask} {said}")
        if self.mask != "redact" and self.text is not None:
            raise ValueError(f"the mask {self.mask} takes no text; redact does")
        return self

    @property
    def value(self) -> Mask:
        """The mask itself."""
        return Mask(self.mask, self.characters or 0, self.text)

    def masks(self, column: str) -> bool:
        """Whether the rule is for a column of such a table."""
        return any(matches_column(pattern, column) for pattern in self.columns)

    @property
    def required(self) -> tuple[str, ...]:
        """Columns that must be there: both the table and they are named exactly."""
        return tuple(filter(is_exact, self.columns)) if is_exact(self.tables) else ()
