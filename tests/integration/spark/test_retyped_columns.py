"""Columns that get a type of another kind: existing rows show other values, of which no event tells, also if no row comes after it."""

from __future__ import annotations

from decimal import Decimal

import pytest

from cdc_lib.status.overview import status_of
from tests.harness.binlog.capture import row_metadata
from tests.harness.lake.ddl_source import Followed

CASES = {
    "sorted": ("VARCHAR(9)", "'b,a'", "SET('a','b')"),
    "labelled": ("VARCHAR(9)", "'A'", "ENUM('a','b')"),
    "relabelled": ("ENUM('A','b')", "'A'", "ENUM('a','b')"),
    "stripped": ("VARCHAR(9)", "'a '", "CHAR(9)"),
    "clocked": ("VARCHAR(9)", "'1:2:3'", "TIME"),
    "counted": ("INT", "24", "YEAR"),
    "numbered": ("VARCHAR(9)", "'007'", "DECIMAL(60, 1)"),
    "rounded": ("DOUBLE", "1.7", "INT"),
    "cut": ("DECIMAL(20, 2)", "1.75", "INT"),
    "indexed": ("INT", "2", "ENUM('a','b')"),
    "dated": ("INT", "20240102", "DATE"),
    "texted": ("INT", "5", "VARCHAR(9)"),
    "timed": ("TIME(3)", "'1:2:3.5'", "VARCHAR(20)"),
    "yeared": ("YEAR", "2024", "INT"),
    "enumed": ("ENUM('b','a')", "'a'", "TEXT"),
    "digits": ("FLOAT", "1.23456", "DOUBLE(10,2)"),
    "digits_of_a_copy": ("DOUBLE", "1.23456", "DOUBLE(10,2), MODIFY id BIGINT"),
}
ONE_SERVER = {
    "mysql": {"parsed": ("TEXT", """'{"b": 1,  "a": 2}'""", "JSON")},
    "mariadb": {"listed": ("DECIMAL(10, 1)", "1", "SET('1','2')")},
}


def text(value):
    if isinstance(value, bytes):
        return value.decode()
    return format(Decimal(str(value)).normalize(), "f") if isinstance(value, float) else str(value)


def lake_texts(source, table):
    """The values that the lake has of a table: those of a table without a key are added up."""
    name = f"{source.capture.database}.{table}"
    if source.lake.state(name).mode == "mirror":
        return [text(value) for (value,) in source.lake.rows(name, "v")]
    rows = source.lake.rows(name, "v", "_op")
    return sorted(text(value) for value, op in rows if op in ("c", "r"))


@pytest.mark.parametrize("metadata", ["FULL", "MINIMAL"])
@pytest.mark.parametrize("key", [" PRIMARY KEY", ""])
def test_rows_show_the_values_of_the_new_type(any_server, database, tmp_path, lake, metadata, key):
    cases = CASES | ONE_SERVER[any_server.flavor]
    with row_metadata(any_server, metadata):
        source = Followed(any_server, database, tmp_path, lake, on_error="quarantine", start="latest")
        source.round()
        source.run(*(f"CREATE TABLE {table} (id INT{key}, v {old})" for table, (old, _, _) in cases.items()))
        source.round()
        for table, (_, value, new) in cases.items():
            source.run(f"INSERT INTO {table} VALUES (1, {value})", f"ALTER TABLE {table} MODIFY v {new}")
        source.round()
        source.round()
        found = {table: lake_texts(source, table) for table in cases}
        shown = {
            table: [row[0] for row in source.capture.execute(f"SELECT CAST(v AS CHAR) FROM {table}")] for table in cases
        }
        assert found == shown
        assert not status_of(source.capture.pipeline).drain.quarantined_tables


SEQUENCES = {
    "added_to": ("VARCHAR(9)", "'a '", ["ADD w VARCHAR(9) NOT NULL DEFAULT 'a '"], ["MODIFY w CHAR(9)"]),
    "twice": ("VARCHAR(9)", "'b,a'", ["MODIFY v VARCHAR(20)", "MODIFY v SET('a','b')"]),
    "there_and_back": ("VARCHAR(9)", "'b,a'", ["MODIFY v SET('a','b')", "MODIFY v VARCHAR(9)"]),
    "renamed": ("VARCHAR(9)", "'b,a'", ["RENAME COLUMN v TO w", "MODIFY w SET('a','b')"]),
    "renamed_before": ("VARCHAR(9)", "'b,a'", ["RENAME COLUMN v TO w"], ["MODIFY w SET('a','b')"]),
    "at_once": ("VARCHAR(9)", "'b,a'", ["RENAME COLUMN v TO w, MODIFY COLUMN id BIGINT", "MODIFY w SET('a','b')"]),
    "changed": ("VARCHAR(9)", "'b,a'", ["CHANGE v w SET('a','b')"]),
    "written_later": ("DOUBLE", "1.7", ["MODIFY v INT"], [], ["VALUES (2, 5)"]),
    "in_steps": ("VARCHAR(9)", "'1:2:3'", ["MODIFY v VARCHAR(30)"], ["MODIFY v TEXT"], ["MODIFY v TIME"]),
    "written_before": ("DECIMAL(20, 2)", "1.75", ["ADD w INT"], ["VALUES (2, 5, 1)"], ["MODIFY v INT"]),
}
"""Type and value of a column, and what happens to the table in each of the next runs."""

