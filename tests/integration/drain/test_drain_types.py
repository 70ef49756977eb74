"""Every column type arrives as SELECT shows it, out of the binlog and out of a snapshot."""

from __future__ import annotations

import pytest

from tests.harness.binlog.capture import Capture, row_metadata

COLUMNS = {
    "i8": ("TINYINT", ["-128", "127"]),
    "u8": ("TINYINT UNSIGNED", ["255", "0"]),
    "i16": ("SMALLINT", ["-32768", "32767"]),
    "u16": ("SMALLINT UNSIGNED", ["65535", "1"]),
    "i24": ("MEDIUMINT", ["-8388608", "8388607"]),
    "u24": ("MEDIUMINT UNSIGNED", ["16777215", "2"]),
    "i32": ("INT", ["-2147483648", "2147483647"]),
    "u32": ("INT UNSIGNED", ["4294967295", "2147483648"]),
    "i64": ("BIGINT", ["-9223372036854775808", "9223372036854775807"]),
    "u64": ("BIGINT UNSIGNED", ["18446744073709551615", "9223372036854775808"]),
    "flag": ("BOOLEAN", ["TRUE", "FALSE"]),
    "d1": ("DECIMAL(1,0)", ["-9", "9"]),
    "d2": ("DECIMAL(10,2)", ["-12345678.90", "0.01"]),
    "d3": ("DECIMAL(38,0)", ["-99999999999999999999999999999999999999", "99999999999999999999999999999999999999"]),
    "d4": ("DECIMAL(38,30)", ["-0.000000000000000000000000000001", "12345678.123456789012345678901234567890"]),
    "d5": ("DECIMAL(9,9)", ["-0.999999999", "0.000000001"]),
    "d6": ("DECIMAL(19,4) UNSIGNED", ["999999999999999.9999", "0"]),
    "f": ("FLOAT", ["3.14159274", "-1.17549435e-38"]),
    "g": ("DOUBLE", ["1.7976931348623157e308", "-0.1"]),
    "da": ("DATE", ["'1000-01-01'", "'9999-12-31'"]),
    "dt": ("DATETIME", ["'1969-12-31 23:59:59'", "'2024-02-29 12:34:56'"]),
    "dt6": ("DATETIME(6)", ["'1000-01-01 00:00:00.000001'", "'9999-12-31 23:59:59.999999'"]),
    "ts": ("TIMESTAMP NULL", ["'1970-01-01 00:00:01'", "'2038-01-19 03:14:07'"]),
    "ts3": ("TIMESTAMP(3) NULL", ["'2024-03-31 02:30:00.123'", "'2001-09-09 01:46:40.999'"]),
    "ti": ("TIME", ["'-838:59:59'", "'838:59:59'"]),
    "ti2": ("TIME(2)", ["'-00:00:00.01'", "'-12:34:56.78'"]),
    "ti5": ("TIME(5)", ["'-01:00:00.00001'", "'100:00:00.99999'"]),
    "y": ("YEAR", ["1901", "2155"]),
    "e": ("ENUM('x','yé','z''q','日本')", ["'yé'", "'日本'"]),
    "e1": ("ENUM('a','ü') CHARACTER SET latin1", ["'ü'", "'a'"]),
    "se": ("SET('a','b','ñ')", ["'a,ñ'", "''"]),
    "b1": ("BIT(1)", ["b'1'", "b'0'"]),
    "b10": ("BIT(10)", ["b'1000000001'", "b'11'"]),
    "b64": ("BIT(64)", ["0xFFFFFFFFFFFFFFFF", "1"]),
    "bi": ("BINARY(8)", ["x'0102000000000000'", "x''"]),
    "vb": ("VARBINARY(300)", ["x'00FF0000'", "REPEAT('z', 300)"]),
    "ch": ("CHAR(10)", ["'abc  '", "'ü€'"]),
    "chl": ("CHAR(255)", ["REPEAT('€', 255)", "''"]),
    "la": ("VARCHAR(50) CHARACTER SET latin1", ["'Müller €'", "'plain'"]),
    "a1": ("VARCHAR(20) CHARACTER SET ascii", ["'ascii'", "''"]),
    "c1": ("VARCHAR(20) CHARACTER SET cp1251", ["'Привет'", "'-'"]),
    "u3": ("VARCHAR(20) CHARACTER SET utf8mb3", ["'日本語'", "'é'"]),
    "vl": ("VARCHAR(3000)", ["REPEAT('é', 3000)", "'x'"]),
    "tt": ("TINYTEXT", ["'tiny'", "''"]),
    "tx": ("TEXT", ["'😀 emoji'", "REPEAT('x', 60000)"]),
    "mt": ("MEDIUMTEXT", ["REPEAT('é', 70000)", "''"]),
    "tb": ("TINYBLOB", ["x'00'", "x''"]),
    "bl": ("BLOB", ["x'00010203FF'", "REPEAT('b', 65535)"]),
    "lb": ("LONGBLOB", ["REPEAT('c', 100000)", "x'FE'"]),
    "j": (
        "JSON",
        [
            """'{"a":[1,2.5,-3,null,true,"x\\\\"y\\\\u0001é"],"bb":{},"c":1e20,"d":0.1,"e":1.0,"f":123456789012}'""",
            """'[1e-7, 1.7976931348623157e308, 18446744073709551615, -9223372036854775808, [[]], "\\\\n"]'""",
        ],
    ),
}
SHOWN = {
    "FLOAT": "{0} + 0e0",  # its own text has six digits
    "TIME": "CAST({0} AS CHAR)",
    "TIME(2)": "CAST({0} AS CHAR)",
    "TIME(5)": "CAST({0} AS CHAR)",
    "JSON": "CAST({0} AS CHAR)",
}


