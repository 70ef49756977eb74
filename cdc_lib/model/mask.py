"""The mask of a column; ``cdc_lib/binlog/rows/masking.py`` applies it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cdc_lib.model.schema import SourceType

MaskKind = Literal["hash", "redact", "truncate", "keep_last"]


@dataclass(frozen=True, slots=True)
class Mask:
    """One column's mask.

    Args:
        kind: ``hash``: a keyed digest as hex text; ``redact``: a fixed text or null; ``truncate``: the first characters;
            ``keep_last``: the last characters, a star for each of the others.
        characters: truncate and keep_last: how many characters are kept.
        text: redact: the replacement of every value; None for null.
    """

    kind: MaskKind
    characters: int = 0
    text: str | None = None

    def masked_type(self, source_type: SourceType) -> SourceType:
        """Return the type of the masked column: text; with a null replacement the type of the column."""
        if self.kind == "redact" and self.text is None:
            return source_type
        return SourceType("string", charset="utf8mb4", text=f"masked: {self.kind}")

    def __str__(self) -> str:
        """For people: ``truncate 3``."""
        return f"{self.kind} {self.characters}" if self.characters else self.kind