CONVERSIONS = {
    "bytes": ("CHAR(4)", "'ü'", ["CONVERT TO CHARACTER SET binary"]),
    "bytes_at_once": ("TEXT", "'ü'", ["VALUES (2, 'ü')", "CONVERT TO CHARACTER SET binary"]),
}
CONVERSIONS_OF_LABELS = {
    "labels": ("ENUM('a','ü') CHARACTER SET utf8mb4", "'ü'", ["CONVERT TO CHARACTER SET latin1"]),
    "labels_at_once": (
        "SET('a','ü') CHARACTER SET utf8mb4", "'ü'", ["VALUES (2, 'ü')", "CONVERT TO CHARACTER SET latin1"],
    ),
    "wide_labels": ("ENUM('ab','cd')", "'cd'", ["CONVERT TO CHARACTER SET utf16"]),
}  # fmt: skip
"""MySQL keeps the bytes of labels; MariaDB refuses to."""


def statement(table, what):
    return f"INSERT INTO {table} {what}" if what.startswith("VALUES") else f"ALTER TABLE {table} {what}"


def shown(value):
    """A value of the lake as the source shows it; the lake's decimal keeps its digits."""
    return value if value is None else text(float(value) if isinstance(value, Decimal) else value)


@pytest.mark.parametrize(("metadata", "start"), [("FULL", "snapshot"), ("FULL", "latest"), ("MINIMAL", "snapshot")])
def test_the_former_type_is_that_of_rows_of_earlier_runs(any_server, database, tmp_path, lake, metadata, start):
    """The window of the statement has no row of the table before it."""
    once = {table: (old, value, [f"MODIFY v {new}"]) for table, (old, value, new) in CASES.items()}
    once |= {
        table: (old, value, [f"MODIFY v {new}"]) for table, (old, value, new) in ONE_SERVER[any_server.flavor].items()
    }
    cases = once | SEQUENCES | CONVERSIONS | (CONVERSIONS_OF_LABELS if any_server.flavor == "mysql" else {})
    with row_metadata(any_server, metadata):
        source = Followed(any_server, database, tmp_path, lake, on_error="quarantine", start=start)
        if start == "latest":
            source.round()
        source.run(*(f"CREATE TABLE {table} (id INT PRIMARY KEY, v {old})" for table, (old, *_) in cases.items()))
        source.run(*(f"INSERT INTO {table} VALUES (1, {value})" for table, (_, value, *_) in cases.items()))
        source.round()
        for turn in range(2, 5):
            source.run(
                *(
                    statement(table, what)
                    for table, case in cases.items()
                    for one in case[turn : turn + 1]
                    for what in one
                )
            )
            source.round()
        source.round()
        for table in cases:
            columns = [name for name in source.columns(table) if name != "id"]
            rows = source.lake.rows(f"{database}.{table}", *columns)
            texts = ", ".join(f"CAST({name} AS CHAR)" for name in columns)
            expected = [tuple(row) for row in source.capture.execute(f"SELECT {texts} FROM {table} ORDER BY id")]
            assert (table, [tuple(map(shown, row)) for row in rows]) == (table, expected)
        assert not status_of(source.capture.pipeline).drain.quarantined_tables


def test_blanks_that_an_sql_mode_keeps_are_in_the_lake(any_server, database, tmp_path, lake):
    """With PAD_CHAR_TO_FULL_LENGTH an ALTER that makes VARCHAR of CHAR fills its values."""
    source = Followed(any_server, database, tmp_path, lake, on_error="quarantine")
    source.run("CREATE TABLE t (id INT PRIMARY KEY, v CHAR(5))", "INSERT INTO t VALUES (1, 'ab')")
    source.round()
    source.run("SET sql_mode = 'STRICT_TRANS_TABLES,PAD_CHAR_TO_FULL_LENGTH'", "ALTER TABLE t MODIFY v VARCHAR(5)")
    source.round()
    source.round()
    source.assert_equal("t")
    assert source.lake_rows("t") == [(1, "ab   ")]


