"""Masks of finished columns: hidden values are in no file, no manifest and no message.

A hash is HMAC-SHA256 (RFC 2104) of the value's text under the key of the source file, as hex digits: a value has one hash
regardless of its column's type. So the text of a number has no trailing zeros after its point and no sign on zero, a time
has no trailing zeros in its fraction, and bytes are unchanged. Python handles each distinct value of a row group once, never
each row.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cdc_lib.errors import ConfigError
from cdc_lib.model.mask import Mask
from cdc_lib.model.projection import Projection, whole
from cdc_lib.model.schema import SourceType, TableSchema

SHORTEST_KEY = 16
"""Bytes that the key of the hashes must have."""


class Masker:
    """Applies masks.

    Args:
        key: of the hashes; may be empty where none is asked for.
    """

    def __init__(self, key: bytes = b"") -> None:
        """Keep the key."""
        self._key = key

    def __repr__(self) -> str:
        """Without the key."""
        return "Masker(***)"

    def check(self, projection: Projection) -> None:
        """Check that the masks of a table can be applied.

        Raises:
            ConfigError: a hash has no key, or one that could be guessed.
        """
        if len(self._key) < SHORTEST_KEY and any(mask and mask.kind == "hash" for mask in projection.masks):
            raise ConfigError(
                f"the key of the hashes has {len(self._key)} bytes: fewer than {SHORTEST_KEY} can be guessed",
                hint="Put a long random text into the variable of mask_key_env or the password of mask_key_connection.",
                table=projection.schema.name,
            )

    def apply(self, column: pa.Array, mask: Mask | None, source_type: SourceType) -> pa.Array:
        """Return a column with its mask applied; null stays null.

        Args:
            column: values as the codec of ``source_type`` gives them.
            mask: None leaves them as they are.
            source_type: the column's type at the source.
        """
        if mask is None:
            return column
        if mask.kind == "redact":
            if mask.text is None:
                return pa.nulls(len(column), column.type)
            return pc.if_else(pc.is_null(column), pa.scalar(None, pa.string()), mask.text)
        if mask.kind == "hash":
            return _each_value(column, lambda values: [self._hash(text) for text in _canonical(values, source_type)])
        if not pa.types.is_string(column.type):
            return _each_value(column, lambda values: _shortened(pa.array(_shown(values, source_type)), mask))
        return _shortened(column, mask)

    def apply_all(self, columns: list[pa.Array], projection: Projection) -> list[pa.Array]:
        """Return all columns of a projection with their masks applied."""
        kinds = (column.type for column in projection.source.columns)
        return [
            self.apply(column, mask, kind) for column, mask, kind in zip(columns, projection.masks, kinds, strict=True)
        ]

    def _hash(self, text: bytes) -> str:
        return hmac.digest(self._key, text, "sha256").hex()


@dataclass(frozen=True, slots=True)
class Shape:
    """What becomes of the rows of every table.

    Args:
        project: the projection of a table with these columns.
        masker: applies its masks.
        masks: whether any table has masks, so that no statement is shown with its values.
    """

    project: Callable[[TableSchema], Projection] = whole
    masker: Masker = Masker()  # noqa: RUF009 - it never changes
    masks: bool = False

    def of(self, schema: TableSchema) -> Projection:
        """Return the projection of a table.

        Raises:
            ConfigError: the rules of the source file cannot be followed on it.
        """
        projection = self.project(schema)
        self.masker.check(projection)
        return projection


def _each_value(column: pa.Array, masked: Callable[[pa.Array], Any]) -> pa.Array:
    """Mask each distinct value once, and replace the value wherever it occurs."""
    coded = column.dictionary_encode()
    values = masked(coded.dictionary)
    return (values if isinstance(values, pa.Array) else pa.array(values, pa.string())).take(coded.indices)


def _shortened(texts: pa.Array, mask: Mask) -> pa.Array:
    """Keep the first characters, or stars and the last ones; what is too short to hide a character is all stars."""
    texts = texts.cast(pa.string())
    if mask.kind == "truncate":
        return pc.utf8_slice_codeunits(texts, 0, mask.characters)
    length = pc.utf8_length(texts)
    short = pc.less_equal(length, mask.characters)
    stars = pc.binary_repeat(pa.array(["*"]).take(pa.array([0] * len(texts), pa.int8())), _hidden(length, short, mask))
    ends = pc.if_else(short, "", pc.utf8_slice_codeunits(texts, -mask.characters))
    return pc.binary_join_element_wise(stars, ends, "")


def _hidden(length: pa.Array, short: pa.Array, mask: Mask) -> pa.Array:
    return pc.if_else(short, length, pc.subtract(length, mask.characters))


def _shown(values: pa.Array, source_type: SourceType) -> list[str]:
    """Return each value's text: exact numbers and times as the server shows them, bytes as hex digits."""
    if pa.types.is_binary(values.type):
        return [value.hex() for value in values.to_pylist()]
    if pa.types.is_decimal(values.type):
        return [format(value, "f") for value in values.to_pylist()]
    if pa.types.is_timestamp(values.type):
        texts = pc.strftime(values.cast(pa.timestamp("us")), format="%Y-%m-%d %H:%M:%S").to_pylist()
        cut = 6 - source_type.scale if source_type.scale else 7
        return [text[: len(text) - cut] for text in texts]
    return [str(text) for text in values.cast(pa.string()).to_pylist()]


def _canonical(values: pa.Array, source_type: SourceType) -> list[bytes]:
    """Return the bytes to hash for each value: equal for equal values of any column type."""
    if pa.types.is_binary(values.type):
        return list(values.to_pylist())
    texts = _shown(values, source_type)
    if pa.types.is_floating(values.type):
        texts = [format(Decimal(text), "f") for text in texts]
    if source_type.family.has_point:
        texts = [text.rstrip("0").rstrip(".") if "." in text else text for text in texts]
        texts = ["0" if text == "-0" else text for text in texts]
    return [text.encode() for text in texts]
