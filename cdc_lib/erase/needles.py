"""What a search looks for: keys of rows and values of theirs, in each form in which the store and the lake have them. Pure."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cdc_lib.model.table_name import TableName

SHORTEST = 4
"""Characters: shorter texts are everywhere. They are found as values of their own column only."""

_PREFIX = 48
"""Bytes of a value that are looked for among bytes: bounds in page indexes hold the beginnings of long values."""

_BOUND = 16
"""Characters of a text that Iceberg's bounds hold."""

_CHARSETS = ("utf-8", "latin-1", "utf-16-le", "utf-16-be")
"""A raw archive has the bytes of the source's columns."""


@dataclass(frozen=True)
class Needles:
    """Keys of rows, and values of columns that belong to these rows alone.

    Args:
        names: columns of the key, as the lake table has them; empty for a table without a key.
        keys: the keys, as values of the lake's types.
        values: other values of the rows, by column.
    """

    names: tuple[str, ...]
    keys: tuple[tuple[Any, ...], ...]
    values: Mapping[str, frozenset[Any]] = field(default_factory=dict)

    @cached_property
    def by_column(self) -> dict[str, frozenset[Any]]:
        """Values by which a single cell or bound shows one of the rows; of the parts of a key none does."""
        single = {self.names[0]: frozenset(key[0] for key in self.keys)} if len(self.names) == 1 else {}
        return {
            name: single.get(name, frozenset()) | self.values.get(name, frozenset()) for name in {*single, *self.values}
        }

    @cached_property
    def _single(self) -> list[Any]:
        return [value for values in self.by_column.values() for value in values]

    @cached_property
    def _text(self) -> re.Pattern[str] | None:
        texts = {value for value in self._single if isinstance(value, str)}
        written = texts | {form for value in self._single if isinstance(value, str | bytes) for form in _hex(value)}
        long = [re.escape(text) for text in written if len(text) >= SHORTEST]
        return re.compile("|".join(sorted(long))) if long else None

    @cached_property
    def pattern(self) -> bytes:
        """A regular expression of the texts and bytes, in each character set; empty if there are none."""
        found = {value for value in self._single if isinstance(value, bytes)}
        for text in (value for value in self._single if isinstance(value, str) and len(value) >= SHORTEST):
            found.update(text.encode(charset) for charset in _CHARSETS if charset != "latin-1" or max(text) <= "\xff")
        return b"|".join(sorted(re.escape(one[:_PREFIX]) for one in found if len(one) >= SHORTEST))

    @cached_property
    def _forms(self) -> list[list[frozenset[str]]]:
        return [[frozenset(forms(part)) for part in key] for key in self.keys]

    def without(self, columns: Collection[str]) -> Needles:
        """Return what is looked for where rows do not have these columns of the key."""
        at = [number for number, name in enumerate(self.names) if name not in columns]
        keys = tuple(tuple(key[number] for number in at) for key in self.keys)
        return replace(self, names=tuple(self.names[number] for number in at), keys=keys)

    def in_text(self, text: str) -> bool:
        """Whether a text holds one of the values."""
        return self._text is not None and self._text.search(text) is not None

    def in_bytes(self, data: bytes) -> bool:
        """Whether bytes hold one of the texts."""
        return bool(self.pattern) and re.search(self.pattern, data) is not None

    def is_key(self, parts: Sequence[Any]) -> bool:
        """Whether texts are those of a key."""
        texts = [str(part) for part in parts]
        return any(
            len(key) == len(texts) and all(text in known for text, known in zip(texts, key, strict=True))
            for key in self._forms
        )

    def rows_in(self, columns: Sequence[pa.Array]) -> NDArray[np.bool_]:
        """Return which rows have one of the keys.

        Args:
            columns: one for each column of the key; those of a batch may be of narrower types.
        """
        found = np.ones(len(columns[0]) if columns else 0, np.bool_)
        for number, column in enumerate(columns):
            found &= equal(column, [key[number] for key in self.keys])
        if len(columns) > 1 and len(self.keys) > 1 and found.any():  # the parts of a row may be those of two keys
            at = np.flatnonzero(found)
            rows = [column.take(pa.array(at)) for column in columns]
            alone = (replace(self, keys=(key,)) for key in self.keys)
            found[at] = np.stack([one.rows_in(rows) for one in alone]).any(axis=0)
        return found

    def at_bound(self, name: str, bound: Any) -> bool:
        """Whether a bound of a column is one of the values, or the beginning of one as Iceberg writes it."""
        return any(_is_bound(value, bound) for value in self.by_column.get(name, ()))


