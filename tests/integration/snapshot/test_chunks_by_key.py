"""The row of a key is found in the chunks of a real server's snapshot, and of most chunks nothing is read."""

from __future__ import annotations

import pyarrow as pa
import pytest

from cdc_lib.model.lake_table import SnapshotMark
from cdc_lib.model.position import Point
from cdc_lib.model.table_name import TableName
from cdc_lib.read.archive.chunks import SnapshotChunks
from cdc_lib.read.archive.rows import ArchivedRows, VersionShape
from cdc_lib.read.cache import Cache
from cdc_lib.read.columns import ReadColumn
from cdc_lib.read.keys import KeyColumns
from tests.harness.binlog.capture import SOURCE, Capture

TEXT = "VARCHAR(9) CHARACTER SET utf8mb4"
WORDS = [f"{letter}{number}" for letter in "aBçDéz" for number in range(5)]
"""In the order of the column's collation, which is not that of the bytes."""

IN_ORDER = {
    "negative": ("k INT", "k", [str(number * 7 - 100) for number in range(30)]),
    "unsigned": ("k BIGINT UNSIGNED", "k", [str(2**63 - 15 + number) for number in range(30)]),
    "price": ("k DECIMAL(9, 2)", "k", [f"{number - 15}.{number:02}" for number in range(30)]),
    "day": ("k DATE", "k", [f"'19{60 + number}-02-03'" for number in range(30)]),
    "time": ("k DATETIME(6)", "k", [f"'1969-12-31 23:59:{number}.000001'" for number in range(30, 60)]),
    "moment": ("k TIMESTAMP(3)", "k", [f"'2026-03-29 02:{number}:00.5'" for number in range(30, 60)]),
    "bytes": ("k VARBINARY(9)", "k", [f"X'{number * 9 % 256:02x}00'" for number in range(30)]),
    "year": ("k YEAR", "k", [str(1990 + number) for number in range(30)]),
    "double": ("k DOUBLE", "k", [f"{number - 15}.5e0" for number in range(30)]),
    "number, text": (f"k INT, t {TEXT}", "k, t", [f"{number // 2}, '{'xy'[number % 2]}'" for number in range(30)]),
}
TEXTS = {
    "text": (f"k {TEXT}", "k", [f"'{word}'" for word in WORDS]),
    "text, number": (f"k {TEXT}, n INT", "k, n", [f"'{word}', {number}" for word in WORDS[:6] for number in range(5)]),
}


class Counted:
    """A store that counts the reads of Parquet files and of manifests."""

    def __init__(self, store):
        self.store, self.files, self.manifests = store, 0, 0

    def list(self, prefix):
        return self.store.list(prefix)

    def get(self, key):
        self.manifests += 1
        return self.store.get(key)

    def open_read(self, key):
        self.files += 1
        return self.store.open_read(key)


class Chunks:
    """The chunks of a table with 30 rows, six in each.

    Args:
        capture: the source.
        columns: of the key, as DDL.
        key: their names.
        values: of each row's key, as SQL.
    """

    def __init__(self, capture, columns, key, values):
        capture.execute(f"CREATE TABLE t ({columns}, v INT, PRIMARY KEY ({key}))")
        rows = ", ".join(f"({value}, {number})" for number, value in enumerate(values))
        capture.execute(f"INSERT INTO t VALUES {rows}")
        manifests = capture.snapshot("t")
        files = [table for one in manifests for table in capture.tables(one, "t")]
        self.rows = [row for table in files for row in table.to_pylist()]
        self.count, fields = (
            len(files),
            [field for field in files[0].schema if field.name not in ("_op", "_ts", "_gtid")],
        )
        types = {field.name: pa.decimal128(20) if field.type == pa.uint64() else field.type for field in fields}
        columns = {name: ReadColumn(name, number, of) for number, (name, of) in enumerate(types.items(), 1)}
        self.shape = VersionShape.of("t", list(columns.values()))
        self.key = KeyColumns(tuple(columns[name] for name in key.split(", ")), "t")
        self.capture, low = capture, Point.at(1, manifests[0].chunk.low_watermark)
        self.mark = SnapshotMark(capture.task("t").snapshot_id, len(manifests), True, low, low, low)

    def of_key(self, key):
        """Return the values of ``v`` that were read of a key, and the reads of files and manifests."""
        store = Counted(self.capture.store)
        archived = ArchivedRows(store, Cache(), self.shape, self.key.columns)
        chunks = SnapshotChunks(archived, SOURCE, TableName(self.capture.database, "t"), self.mark)
        reads = chunks.of_key(self.key.parse(key))
        return [one.changes.rows.column("v")[0].as_py() for one in reads], store.files, store.manifests


@pytest.fixture
def capture(any_server, database, tmp_path):
    return Capture(any_server, database, tmp_path, snapshot={"chunk_rows": 5})


@pytest.mark.parametrize("name", [*IN_ORDER, *TEXTS])
def test_each_row_is_found(capture, name):
    """By the last keys of the chunks, but for texts, whose order only the source knows, by the statistics of the files."""
    chunks = Chunks(capture, *(IN_ORDER | TEXTS)[name])
    names = [column.name for column in chunks.key.columns]
    for row in chunks.rows:
        values, files, manifests = chunks.of_key(tuple(row[one] for one in names))
        assert values == [row["v"]]
        if name in IN_ORDER:
            at_the_border = 3 if "," in name else 0
            assert (files <= 3 + at_the_border, manifests <= 5) == (True, True)
    assert (len(chunks.rows), chunks.count) == (30, 6)
    present = {tuple(row[one] for one in names) for row in chunks.rows}
    others = [(row[names[0]], *("zz" if isinstance(row[one], str) else 99 for one in names[1:])) for row in chunks.rows]
    for other in set(others) - present:
        assert chunks.of_key(other)[0] == []


def test_a_key_between_and_beyond_those_of_the_chunks_is_in_none(capture):
    """Also of a range that has no rows."""
    chunks = Chunks(capture, "k INT", "k", [str(number * 2) for number in range(30)])
    for key in (-1, 1, 9, 29, 59, 100):
        assert chunks.of_key(key)[0] == []
