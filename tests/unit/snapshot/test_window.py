"""Which windows are planned, and how a table is read in chunks: pure decisions."""

from __future__ import annotations

import pytest

from cdc_lib.model.cursor import DRAIN, Cursor
from cdc_lib.model.position import Position
from cdc_lib.model.projection import can_be_chunked
from cdc_lib.model.schema import Column, SourceType, TableSchema
from cdc_lib.model.server_identity import ServerIdentity
from cdc_lib.mysql.information_schema import source_type
from cdc_lib.plan.windows import Limits, bytes_between, plan_windows
from cdc_lib.snapshot import chunks

SERVER = ServerIdentity("mysql", "6f9619ff-8b86-d011-b42d-00cf4fc964ff", 1)
FILES = [("binlog.000009", 1000), ("binlog.000010", 500), ("binlog.000011", 800)]
HEAD = Position("binlog.000011", 700)


def cursor(file="binlog.000009", offset=4):
    return Cursor("shop", DRAIN, 1, 1, SERVER, Position(file, offset))


def bounds(windows):
    return [(str(window.start), str(window.stop)) for window in windows]


def test_a_short_backlog_is_one_window_up_to_the_end_of_the_binlog():
    """Over as many files as it has."""
    windows = plan_windows(cursor(offset=100), FILES, HEAD, Limits(10_000, 16))
    assert bounds(windows) == [("binlog.000009:100", "binlog.000011:700")]


def test_a_long_backlog_is_cut_at_the_ends_of_files():
    """Which are transaction boundaries; the windows tile."""
    windows = plan_windows(cursor(), FILES, HEAD, Limits(900, 16))
    assert bounds(windows) == [("binlog.000009:4", "binlog.000010:4"), ("binlog.000010:4", "binlog.000011:700")]
    assert cursor().with_windows(windows).in_flight == windows


def test_windows_end_where_a_table_continues_and_go_on_from_there():
    """The other tables do not wait for the next plan; the windows tile, and are not more than allowed."""
    cuts = [Position("binlog.000009", 4), Position("binlog.000009", 300), Position("binlog.000011", 4), HEAD]
    windows = plan_windows(cursor(), FILES, HEAD, Limits(10_000, 16), cuts)
    assert bounds(windows) == [
        ("binlog.000009:4", "binlog.000009:300"),
        ("binlog.000009:300", "binlog.000011:4"),
        ("binlog.000011:4", "binlog.000011:700"),
    ]
    assert cursor().with_windows(windows).in_flight == windows
    assert plan_windows(cursor(), FILES, HEAD, Limits(10_000, 2), cuts) == windows[:2]
    later = [Position("binlog.000011", 750)]
    assert plan_windows(cursor(), FILES, HEAD, Limits(10_000, 16), later) == plan_windows(
        cursor(), FILES, HEAD, Limits(10_000, 16)
    )


def test_no_more_windows_than_allowed_are_planned():
    """The rest comes with the next plan."""
    assert bounds(plan_windows(cursor(), FILES, HEAD, Limits(1, 2))) == [
        ("binlog.000009:4", "binlog.000010:4"),
        ("binlog.000010:4", "binlog.000011:4"),
    ]


def test_a_cursor_at_the_end_of_the_binlog_plans_nothing():
    """Also one that is at the end of a file whose follower is empty yet."""
    assert plan_windows(cursor("binlog.000011", 700), FILES, HEAD, Limits(1, 9)) == ()
    assert plan_windows(cursor("binlog.000010", 500), FILES, Position("binlog.000010", 500), Limits(1, 9)) == ()


def test_files_count_by_their_number():
    """Behind 999999 comes 1000000, with a digit more."""
    files = [("b.999999", 100), ("b.1000000", 100)]
    (first, second) = plan_windows(cursor("b.999999"), files, Position("b.1000000", 50), Limits(1, 9))
    assert bounds([first, second]) == [("b.999999:4", "b.1000000:4"), ("b.1000000:4", "b.1000000:50")]