def is_long(value: Any) -> bool:
    """Whether a value is found among other bytes: it is a text, or bytes, and not too short."""
    return isinstance(value, str | bytes) and len(value) >= SHORTEST


def equal(column: pa.Array, values: Sequence[Any]) -> NDArray[np.bool_]:
    """Return which cells equal one of the values; cells of another type are compared as text."""
    if None in values:
        nulls = np.asarray(pc.is_null(column))
        rest = [value for value in values if value is not None]
        return nulls | equal(column, rest) if rest else nulls
    fits = [_fits(value, column.type) for value in values]
    typed = list(itertools.compress(values, fits))
    found = _among(column, typed) if typed else np.zeros(len(column), np.bool_)
    if len(typed) < len(values):
        texts = [form for value, fit in zip(values, fits, strict=True) if not fit for form in forms(value)]
        with suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError):  # its values have no text
            found |= _among(column.cast(pa.string()), texts)
    return found


def _among(column: pa.Array, values: Sequence[Any]) -> NDArray[np.bool_]:
    found = pc.is_in(column, value_set=pa.array(values, column.type))
    return np.array(pc.fill_null(found, False), np.bool_)


def _fits(value: Any, kind: pa.DataType) -> bool:
    try:
        pa.scalar(value, kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, TypeError):
        return False
    return True


def forms(value: Any) -> Iterator[str]:
    """Yield a value as documents write it."""
    if isinstance(value, str | bytes):
        yield from _hex(value)
    if isinstance(value, datetime):
        plain = value.replace(tzinfo=None)
        yield from (plain.isoformat(" "), plain.isoformat(), f"{plain:%Y-%m-%d %H:%M:%S.%f}")
    elif isinstance(value, date):
        yield value.isoformat()
    if not isinstance(value, bytes):
        yield str(value)


def _hex(value: str | bytes) -> Iterator[str]:
    data = value.encode() if isinstance(value, str) else value
    if isinstance(value, str):
        yield value
    yield data.hex()
    yield data.hex().upper()


def _is_bound(value: Any, bound: Any) -> bool:
    if isinstance(value, str | bytes) and isinstance(bound, str | bytes):
        whole, held = (one.encode() if isinstance(one, str) else one for one in (value, bound))
        # The last character of an upper bound is greater than the value's.
        return whole == held or (len(held) >= _BOUND and whole[: _BOUND - 1] == held[: _BOUND - 1])
    return bool(value == bound)


def leaves(value: Any, table: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every text, list and object of a JSON document, with the name of the table that it is about; empty if it names none."""
    if isinstance(value, str):
        yield table, value
    elif isinstance(value, Mapping):
        match value:
            case {"table": [str(database), str(name)]} | {"database": str(database), "table": str(name)}:
                table = TableName(database, name)
        yield table, value
        for name, part in value.items():
            yield table, name
            yield from leaves(part, table)
    elif isinstance(value, Sequence):
        yield table, value
        for part in value:
            yield from leaves(part, table)


def in_document(needles: Needles, document: Any, tables: Iterable[str]) -> tuple[int, int]:
    """Return how many keys and how many texts of a JSON document are those of the rows.

    Args:
        needles: what is looked for.
        document: parsed.
        tables: ``database.table``: keys of other tables are not those.
    """
    keys = texts = 0
    about = {"", *tables}
    for table, leaf in leaves(document):
        if isinstance(leaf, str):
            texts += needles.in_text(leaf)
        elif table in about:
            own = isinstance(leaf, Mapping) and set(leaf) == set(needles.names)
            parts = [leaf[name] for name in needles.names] if own else leaf if isinstance(leaf, Sequence) else []
            keys += needles.is_key(parts)
    return keys, texts