def test_types_that_show_the_same_values_request_no_snapshot(any_server, database, tmp_path, lake):
    """The lake has the former types since the first rows, and so does one that a new snapshot brought."""
    cases = {
        "longer": ("VARCHAR(9)", "'a'", "VARCHAR(20)", "TEXT"),
        "wider": ("INT", "1", "BIGINT", "BIGINT NOT NULL"),
        "labels": ("ENUM('a','b')", "'a'", "ENUM('a','b','c')", "VARCHAR(9)"),
        "converted": ("VARCHAR(9) CHARACTER SET latin1", "'ü'", "VARCHAR(9), CONVERT TO CHARSET utf8mb4", "TEXT"),
        "padded": ("CHAR(9)", "'a'", "CHAR(20)", "VARCHAR(20)"),
        "scaled": ("DATETIME(3)", "'2024-01-02 03:04:05'", "DATETIME(6)", "DATETIME(6) NOT NULL"),
    }
    with row_metadata(any_server, "FULL"):
        source = Followed(any_server, database, tmp_path, lake, on_error="quarantine")
        source.run(*(f"CREATE TABLE {table} (id INT PRIMARY KEY, v {old})" for table, (old, *_) in cases.items()))
        source.run(*(f"INSERT INTO {table} VALUES (1, {value})" for table, (_, value, *_) in cases.items()))
        source.round()
        source.run(*(f"UPDATE {table} SET id = 2" for table in cases))
        source.round()
        before = source.snapshots()
        for turn in (2, 3):
            source.run(*(f"ALTER TABLE {table} MODIFY v {case[turn]}" for table, case in cases.items()))
            source.round()
        source.assert_equal(*cases)
        assert source.snapshots() == before == len(cases)


@pytest.mark.parametrize("metadata", ["FULL", "MINIMAL"])
def test_an_online_schema_change_counts_at_its_swap(any_server, database, tmp_path, lake, metadata):
    """It changes the type of its shadow table, of which no row is captured, and copies the rows."""
    with row_metadata(any_server, metadata):
        source = Followed(any_server, database, tmp_path, lake, on_error="quarantine")
        for table in ("t", "u"):
            source.run(
                f"CREATE TABLE {table} (id INT PRIMARY KEY, v VARCHAR(20))", f"INSERT INTO {table} VALUES (1, 'b,a')"
            )
        source.round()
        before = source.snapshots()
        for table, kind in (("t", "SET('a','b')"), ("u", "VARCHAR(30)")):
            source.run(f"CREATE TABLE _{table}_gho LIKE {table}", f"ALTER TABLE _{table}_gho MODIFY v {kind}")
        source.round()
        for table in ("t", "u"):
            source.run(
                f"INSERT IGNORE INTO _{table}_gho SELECT * FROM {table}",
                f"RENAME TABLE {table} TO _{table}_del, _{table}_gho TO {table}",
            )
        source.round()
        source.round()
        source.assert_equal("t", "u")
        assert source.snapshots() == before + 1


MADE_OF = {
    "yeared": ("YEAR", "0", "INT", "CONCAT('x', v)"),
    "scaled": ("DECIMAL(10, 2)", "1.5", "DECIMAL(12, 4)", "CONCAT('x', v)"),
    "timed": ("DATETIME", "'2024-01-02 03:04:05'", "DATETIME(3)", "CONCAT('x', v)"),
    "padded": ("INT(5) ZEROFILL", "7", "INT", "CONCAT('x', v)"),
    "encoded": ("VARCHAR(9) CHARACTER SET latin1", "0xE9", "VARCHAR(9) CHARACTER SET utf8mb4", "HEX(v)"),
    "compared": (
        "VARCHAR(9) CHARACTER SET latin1 COLLATE latin1_bin", "'a'",
        "VARCHAR(9) CHARACTER SET latin1 COLLATE latin1_general_ci", "IF(v = 'A', 'yes', 'no')",
    ),
}  # fmt: skip
REPLACED = {"dropped": "DROP v, ADD v INT", "added": "ADD COLUMN v DATE FIRST, DROP COLUMN `v`"}
"""Clauses by which another column gets the name of one of which a third is made; MySQL refuses them."""