@pytest.fixture(params=["FULL", "MINIMAL", "NO_LOG"])
def capture(request, any_server, database, tmp_path):
    """Whether the stream names columns or the schema history does must make no difference."""
    with row_metadata(any_server, request.param):
        yield Capture(any_server, database, tmp_path)


def create(capture):
    """A table with a column of each type, two rows of its extremes, one of NULLs and one more of the first."""
    columns = ", ".join(f"{name} {declared}" for name, (declared, _) in COLUMNS.items())
    capture.execute(f"CREATE TABLE a (id BIGINT UNSIGNED PRIMARY KEY, {columns})")


def insert(capture):
    for number in (0, 1):
        values = ", ".join(values[number] for _, values in COLUMNS.values())
        capture.execute(f"INSERT INTO a VALUES ({number}, {values})")
    capture.execute("INSERT INTO a (id) VALUES (2), (18446744073709551615)")


def selected(capture):
    """Rows by id as SELECT shows them in UTC."""
    shown = [SHOWN.get(declared, "{0}").format(name) for name, (declared, _) in COLUMNS.items()]
    utc = "SET time_zone = '+00:00'"
    with capture.server.connect(database=capture.database, init_command=utc) as session, session.cursor() as cursor:
        cursor.execute(f"SELECT id, {', '.join(shown)} FROM a")
        return {row[0]: dict(zip(COLUMNS, row[1:], strict=True)) for row in cursor.fetchall()}


def plain(row):
    """A drained row as the driver would give it."""
    values = {name: row[name] for name in COLUMNS}
    for name in ("ts", "ts3"):
        values[name] = values[name] and values[name].replace(tzinfo=None)
    for name, size in (("b1", 1), ("b10", 2), ("b64", 8)):
        values[name] = None if values[name] is None else int(values[name]).to_bytes(size, "big")
    return values


def assert_same(capture, rows):
    wanted = selected(capture)
    found = {int(row["id"]): plain(row) for row in rows}
    assert found.keys() == wanted.keys()
    for key, row in wanted.items():
        wrong = {name: (found[key][name], value) for name, value in row.items() if found[key][name] != value}
        assert not wrong, (key, {name: str(pair)[:300] for name, pair in wrong.items()})


def test_binlog_rows_equal_select(capture):
    """For extremes and NULL of every type."""
    create(capture)
    start = capture.head()
    insert(capture)
    assert_same(capture, capture.rows(capture.drain(capture.window_from(start)), "a"))


def test_snapshot_rows_equal_select(capture):
    """The same codecs over the text of a result."""
    create(capture)
    insert(capture)
    (chunk,) = capture.snapshot("a")
    rows = capture.rows(chunk, "a")
    assert {row["_op"] for row in rows} == {"r"}
    assert_same(capture, rows)


