"""``columns:`` and ``masks:`` which columns are stored, and how they are masked."""

from __future__ import annotations

from typing import Self

from pydantic import Field, field_validator, model_validator

from cdc_lib.config.patterns import is_exact, matches_column
from cdc_lib.config.rules import ColumnChoice, TablePattern, TableRule, checked_columns
from cdc_lib.model.mask import Mask, MaskKind


class ColumnsRule(ColumnChoice, TableRule):
    """Columns that are captured of some tables; other columns are neither decoded nor selected nor stored."""

    tables: TablePattern = Field(description='a pattern of tables, for example "shop.customers"')


class MaskRule(TableRule):
    """Masks of columns, applied before rows are stored."""

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
            rule = "needs characters: 1 to 1000" if needs_characters else "takes no characters"
            raise ValueError(f"the mask {self.mask} {rule}")
        if self.mask != "redact" and self.text is not None:
            raise ValueError(f"the mask {self.mask} takes no text; redact does")
        return self

    @property
    def value(self) -> Mask:
        """The mask."""
        return Mask(self.mask, self.characters or 0, self.text)

    def masks(self, column: str) -> bool:
        """Whether the rule applies to a column of a covered table."""
        return any(matches_column(pattern, column) for pattern in self.columns)

    @property
    def required(self) -> tuple[str, ...]:
        """Columns that must exist: table and column are named exactly, without wildcards."""
        return tuple(filter(is_exact, self.columns)) if is_exact(self.tables) else ()