@pytest.mark.parametrize("metadata", ["FULL", "MINIMAL"])
def test_columns_that_are_made_of_one_of_another_type_show_their_new_values(
    any_server, database, tmp_path, lake, metadata
):
    """Stored and virtual ones, also where the values of the column itself stay, and where the table has another name afterwards."""
    with row_metadata(any_server, metadata):
        source = Followed(any_server, database, tmp_path, lake, on_error="quarantine", start="latest")
        source.round()
        for table, (old, value, _, made) in MADE_OF.items():
            for name in (table, f"{table}_before"):
                source.run(
                    f"CREATE TABLE {name} (id INT PRIMARY KEY, v {old}, g VARCHAR(50) AS ({made}) STORED, h VARCHAR(50) AS ({made}) VIRTUAL)",
                    f"INSERT INTO {name} (id, v) VALUES (1, {value})",
                )
        source.round()
        for table, (_, _, new, _) in MADE_OF.items():
            source.run(
                f"ALTER TABLE {table} MODIFY v {new}",
                f"ALTER TABLE {table}_before MODIFY v {new}",
                f"RENAME TABLE {table}_before TO {table}_after",
            )
        replaced = REPLACED if any_server.flavor == "mariadb" else {}
        for table in replaced:
            source.run(
                f"CREATE TABLE {table} (id INT PRIMARY KEY, v INT, g VARCHAR(50) AS (v + 1) VIRTUAL, h INT AS (7) VIRTUAL)",
                f"INSERT INTO {table} (id, v) VALUES (1, 1), (2, 5)",
            )
        source.round()
        source.run(*(f"ALTER TABLE {table} {clauses}" for table, clauses in replaced.items()))
        source.round()
        source.round()
        tables = [*(f"{table}{end}" for table in MADE_OF for end in ("", "_after")), *replaced]
        found = {one: source.lake.rows(f"{source.capture.database}.{one}", "g", "h") for one in tables}
        shown = {one: [tuple(row) for row in source.capture.execute(f"SELECT g, h FROM {one}")] for one in tables}
        assert {one: [tuple(row) for row in rows] for one, rows in found.items()} == shown
        assert not status_of(source.capture.pipeline).drain.quarantined_tables


ALL_KINDS = (
    "d DECIMAL(10, 2), f FLOAT, g DOUBLE, b BINARY(3), vb VARBINARY(4), e ENUM('a', 'b'), s SET('x', 'y'), t TIME(3), at DATETIME(6), "
    "y YEAR, j JSON, x TEXT, l LONGBLOB, c CHAR(5), bits BIT(3), n INT UNSIGNED, stamp TIMESTAMP(2) NULL, m MEDIUMINT(5) ZEROFILL, p POINT, "
    "v VARCHAR(20) CHARACTER SET latin1, UNIQUE KEY (n), KEY (v), CONSTRAINT positive CHECK (n > 0)"
)


@pytest.mark.parametrize("metadata", ["FULL", "MINIMAL"])
def test_a_shadow_table_that_is_listed_column_by_column_is_compared_with_the_table(
    any_server, database, tmp_path, lake, metadata
):
    """As SHOW CREATE TABLE lists it nothing is read again; with another type or one column more, or made like another table, it is."""
    with row_metadata(any_server, metadata):
        source = Followed(any_server, database, tmp_path, lake, on_error="quarantine")
        source.run(f"CREATE TABLE same (id INT PRIMARY KEY, {ALL_KINDS})", "INSERT INTO same (id, n) VALUES (1, 1)")
        source.run("CREATE TABLE model (id INT PRIMARY KEY, c BIGINT, d INT DEFAULT 7)")
        others = {
            "typed": "(id INT PRIMARY KEY, c VARCHAR(9) DEFAULT 'x')",
            "longer": "(id INT PRIMARY KEY, c INT, d INT DEFAULT 7)",
            "made_like": "LIKE model",
        }
        for table in others:
            source.run(f"CREATE TABLE {table} (id INT PRIMARY KEY, c INT)", f"INSERT INTO {table} VALUES (1, 5)")
        source.round()
        before = source.snapshots()
        ((_, made),) = source.capture.execute("SHOW CREATE TABLE same")
        renamed = made.replace("`same`", "`_same_new`", 1).replace("`positive`", "`_positive`")
        for table, listed in {"same": "", **others}.items():
            source.run(
                f"CREATE TABLE _{table}_new {listed}" if listed else renamed,
                *(["ALTER TABLE _same_new ADD w INT"] if table == "same" else []),
                f"INSERT INTO _{table}_new (id) SELECT id FROM {table}",
                f"RENAME TABLE {table} TO _{table}_old, _{table}_new TO {table}",
                f"INSERT INTO {table} (id) VALUES (2)",
            )
        source.run("UPDATE same SET n = id")
        source.round()
        source.round()
        source.assert_equal(*others)
        assert source.lake_rows("same", "id", "n", "w") == [(1, 1, None), (2, 2, None)]
        assert source.snapshots() == before + len(others)