def test_an_update_and_a_delete_carry_every_value(capture):
    """Both images are walked."""
    create(capture)
    insert(capture)
    start = capture.head()
    columns = [name for name in COLUMNS if name != "id"]
    capture.execute("UPDATE a, (SELECT * FROM a WHERE id = 0) AS x SET " + ", ".join(f"a.{n} = x.{n}" for n in columns))
    changed = capture.rows(capture.drain(capture.window_from(start)), "a")
    assert {row["_op"] for row in changed} == {"u"}
    assert_same(capture, changed + [{**row, "id": 0} for row in changed[:1]])
    start = capture.head()
    before = selected(capture)
    capture.execute("DELETE FROM a")
    gone = capture.rows(capture.drain(capture.window_from(start)), "a")
    assert {row["_op"] for row in gone} == {"d"}
    assert {int(row["id"]): plain(row) for row in gone} == before


def test_binlog_and_snapshot_agree_on_the_schema(capture):
    """Its id is the same, and so are the types of the columns in the files."""
    create(capture)
    start = capture.head()
    insert(capture)
    manifest = capture.drain(capture.window_from(start))
    (chunk,) = capture.snapshot("a")
    assert manifest.schemas.keys() == chunk.schemas.keys()
    assert capture.tables(manifest, "a")[0].schema == capture.tables(chunk, "a")[0].schema


def test_signs_belong_to_their_columns_with_any_columns_between(capture):
    """The binlog has a bit for some types and none for others; a wrong count would shift all signs after."""
    others = ["YEAR", "BIT(3)", "DECIMAL(3,1)", "FLOAT", "DOUBLE", "TIMESTAMP NULL", "DATE", "TIME", "JSON", "SET('a')"]
    columns = ", ".join(f"o{i} {kind}, u{i} TINYINT UNSIGNED, s{i} TINYINT" for i, kind in enumerate(others))
    capture.execute(f"CREATE TABLE a ({columns})")
    start = capture.head()
    names = ", ".join(f"u{i}, s{i}" for i in range(len(others)))
    capture.execute(f"INSERT INTO a ({names}) VALUES ({', '.join(['255, -1'] * len(others))})")
    (row,) = capture.rows(capture.drain(capture.window_from(start)), "a")
    assert [(row[f"u{i}"], row[f"s{i}"]) for i in range(len(others))] == [(255, -1)] * len(others)


def test_a_zero_date_becomes_null_or_stops(any_server, database, tmp_path):
    """As the source file says."""
    capture = Capture(any_server, database, tmp_path / "null")
    capture.execute("CREATE TABLE a (id INT PRIMARY KEY, d DATE, t DATETIME(3), s TIMESTAMP NULL)")
    start = capture.head()
    with any_server.connect(database=database) as session, session.cursor() as cursor:
        cursor.execute("SET sql_mode = 'ALLOW_INVALID_DATES'")
        cursor.execute("INSERT INTO a VALUES (1, '0000-00-00', '2024-00-10 00:00:00', '0000-00-00 00:00:00')")
    window = capture.window_from(start)
    (row,) = capture.rows(capture.drain(window), "a")
    (chunk,) = capture.snapshot("a")
    assert (row["d"], row["t"], row["s"]) == (None, None, None)
    (read,) = capture.rows(chunk, "a")
    assert (read["d"], read["t"], read["s"]) == (None, None, None)
    strict = Capture(any_server, database, tmp_path / "error", zero_dates="error")
    with pytest.raises(Exception, match="zero or impossible"):
        strict.drain(window)
    with pytest.raises(Exception, match="zero or impossible"):
        strict.snapshot("a")
    assert strict.visible() == []


def test_signs_are_those_of_their_columns(capture):
    """The row of signs has a bit for YEAR and FLOAT too."""
    capture.execute(
        "CREATE TABLE a (id INT PRIMARY KEY, y YEAR, b BIT(3), i INT UNSIGNED, j INT, y2 YEAR, k BIGINT UNSIGNED, l BIGINT, "
        "f FLOAT, m SMALLINT, d DECIMAL(5,2) UNSIGNED, e ENUM('a'), n TINYINT UNSIGNED, t TIMESTAMP NULL, o TINYINT)"
    )
    start = capture.head()
    capture.execute(
        "INSERT INTO a (id, i, j, k, l, m, n, o) VALUES (-1, 4294967295, -2, 18446744073709551615, -3, -4, 255, -5)"
    )
    (row,) = capture.rows(capture.drain(capture.window_from(start)), "a")
    found = [int(row[name]) for name in ("id", "i", "j", "k", "l", "m", "n", "o")]
    assert found == [-1, 4294967295, -2, 18446744073709551615, -3, -4, 255, -5]
