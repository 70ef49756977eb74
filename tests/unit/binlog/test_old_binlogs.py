"""Streams of servers before MySQL 8.0, written by hand."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from cdc_lib.binlog.reader import WindowReader
from cdc_lib.binlog.rows.captured_tables import CapturedTables
from cdc_lib.binlog.rows.row_groups import WindowSinks
from cdc_lib.binlog.stream_facts import StreamFacts
from cdc_lib.errors import UnknownSchema
from cdc_lib.model.position import Position
from cdc_lib.model.window import Window
from tests.harness.binlog.old_binlogs import FILE, TIME, anonymous_transactions_of_5_7, v1_rows_without_checksums


class Wire:
    def __init__(self, data: bytes) -> None:
        self._data = data

    def read_into(self, view: memoryview) -> int:
        piece, self._data = self._data[: len(view)], self._data[len(view) :]
        view[: len(piece)] = piece
        return len(piece)


class Rows(list):
    def write(self, _key, _schema, rows, _renames=0) -> None:
        self.extend(rows.to_pylist())


def read(binlog):
    window = Window("shop", 1, Position(FILE, 4), Position(FILE, binlog.offset))
    rows = Rows()
    facts = StreamFacts("mysql", binlog.checksum, {45: "utf8mb4"})
    captured = CapturedTables(lambda *_: True)
    summary = WindowReader(window, Wire(bytes(binlog.wire)), facts, captured, WindowSinks(rows, rows)).run()
    return [(row["_op"], row["id"], row["v"]) for row in rows], rows, summary


def test_row_events_of_version_1_are_read():
    """Of 5.5, which knows neither GTIDs nor checksums: times are those of the events' headers."""
    changes, rows, summary = read(v1_rows_without_checksums())
    assert changes == [("c", 1, "x"), ("c", -2, None), ("u", 1, "y"), ("d", -2, None), ("u", 3, "z"), ("d", 3, "z")]
    assert [row["_row"] for row in rows] == [0, 1, 1, 2, 3, 0]
    assert {row["_gtid"] for row in rows} == {None}
    assert {row["_ts"] for row in rows} == {datetime.fromtimestamp(TIME, UTC)}
    assert summary.transactions == 3


def test_anonymous_transactions_without_commit_times_are_read():
    """Of 5.7: their time is that of the header, in whole seconds."""
    changes, rows, summary = read(anonymous_transactions_of_5_7())
    assert changes == [("c", 1, "x"), ("d", 1, "x")]
    assert {row["_ts"] for row in rows} == {datetime.fromtimestamp(TIME, UTC)}
    assert (summary.gtid_first, summary.transactions) == ("", 2)


@pytest.mark.parametrize("make", [v1_rows_without_checksums, anonymous_transactions_of_5_7])
def test_a_table_map_that_names_no_columns_stops_the_window(make):
    """As all servers before 8.0.1 write it."""
    with pytest.raises(UnknownSchema) as caught:
        read(make(metadata=b""))
    assert caught.value.context["table"] == "db.a"
    assert caught.value.context["offset"] > 4