def test_bytes_between_are_those_of_the_files_between():
    """For the status page."""
    assert bytes_between(Position("binlog.000009", 100), FILES, HEAD) == 900 + 500 + 700
    assert bytes_between(Position("binlog.000011", 100), FILES, HEAD) == 600
    assert bytes_between(HEAD, FILES, HEAD) == 0


INT = SourceType("int", width=4)
TEXT = SourceType("string", width=40, charset="utf8mb4")
TABLE = TableSchema("my`db", "t", (Column("x", INT), Column("k", TEXT), Column("f", SourceType("float"))), ("x", "k"))


def test_a_chunk_of_a_composite_key_is_spelled_out_column_by_column():
    """Literals of texts are hex: no quote of a value reaches the statement."""
    key = chunks.key_text(TABLE, (b"7", "é'".encode()))
    assert key == ("7", "c3a927")
    assert chunks.select_chunk(TABLE, key, ("9", ""), 5) == (
        "SELECT `x`, `k`, `f` * 1e0 FROM `my``db`.`t` FORCE INDEX (PRIMARY) WHERE "
        "((`x` < 9) OR (`x` = 9 AND `k` <= _utf8mb4 X'')) AND "
        "((`x` > 7) OR (`x` = 7 AND `k` > _utf8mb4 X'c3a927')) ORDER BY `x`, `k` LIMIT 5"
    )


def test_a_table_without_a_key_is_one_chunk():
    """So is one whose key has no order that a literal keeps."""
    keyless = TableSchema("d", "t", (Column("x", INT),))
    assert not can_be_chunked(keyless)
    assert chunks.select_chunk(keyless, None, None, 5) == "SELECT `x` FROM `d`.`t`"
    members = TableSchema("d", "t", (Column("x", SourceType("enum", members=("b", "a"))),), ("x",))
    assert not can_be_chunked(members)
    rounded = TableSchema("d", "t", (Column("x", SourceType("double", text="double(9,2) unsigned")),), ("x",))
    assert not can_be_chunked(rounded)
    assert can_be_chunked(TABLE)
    assert chunks.select_upper(TABLE) == "SELECT `x`, `k` FROM `my``db`.`t` ORDER BY `x` DESC, `k` DESC LIMIT 1"


@pytest.mark.parametrize(
    ("row", "kind", "lake"),
    [
        (("int", "int(10) unsigned", 10, 0, None, None, None), "int", "bigint"),
        (("bigint", "bigint unsigned", 20, 0, None, None, None), "int", "decimal(20,0)"),
        (("tinyint", "tinyint(1)", 3, 0, None, None, None), "int", "int"),
        (("decimal", "decimal(38,10)", 38, 10, None, None, None), "decimal", "decimal(38,10)"),
        (("varchar", "varchar(9)", None, None, None, "latin1", 9), "string", "string"),
        (("varbinary", "varbinary(9)", None, None, None, None, 9), "bytes", "binary"),
        (("datetime", "datetime(6)", None, None, 6, None, None), "datetime", "timestamp_ntz"),
        (("timestamp", "timestamp", None, None, 0, None, None), "timestamp", "timestamp"),
        (("bit", "bit(64)", 64, None, None, None, None), "bit", "decimal(20,0)"),
        (("json", "json", None, None, None, None, None), "json", "string"),
        (("geometry", "point", None, None, None, None, None), "bytes", "binary"),
        (("uuid", "uuid", None, None, None, None, None), "bytes", "binary"),
        (("decimal", "decimal(65,30)", 65, 30, None, None, None), "decimal", "string"),
        (("xmltype", "xmltype", None, None, None, None, None), "unsupported", "binary"),
    ],
)
def test_declared_types_map_to_lake_types(row, kind, lake):
    """As information_schema spells them."""
    found = source_type(*row)
    assert (found.kind, found.lake_type) == (kind, lake)


def test_members_with_quotes_and_commas_are_read():
    """Quotes are doubled in the declared type."""
    found = source_type("enum", "enum('a','b''c','d,e','')", None, None, None, "utf8mb4", 3)
    assert found.members == ("a", "b'c", "d,e", "")
