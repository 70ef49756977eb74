"""Gets and scans equal a dict, over random histories of a table's files."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.types import (
    BinaryType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
)

from cdc_lib.model.table_mode import IS_DELETED
from cdc_lib.read.cache import Cache
from tests.harness.lake.hand_made_table import HandMadeTable

KINDS = {
    "number": ({"id": LongType()}, st.tuples(st.integers(-3, 12) | st.just(2**63 - 1))),
    "text": ({"t": StringType()}, st.tuples(st.sampled_from(["", "a", "A", "ab", "é", "zz", "\U0001f600", "\uffff"]))),
    "bytes": ({"b": BinaryType()}, st.tuples(st.sampled_from([b"", b"\x00", b"a", b"a\x00", b"\xff", b"\x7f\xff"]))),
    "unsigned": ({"u": DecimalType(20, 0)}, st.tuples(st.integers(0, 9).map(Decimal) | st.just(Decimal(2**64 - 1)))),
    "price": ({"p": DecimalType(9, 2)}, st.tuples(st.integers(-5, 5).map(lambda n: Decimal(n).scaleb(-2)))),
    "day": ({"d": DateType()}, st.tuples(st.none() | st.dates(date(1969, 12, 28), date(1970, 1, 4)))),
    "time": ({"s": TimestampType()}, st.tuples(st.integers(0, 9).map(lambda n: datetime(1969, 12, 31, 23, 59, n)))),  # noqa: DTZ001
    "float": ({"f": DoubleType()}, st.tuples(st.sampled_from([-1.5, -0.0, 0.5, 2.0, 1e300]))),
    "numbers": (
        {"a": IntegerType(), "b": LongType(), "c": IntegerType()},
        st.tuples(st.integers(0, 2), st.integers(-2, 2), st.integers(0, 1)),
    ),
    "constant and text": (
        {"s": StringType(), "t": StringType()},
        st.tuples(st.just("shop"), st.sampled_from(["", "a", "b", "ba", "bb"])),
    ),
}


def in_order(key):
    """Order of keys: null first, text by its UTF-8 bytes."""
    return tuple((part is not None, part.encode() if isinstance(part, str) else part) for part in key)


class History:
    """A table and the dict that it must equal."""

    def __init__(self, folder, kind, mode):
        columns, self.keys = KINDS[kind]
        self.names = tuple(columns)
        self.table = HandMadeTable(folder, {**columns, "v": IntegerType()}, self.names, mode)
        self.model = {}
        self.at = {}
        self.deleted = defaultdict(set)
        self.version = 0

    def merge(self, draw):
        """Write one commit: new rows in a file, and deletes of the earlier rows of their keys."""
        changed = draw(st.lists(self.keys, unique=True, max_size=12))
        removed = {key for key in changed if draw(st.integers(0, 3)) == 0}
        self.version += 1
        soft = self.table.mode == "soft_delete"
        written = [key for key in changed if key not in removed or (soft and key in self.model)]
        replaced = defaultdict(set)
        for key in changed:
            if key in self.at:
                path, position = self.at.pop(key)
                replaced[path].add(position)
                self.deleted[path].add(position)
        if draw(st.booleans()):
            written.sort(key=in_order)
        rows = [
            {
                **dict(zip(self.names, key, strict=True)),
                "v": self.version,
                **({IS_DELETED: key in removed} if soft else {}),
            }
            for key in written
        ]
        vectors = draw(st.booleans())
        if replaced:
            # A vector takes over what files of positions deleted before; after it there are only vectors.
            known = {path: self.deleted[path] for path in replaced}
            vectors = vectors or any(path in self.table.vectors for path in replaced)
            self.table.delete(known if vectors else replaced, vectors=vectors)
        if rows:
            path = self.table.add(
                rows, draw(st.integers(1, 5)), bounds=draw(st.sampled_from(["full", "truncated", "none"]))
            )
            self.at |= {key: (path, number) for number, key in enumerate(written)}
        for key in changed:
            self.model.pop(key, None)
        self.model |= dict(zip(written, rows, strict=True))

    def shown(self, *, deleted=False):
        return {key: row for key, row in self.model.items() if deleted or not row.get(IS_DELETED)}


@given(
    st.data(), st.sampled_from(sorted(KINDS)), st.sampled_from(["mirror", "soft_delete"]), st.sampled_from([0, 10**8])
)
def test_gets_and_scans_equal_a_dict(data, kind, mode, cache_bytes):
    """After every commit: each key of the domain, many at once, and ranges in both directions; with a cache and without."""
    cache = Cache(cache_bytes)
    with tempfile.TemporaryDirectory() as folder:
        history = History(Path(folder), kind, mode)
        for _ in range(data.draw(st.integers(1, 4))):
            history.merge(data.draw)
            check(data, history, history.table.reader(cache))


def check(data, history, reader):
    asked = data.draw(st.lists(history.keys, max_size=8)) + list(history.model)
    for deleted in (False, True):
        model = history.shown(deleted=deleted)
        for key in asked:
            given_key = key[0] if len(key) == 1 and key[0] is not None else key
            assert reader.get(given_key, deleted=deleted) == model.get(key)
            assert reader.exists(dict(zip(history.names, key, strict=True)), deleted=deleted) == (key in model)
        many = reader.multi_get(asked, deleted=deleted).to_pylist()
        assert [row.pop("_found") for row in many] == [key in model for key in asked]
        assert [row for row in many if any(value is not None for value in row.values())] == [
            model[key] for key in asked if key in model
        ]
        keys = sorted(model, key=in_order)
        start, stop = (data.draw(st.none() | history.keys) for _ in range(2))
        start, stop = (one and one[: data.draw(st.integers(1, len(one)))] for one in (start, stop))
        include = data.draw(st.booleans())
        inside = [key for key in keys if is_inside(key, start, stop, include=include)]
        limit = data.draw(st.none() | st.integers(0, 6))
        for reverse in (False, True):
            rows = reader.scan(start, stop, include_stop=include, reverse=reverse, limit=limit, deleted=deleted)
            expected = [model[key] for key in (inside[::-1] if reverse else inside)]
            assert rows.read_all().to_pylist() == expected[:limit]
        prefix = data.draw(history.keys)[: data.draw(st.integers(1, len(history.names)))]
        if isinstance(prefix[-1], str | bytes):
            prefix = (*prefix[:-1], prefix[-1][: data.draw(st.integers(0, 2))])
        rows = reader.scan(prefix=prefix, deleted=deleted).read_all().to_pylist()
        assert rows == [model[key] for key in keys if begins_with(key, prefix)]


def begins_with(key, prefix):
    *parts, last = prefix
    part = key[len(parts)]
    same = part is not None and part.startswith(last) if isinstance(last, str | bytes) else part == last
    return key[: len(parts)] == tuple(parts) and same


def is_inside(key, start, stop, *, include):
    if start is not None and in_order(key)[: len(start)] < in_order(start):
        return False
    if stop is None:
        return True
    cut = in_order(key)[: len(stop)]
    return cut <= in_order(stop) if include else cut < in_order(stop)
