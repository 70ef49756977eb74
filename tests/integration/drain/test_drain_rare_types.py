"""Types and tables that are seldom seen: what the drain and the snapshot read is what SELECT shows."""

from __future__ import annotations

import datetime as dt
import hashlib
import random
from decimal import Decimal

import pytest

from cdc_lib.errors import UnsupportedValue
from cdc_lib.model.manifest import ABSENT
from cdc_lib.store import layout
from tests.harness.binlog.capture import Capture, row_metadata
from tests.harness.servers.features import has


@pytest.fixture
def capture(any_server, database, tmp_path):
    return Capture(any_server, database, tmp_path)


@pytest.fixture
def mariadb(mariadb_server, mariadb_database, tmp_path):
    return Capture(mariadb_server, mariadb_database, tmp_path)


def both(capture, statements, table="a"):
    """Run statements; return the rows of the binlog and those of the snapshot, each by their ids."""
    start = capture.head()
    for statement in statements:
        capture.execute(statement)
    manifest = capture.drain(capture.window_from(start))
    chunks = capture.snapshot(table)
    drained = {row["id"]: own(row) for row in capture.rows(manifest, table) if row["_op"] != "d"}
    read = {row["id"]: own(row) for chunk in chunks for row in capture.rows(chunk, table)}
    assert manifest.schemas.keys() == chunks[0].schemas.keys()
    partial = [one for one in capture.tables(manifest, table) if ABSENT in one.schema.names]
    whole = [one.schema for one in capture.tables(manifest, table) if ABSENT not in one.schema.names]
    assert whole == [one.schema for one in capture.tables(chunks[0], table)]
    # Images may lack hidden columns; of those that SELECT shows, none is missing.
    assert partial == [] or has(capture.server, "row images without generated columns")
    assert {text for one in partial for text in one[ABSENT].to_pylist()} <= {None}
    return drained, read


def own(row):
    return {name: value for name, value in row.items() if not name.startswith("_")}


def shown(capture, selected="*", table="a"):
    """Rows as SELECT shows them in UTC, by their ids."""
    utc = "SET time_zone = '+00:00'"
    with capture.server.connect(database=capture.database, init_command=utc) as session, session.cursor() as cursor:
        cursor.execute(f"SELECT {selected} FROM {table}")
        names = [column[0] for column in cursor.description]
        return {row[0]: dict(zip(names, row, strict=True)) for row in cursor.fetchall()}


def test_decimals_of_up_to_65_digits_are_exact_text(capture):
    """Least, greatest, zero, one unit and random ones, in keys and outside, with ZEROFILL and without a whole part."""
    types = {"d65_30": (65, 30), "d65_0": (65, 0), "d39_1": (39, 1), "d48_9": (48, 9), "d40_30": (40, 30)}
    columns = ", ".join(f"{name} DECIMAL{digits}" for name, digits in types.items())
    capture.execute(
        f"CREATE TABLE a (id DECIMAL(50, 10), {columns}, z DECIMAL(60, 5) ZEROFILL, u DECIMAL(64, 30) UNSIGNED, PRIMARY KEY (id))"
    )
    dice = random.Random(7)

    def value(precision, scale, signs=(0, 1)):
        count = dice.choice([0, 1, scale, scale + 1, precision, precision])
        digits = [dice.choice((0, 9, dice.randrange(10))) for _ in range(count)]
        return str(Decimal((dice.choice(signs), digits or [0], -scale)))

    rows = []
    for number in range(40):
        fields = ["NULL" if dice.random() < 0.1 else f"'{value(*digits)}'" for digits in types.values()]
        rows.append(f"({number - 20}.25, {', '.join(fields)}, '{value(60, 5, (0,))}', '{value(64, 30, (0,))}')")
    extremes = [f"'{sign}{'9' * (p - s)}.{'9' * s}'" for p, s in types.values() for sign in ("-",)]
    rows.append(f"({'9' * 40}.{'9' * 10}, {', '.join(extremes)}, {'9' * 55}.99999, 0)")
    drained, read = both(capture, ["INSERT INTO a VALUES " + ", ".join(rows)])
    wanted = {
        str(key): {name: None if text is None else _plain_decimal(text) for name, text in row.items()}
        for key, row in shown(capture).items()
    }
    assert len(wanted) == 41
    assert drained == wanted
    assert read == wanted


def _plain_decimal(value):
    return f"{value:f}"


def test_geometries_are_srid_and_wkb_as_select_gives_them(capture):
    """Every subtype; NULL and an empty collection too."""
    kinds = {
        "g": ("GEOMETRY", "POINT(1 2)"),
        "p": ("POINT", "POINT(-1.5 2e10)"),
        "l": ("LINESTRING", "LINESTRING(0 0,1 1,2 0)"),
        "po": ("POLYGON", "POLYGON((0 0,0 3,3 3,3 0,0 0),(1 1,1 2,2 2,2 1,1 1))"),
        "mp": ("MULTIPOINT", "MULTIPOINT(0 0,1 1)"),
        "ml": ("MULTILINESTRING", "MULTILINESTRING((0 0,1 1),(2 2,3 3))"),
        "mpo": ("MULTIPOLYGON", "MULTIPOLYGON(((0 0,0 3,3 3,3 0,0 0)))"),
        "gc": ("GEOMETRYCOLLECTION", "GEOMETRYCOLLECTION(POINT(1 1),LINESTRING(0 0,1 1))"),
    }
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in kinds.items())
    capture.execute(f"CREATE TABLE a (id INT PRIMARY KEY, {columns}, t VARCHAR(9) CHARACTER SET latin2)")
    values = ", ".join(f"ST_GeomFromText('{text}', 4326)" for _, text in kinds.values())
    plain = ", ".join(f"ST_GeomFromText('{text}')" for _, text in kinds.values())
    drained, read = both(
        capture,
        [
            f"INSERT INTO a VALUES (1, {values.replace('2e10', '20')}, 'Žluť'), (2, {plain}, 'ů')",
            "INSERT INTO a (id) VALUES (3)",
            "INSERT INTO a (id, gc) VALUES (4, ST_GeomFromText('GEOMETRYCOLLECTION EMPTY'))",
        ],
    )
    wanted = shown(capture)
    assert wanted[1]["p"][:4] == (4326).to_bytes(4, "little")
    assert drained == wanted
    assert read == wanted


@pytest.mark.needs("VECTOR columns")
def test_vectors_are_the_bytes_that_select_gives(mysql_server, mysql_database, tmp_path):
    """MySQL 9; the text after it keeps its character set."""
    capture = Capture(mysql_server, mysql_database, tmp_path)
    capture.execute("CREATE TABLE a (id INT PRIMARY KEY, v VECTOR(3), w VECTOR, t VARCHAR(9) CHARACTER SET cp1251)")
    drained, read = both(
        capture,
        ["INSERT INTO a VALUES (1, TO_VECTOR('[1,-2.5,3e10]'), TO_VECTOR('[0]'), 'Привет'), (2, NULL, NULL, NULL)"],
    )
    raw = shown(capture, "id, HEX(v) AS v, HEX(w) AS w, t")
    wanted = {
        key: {**row, "v": row["v"] and bytes.fromhex(row["v"]), "w": row["w"] and bytes.fromhex(row["w"])}
        for key, row in raw.items()
    }
    assert drained == wanted
    assert read == wanted


@pytest.mark.needs("VECTOR columns")
def test_vectors_of_mariadb_are_the_bytes_that_select_gives(mariadb):
    """The binlog declares them as VARBINARY; the text after it keeps its character set."""
    mariadb.execute("CREATE TABLE a (id INT PRIMARY KEY, v VECTOR(3), t VARCHAR(9) CHARACTER SET cp1251)")
    drained, read = both(
        mariadb, ["INSERT INTO a VALUES (1, VEC_FromText('[1,-2.5,3e10]'), 'Привет'), (2, NULL, NULL)"]
    )
    wanted = {
        key: {**row, "v": row["v"] and bytes.fromhex(row["v"])}
        for key, row in shown(mariadb, "id, HEX(v) AS v, t").items()
    }
    assert drained == wanted
    assert read == wanted


@pytest.mark.needs("timestamps after 2038")
def test_timestamps_after_2038_are_read(mariadb):
    """MariaDB takes their seconds as a number without a sign."""
    mariadb.execute("CREATE TABLE a (id INT PRIMARY KEY, t TIMESTAMP(6) NULL)")
    drained, read = both(
        mariadb, ["INSERT INTO a VALUES (1, '2106-02-07 06:28:15.999999'), (2, '2038-01-19 03:14:08')"]
    )
    wanted = {key: {**row, "t": row["t"].replace(tzinfo=dt.UTC)} for key, row in shown(mariadb, "id, t").items()}
    assert drained == wanted
    assert read == wanted


@pytest.mark.needs("UUID and INET4 columns")
def test_inet_and_uuid_are_their_bytes_in_binlog_and_snapshot(mariadb):
    """The binlog declares them as BINARY(n): both hold what CAST AS BINARY shows; a key of them too."""
    mariadb.execute("CREATE TABLE a (u UUID PRIMARY KEY, id INT, i4 INET4, i6 INET6, b BINARY(16))")
    drained, read = both(
        mariadb,
        [
            "INSERT INTO a VALUES ('f81d4fae-7dec-11d0-a765-00a0c91e6b00', 1, '1.2.3.0', '2001:db8::', X'01')",
            "INSERT INTO a VALUES (UUID(), 2, '0.0.0.0', '::', X''), ('9b2c6a1e-3f4d-4c8b-9f00-112233445566', 3, NULL, NULL, NULL)",
            "INSERT INTO a VALUES ('00000000-0000-0000-0000-000000000000', 4, '255.255.255.255', '::ffff:1.2.3.4', NULL)",
        ],
    )
    text = "id, CAST(u AS BINARY(16)) AS u, CAST(i4 AS BINARY(4)) AS i4, CAST(i6 AS BINARY(16)) AS i6, b"
    wanted = shown(mariadb, text)
    assert drained == read
    assert {key: {name: row[name] for name in wanted[key]} for key, row in drained.items()} == wanted
    assert drained[1]["u"].hex() == "f81d4fae7dec11d0a76500a0c91e6b00"
    assert drained[1]["i6"].hex() == "20010db8" + "0" * 24


@pytest.mark.parametrize("wrap", ["OFF", "ON"])
def test_compressed_columns_are_unpacked(mariadb, wrap):
    """Empty, short (kept as they are), long and NULL, in a character set of their own, with the zlib header and without."""
    mariadb.execute(
        "CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(4000) COMPRESSED CHARACTER SET cp1251, t TEXT COMPRESSED CHARACTER SET latin1, "
        "b BLOB COMPRESSED, vb VARBINARY(300) COMPRESSED, m MEDIUMTEXT COMPRESSED, z VARCHAR(9) CHARACTER SET latin2)"
    )
    with mariadb.server.connect(database=mariadb.database) as session, session.cursor() as cursor:
        start = mariadb.head()
        cursor.execute(f"SET GLOBAL column_compression_zlib_wrap = {wrap}")
        cursor.execute(f"SET column_compression_zlib_wrap = {wrap}")
        cursor.execute(
            "INSERT INTO a VALUES (1, REPEAT('Привет', 500), REPEAT('Müller', 900), REPEAT(X'00FF', 20000), REPEAT('z', 300), "
            "REPEAT('日本', 100000), 'Ž'), (2, '', '', '', '', '', ''), (3, 'ю', 'é', X'00', X'0000', '日', 'ů')"
        )
        cursor.execute("INSERT INTO a (id) VALUES (4)")
    manifest = mariadb.drain(mariadb.window_from(start))
    (chunk,) = mariadb.snapshot("a")
    wanted = shown(mariadb)
    for found in (manifest, chunk):
        assert {row["id"]: own(row) for row in mariadb.rows(found, "a")} == wanted


def test_old_temporals_of_mariadb_stop_unless_promised_to_be_whole(mariadb_server, mariadb_database, tmp_path):
    """The binlog does not tell their fraction; without one they are read exactly, as dates and as text."""
    mariadb_server.execute("SET GLOBAL mysql56_temporal_format = OFF")
    try:
        mariadb_server.execute(
            "CREATE TABLE a (id INT PRIMARY KEY, s TIMESTAMP NULL, t DATETIME, c TIME, d DATE, z VARCHAR(5))",
            database=mariadb_database,
        )
    finally:
        mariadb_server.execute("SET GLOBAL mysql56_temporal_format = ON")
    capture = Capture(mariadb_server, mariadb_database, tmp_path / "error")
    start = capture.head()
    capture.execute(
        "INSERT INTO a VALUES (1, '1970-01-02 00:00:01', '1000-01-01 00:00:00', '-838:59:59', '1000-01-01', 'x'), "
        "(2, '2038-01-19 03:14:07', '9999-12-31 23:59:59', '838:59:59', '9999-12-31', 'y'), (3, NULL, NULL, NULL, NULL, NULL), "
        "(4, '2024-02-29 12:34:56', '2024-02-29 12:34:56', '00:00:00', '2024-02-29', ''), "
        "(5, '2024-02-29 12:34:56', '2024-02-29 12:34:56', '-00:00:01', '2024-02-29', '')"
    )
    window = capture.window_from(start)
    with pytest.raises(UnsupportedValue, match=r"does not contain its fraction.*mysql56_temporal_format=ON") as caught:
        capture.drain(window)
    assert caught.value.context["table"] == f"{mariadb_database}.a"
    whole = Capture(mariadb_server, mariadb_database, tmp_path / "whole", legacy_temporals="no_fraction")
    wanted = shown(whole, "id, s, t, CAST(c AS CHAR) AS c, d, z")
    (chunk,) = whole.snapshot("a")
    for manifest in (whole.drain(window), chunk):
        found = {row["id"]: own(row) for row in whole.rows(manifest, "a")}
        for row in found.values():
            row["s"] = row["s"] and row["s"].replace(tzinfo=None)
        assert found == wanted
    text = Capture(
        mariadb_server, mariadb_database, tmp_path / "text", legacy_temporals="no_fraction", zero_dates="string"
    )
    wanted = shown(text, "id, CAST(s AS CHAR) s, CAST(t AS CHAR) t, CAST(c AS CHAR) AS c, CAST(d AS CHAR) d, z")
    (chunk,) = text.snapshot("a")
    for manifest in (text.drain(window), chunk):
        assert {row["id"]: own(row) for row in text.rows(manifest, "a")} == wanted


def test_dates_are_kept_as_text_where_asked_for(any_server, database, tmp_path):
    """Zero, partial and real ones, as SELECT shows them, in keys and outside; the lake's type is string."""
    capture = Capture(any_server, database, tmp_path, zero_dates="string", snapshot={"chunk_rows": 3})
    capture.execute(
        "CREATE TABLE a (d DATE, id INT, t DATETIME, t6 DATETIME(6), t1 DATETIME(1), s TIMESTAMP NULL, s3 TIMESTAMP(3) NULL, "
        "PRIMARY KEY (d, id))"
    )
    start = capture.head()
    with any_server.connect(database=database) as session, session.cursor() as cursor:
        cursor.execute("SET sql_mode = 'ALLOW_INVALID_DATES', time_zone = '+00:00'")
        zero, partial = "0000-00-00 00:00:00", "2024-00-10 01:02:03.456789"
        cursor.execute(
            f"INSERT INTO a VALUES ('0000-00-00', 1, '{zero}', '{zero}', '{zero}', '{zero}', '{zero}'), "
            f"('2024-00-10', 2, '{partial}', '{partial}', '2023-02-31 00:00:00.9', '1970-01-01 00:00:01', '2000-02-29 23:59:59.999'), "
            "('9999-12-31', 3, '9999-12-31 23:59:59', '9999-12-31 23:59:59.999999', '1000-01-01', '2038-01-19 03:14:07', NULL), "
            "('1969-12-31', 4, '1970-01-01', '1970-01-01', '2000-03-01', '2024-12-31 23:59:59', '2024-02-29 00:00:00.001'), "
            "('2023-02-31', 5, NULL, NULL, NULL, NULL, '2001-01-01 00:00:00')"
        )
    window = capture.window_from(start)
    names = ("t", "t6", "t1", "s", "s3")
    wanted = shown(capture, "id, CAST(d AS CHAR) AS d, " + ", ".join(f"CAST({n} AS CHAR) AS {n}" for n in names))
    assert wanted[1]["t6"] == "0000-00-00 00:00:00.000000"
    chunks = capture.snapshot("a")
    assert {c.type.lake_type for schema in chunks[0].schemas.values() for c in schema.columns} == {"int", "string"}
    for manifests in ([capture.drain(window)], chunks):
        rows = [row for manifest in manifests for row in capture.rows(manifest, "a")]
        assert len(rows) == 5
        assert {row["id"]: own(row) for row in rows} == wanted


def test_members_years_bits_and_floats_at_their_edges(capture):
    """ENUM 0, YEAR 0000, BIT of every width, -0.0 and subnormal numbers bit for bit, ZEROFILL, BINARY's trailing zeros."""
    bits = ", ".join(f"b{n} BIT({n})" for n in range(1, 65))
    capture.execute(
        f"CREATE TABLE a (id INT PRIMARY KEY, e ENUM('x', 'y'), s SET('p', 'q'), y YEAR, f FLOAT, d DOUBLE, fd FLOAT(10, 2), "
        f"dd DOUBLE(20, 3), z INT(10) ZEROFILL, zb BIGINT(25) ZEROFILL, bi BINARY(4), vb VARBINARY(4), {bits})"
    )
    start = capture.head()
    with capture.server.connect(database=capture.database) as session, session.cursor() as cursor:
        cursor.execute("SET sql_mode = ''")
        for key, (e, s, y, f, d) in enumerate(
            [
                ("'bad'", "''", "0", "-0e0", "-0e0"),
                ("'y'", "'q,p'", "2155", "1e-45", "5e-324"),
                ("1", "3", "'0000'", "-1e-45", "1e-310"),
            ]
        ):
            values = ", ".join(str((1 << n) - 1 if key else 1 << (n - 1)) for n in range(1, 65))
            cursor.execute(
                f"INSERT INTO a VALUES ({key}, {e}, {s}, {y}, {f}, {d}, 12345.67, -0.125, 42, 18446744073709551615, X'0100', X'0100', {values})"
            )
        cursor.execute("INSERT INTO a (id) VALUES (9)")
        raw = ", ".join(f"b{n} + 0 AS b{n}" for n in range(1, 65))
        rest = "id, e, s, y, f * 1e0 AS f, d, fd * 1e0 AS fd, dd, z, zb, bi, vb"
        cursor.execute(f"SELECT {rest}, {raw} FROM a")
        names = [column[0] for column in cursor.description]
        wanted = {row[0]: dict(zip(names, row, strict=True)) for row in cursor.fetchall()}
    (chunk,) = capture.snapshot("a")
    for manifest in (capture.drain(capture.window_from(start)), chunk):
        found = {row["id"]: own(row) for row in capture.rows(manifest, "a")}
        assert found == wanted
        # -0.0 equals 0.0: its text does not.
        assert {k: (str(r["f"]), str(r["d"])) for k, r in found.items()} == {
            k: (str(r["f"]), str(r["d"])) for k, r in wanted.items()
        }
    assert wanted[0]["e"] == ""
    without = capture.server.flavor == "mariadb" and capture.server.release[:2] in {
        (10, 11),
        (11, 8),
    }  # they make -0e0 a 0
    assert str(wanted[0]["d"]) == ("0.0" if without else "-0.0")


SIGNS = [
    r"a\\b",
    "it''s",
    r"new\nline",
    r"cr\rx",
    r"nul\0x",
    'q"q',
    r"tab\tx",
    "日本",
    "",
    "trail\\\\",
    r"z\Zz",
    "%",
    r"\\_",
    "a b",
]
"""Labels with what SQL, JSON or a schema's text may take for something else, as they are in a statement."""


@pytest.mark.parametrize("metadata", ["FULL", "MINIMAL", "NO_LOG"])
def test_labels_of_every_number_and_sign_are_those_of_select(any_server, database, tmp_path, metadata):
    """ENUM of one byte and two, SET of one to eight bytes with its first and its last label; in a key, too."""
    capture = Capture(any_server, database, tmp_path)
    sizes = (1, 8, 9, 16, 17, 24, 25, 32, 33, 64)
    signs = ", ".join(f"'{sign}'" for sign in SIGNS)

    def labels(letter, count):
        return ", ".join(f"'{letter}{n}'" for n in range(count))

    columns = ", ".join(f"s{n} SET({labels('m', n)})" for n in sizes)
    with row_metadata(any_server, metadata):
        capture.execute(
            f"CREATE TABLE a (id INT, e ENUM({labels('e', 255)}), f ENUM({labels('f', 256)}), g ENUM({labels('g', 3000)}), {columns}, "
            f"x ENUM({signs}), y ENUM({signs}) CHARACTER SET gbk, z SET({signs.replace(', ' + chr(39) * 2, '')}), PRIMARY KEY (g, s64, id))"
        )
        full = ", ".join(str(2**n - 1) for n in sizes)
        last = ", ".join(str(2 ** (n - 1)) for n in sizes)
        rows = [f"({n}, 1, 1, 1, {last}, {n}, {n}, {2 ** (n - 1) if n < 14 else 0})" for n in range(1, 15)]
        rows += [f"(20, 255, 256, 3000, {full}, 1, 1, 8191)", f"(21, NULL, NULL, 257, {full}, NULL, NULL, NULL)"]
        drained, read = both(capture, [f"INSERT INTO a VALUES {', '.join(rows)}"])
    wanted = shown(capture)
    assert (wanted[1]["x"], wanted[3]["x"], wanted[5]["y"], wanted[10]["z"]) == (
        "a\\b",
        "new\nline",
        "nul\0x",
        "z\x1az",
    )
    assert drained == wanted
    assert read == wanted


def test_lengths_around_a_byte_are_read(capture):
    """A length takes two bytes from 256 on, by the declared bytes and not by the value's: full, empty and NULL."""
    latin, binary = "CHARACTER SET latin1", "VARBINARY"
    kinds = [f"{kind}({n}) {latin}" for kind in ("VARCHAR", "CHAR") for n in (254, 255)]
    kinds += [f"VARCHAR({n}) {latin}" for n in (256, 257)] + [f"{binary}({n})" for n in (254, 255, 256, 257)]
    kinds += [f"{kind}({n}) CHARACTER SET utf8mb4" for kind in ("VARCHAR", "CHAR") for n in (63, 64, 255)] + [
        "BINARY(255)"
    ]
    if capture.server.flavor == "mariadb":
        kinds += [f"VARCHAR({n}) COMPRESSED {latin}" for n in (253, 254, 255, 256)]
        kinds += [f"{binary}({n}) COMPRESSED" for n in (253, 254, 255, 256)] + [
            "TINYTEXT COMPRESSED",
            "TINYBLOB COMPRESSED",
        ]
    names = ", ".join(f"c{i} {kind}" for i, kind in enumerate(kinds))
    capture.execute(f"CREATE TABLE a (id INT PRIMARY KEY, {names}, z INT)")

    def row(key, size):
        values = []
        for kind in kinds:
            declared = kind.partition("(")[2].partition(")")[0] or "250"
            values.append(f"REPEAT('{'😀' if 'utf8mb4' in kind else 'x'}', LEAST({size}, {declared}))")
        return f"({key}, {', '.join(values)}, {key})"

    rows = [row(key, size) for key, size in enumerate((0, 1, 63, 64, 252, 253, 254, 255, 256, 999))]
    drained, read = both(capture, [f"INSERT INTO a VALUES {', '.join(rows)}", "INSERT INTO a (id) VALUES (77)"])
    wanted = shown(capture)
    assert len(wanted[9]["c5"]) == 257
    assert drained == wanted
    assert read == wanted


@pytest.mark.needs("invisible columns")
def test_generated_and_invisible_columns_are_read(capture):
    """Stored and virtual ones, and one that SELECT * leaves out."""
    capture.execute(
        "CREATE TABLE a (id INT PRIMARY KEY, v INT GENERATED ALWAYS AS (id * 2) VIRTUAL, "
        "s VARCHAR(9) GENERATED ALWAYS AS (CONCAT('n', id)) STORED, i INT INVISIBLE DEFAULT 7, w INT)"
    )
    drained, read = both(capture, ["INSERT INTO a (id, w) VALUES (1, 2)", "INSERT INTO a (id, i) VALUES (2, 3)"])
    wanted = shown(capture, "id, v, s, i, w")
    assert drained == wanted
    assert read == wanted


@pytest.mark.needs("multi-valued indexes")
def test_indexes_over_expressions_add_no_column(mysql_server, mysql_database, tmp_path):
    """MySQL keeps hidden columns for them, multi-valued ones too; rows do not carry these."""
    capture = Capture(mysql_server, mysql_database, tmp_path)
    capture.execute(
        "CREATE TABLE a (id INT PRIMARY KEY, j JSON, w INT, KEY ((w + 5)), KEY mv ((CAST(j->'$.t' AS UNSIGNED ARRAY))))"
    )
    drained, read = both(capture, ["""INSERT INTO a VALUES (1, '{"t": [1, 2]}', 3), (2, NULL, NULL)"""])
    assert drained == read == shown(capture)


def test_hashes_of_long_unique_keys_add_no_column(mariadb):
    """MariaDB keeps them in columns that SELECT does not show; partial images have them too."""
    mariadb.execute(
        "CREATE TABLE a (id INT PRIMARY KEY, b BLOB UNIQUE, v INT, t TEXT CHARACTER SET latin1, UNIQUE (t))"
    )
    drained, read = both(
        mariadb,
        [
            "INSERT INTO a VALUES (1, 'x', 1, 'ü'), (2, 'y', 2, NULL), (3, 'z', 3, 'gone')",
            "UPDATE a SET b = CONCAT(b, 'more')",
            "DELETE FROM a WHERE id = 3",
        ],
    )
    del drained[3]
    assert drained == read == shown(mariadb)
    assert set(read[1]) == {"id", "b", "v", "t"}
    start = mariadb.head()
    with mariadb.server.connect(database=mariadb.database) as session, session.cursor() as sql:
        sql.execute("SET SESSION binlog_row_image = 'MINIMAL'")
        sql.execute("UPDATE a SET t = 'é', v = 7 WHERE id = 1")
    (row,) = mariadb.rows(mariadb.drain(mariadb.window_from(start)), "a")
    assert (own(row), row["_absent"]) == ({"id": 1, "b": None, "v": 7, "t": "é"}, "+-++")


@pytest.mark.parametrize("metadata", ["FULL", "MINIMAL"])
@pytest.mark.parametrize("again", ["BINARY VARBINARY BINARY", "VARBINARY BINARY VARBINARY"])
@pytest.mark.parametrize("key", [" PRIMARY KEY", ""])
def test_bytes_of_a_fixed_and_of_a_varying_length_are_told_apart_in_one_window(
    any_server, database, tmp_path, metadata, again, key
):
    """The binlog has BINARY without the zeros at its end; columns of one length were read as the first of them in the window."""
    with row_metadata(any_server, metadata):
        capture = Capture(any_server, database, tmp_path)
        start = capture.head()
        for number, kind in enumerate(again.split()):
            capture.execute("DROP TABLE IF EXISTS a")
            capture.execute(f"CREATE TABLE a (v {kind}(5) NOT NULL{key}, n INT)")
            capture.execute(f"INSERT INTO a VALUES ('x', {number})")
        manifest = capture.drain(capture.window_from(start))
        rows = [(row["n"], row["v"]) for row in capture.rows(manifest, "a")]
    lengths = {"BINARY": 5, "VARBINARY": 1}
    assert rows == [(number, b"x".ljust(lengths[kind], b"\0")) for number, kind in enumerate(again.split())]


HASHED = {
    "nullable": "a TEXT, b INT, UNIQUE (a)",
    "not null": "a TEXT NOT NULL, b INT NOT NULL, UNIQUE (a), UNIQUE (b)",
    "only key": "a BLOB NOT NULL, b INT, UNIQUE (a)",
    "long": "a VARCHAR(2000) CHARACTER SET utf8mb4 NOT NULL, b INT NOT NULL, UNIQUE (b, a)",
    "several": "a TEXT, b INT PRIMARY KEY, UNIQUE (a, b), UNIQUE (b) USING HASH",
    "prefix": "a TEXT NOT NULL, b INT NOT NULL, UNIQUE (a(9))",
    "in memory": "a VARCHAR(99), b INT NOT NULL, UNIQUE (b)) ENGINE=MEMORY COMMENT='keys (by hash'",
}


@pytest.mark.parametrize("metadata", ["FULL", "MINIMAL", "NO_LOG"])
@pytest.mark.parametrize("seen", ["by the plan", "in the window"])
@pytest.mark.parametrize("name", HASHED)
def test_a_unique_key_that_is_a_hash_neither_identifies_rows_nor_adds_a_column(
    mariadb_server, mariadb_database, tmp_path, metadata, seen, name
):
    """Snapshot and binlog agree on columns and key, also after a column that comes before the hash."""
    made = f"CREATE TABLE a ({HASHED[name]}" + ("" if "ENGINE" in HASHED[name] else ")")
    with row_metadata(mariadb_server, metadata):
        capture = Capture(mariadb_server, mariadb_database, tmp_path, start="latest")
        if seen == "by the plan":
            capture.execute(made)
        assert not capture.pipeline.plan(by="test")
        if seen != "by the plan":
            capture.execute(made)
        capture.execute("ALTER TABLE a ADD COLUMN n BIGINT UNSIGNED AFTER a")
        capture.execute("INSERT INTO a VALUES ('x', 5, 1), ('y', NULL, 2)")
        capture.execute("UPDATE a SET n = 6 WHERE b = 1")
        (window,) = capture.pipeline.plan(by="test")
        capture.pipeline.drain(window)
        manifest = capture.manifest(layout.manifest_key(window))
        (chunk,) = capture.snapshot("a")
        drained = {(row["_op"], row["b"]): own(row) for row in capture.rows(manifest, "a")}
        read = {row["b"]: own(row) for row in capture.rows(chunk, "a")}
    assert manifest.quarantined == ()
    assert manifest.schemas.keys() == chunk.schemas.keys()
    assert {1: drained["u", 1], 2: drained["c", 2]} == read
    assert set(read[1]) == {"a", "n", "b"}


@pytest.mark.parametrize("metadata", ["FULL", "MINIMAL"])
@pytest.mark.needs("generated invisible primary keys")
def test_a_primary_key_that_the_server_made_is_read_whether_it_is_shown_or_not(
    mysql_server, mysql_database, tmp_path, metadata
):
    """sql_generate_invisible_primary_key: the binlog has it even where information_schema hides it."""
    mysql_server.execute("SET GLOBAL show_gipk_in_create_table_and_information_schema = OFF")
    try:
        with row_metadata(mysql_server, metadata):
            capture = Capture(mysql_server, mysql_database, tmp_path)
            with mysql_server.connect(database=mysql_database) as session, session.cursor() as sql:
                sql.execute("SET SESSION sql_generate_invisible_primary_key = ON")
                sql.execute("CREATE TABLE a (id INT, v INT)")
                drained, read = both(
                    capture, ["INSERT INTO a VALUES (7, 1), (8, 1)", "UPDATE a SET v = 2 WHERE id = 8"]
                )
    finally:
        mysql_server.execute("SET GLOBAL show_gipk_in_create_table_and_information_schema = ON")
    assert drained == read == shown(capture, "id, my_row_id, v")
    assert drained[8] == {"my_row_id": 2, "id": 8, "v": 2}


@pytest.mark.needs("columns added and dropped in place anywhere")
def test_columns_added_and_dropped_in_place_are_followed(capture):
    """Rows of before and after ALGORITHM=INSTANT."""
    capture.execute("CREATE TABLE a (id INT PRIMARY KEY, x VARCHAR(9), y INT)")
    start = capture.head()
    capture.execute("INSERT INTO a VALUES (1, 'one', 1)")
    capture.execute("ALTER TABLE a ADD COLUMN n INT DEFAULT 5, ALGORITHM=INSTANT")
    capture.execute("ALTER TABLE a ADD COLUMN m VARCHAR(9) CHARACTER SET latin1 DEFAULT 'é' FIRST, ALGORITHM=INSTANT")
    capture.execute("INSERT INTO a (id, x, y) VALUES (2, 'two', 2)")
    capture.execute("ALTER TABLE a DROP COLUMN x, ALGORITHM=INSTANT")
    capture.execute("UPDATE a SET y = 10 WHERE id = 1")
    changed = capture.rows(capture.drain(capture.window_from(start)), "a")
    assert [(row["_op"], row["id"], row.get("x"), row.get("n"), row.get("m")) for row in changed] == [
        ("c", 1, "one", None, None), ("c", 2, "two", 5, "é"), ("u", 1, None, 5, "é"),
    ]  # fmt: skip
    (chunk,) = capture.snapshot("a")
    assert {row["id"]: own(row) for row in capture.rows(chunk, "a")} == shown(capture, "id, m, y, n")


def test_a_table_of_a_thousand_columns_is_read(capture):
    """More than one byte holds, in the count, the bitmaps and the character sets."""
    kinds = (
        "INT",
        "SMALLINT UNSIGNED",
        "VARCHAR(5) CHARACTER SET latin1",
        "DECIMAL(9,3)",
        "ENUM('a','ü') CHARACTER SET latin2",
    )
    values = ("-7", "65535", "'é'", "-1.5", "'ü'")
    columns = ", ".join(f"c{n} {kinds[n % 5]}" for n in range(999))
    capture.execute(f"CREATE TABLE a (id INT PRIMARY KEY, {columns})")
    rows = ", ".join(
        f"({key}, {', '.join(values[n % 5] if (n + key) % 3 else 'NULL' for n in range(999))})" for key in range(30)
    )
    drained, read = both(capture, [f"INSERT INTO a VALUES {rows}", "UPDATE a SET c0 = 1, c998 = 2.25"])
    wanted = shown(capture)
    assert len(wanted[0]) == 1000
    assert drained == wanted
    assert read == wanted


def test_values_of_seventy_mebibytes_are_read(capture):
    """Events and rows of many packets, beside small ones, out of binlog and snapshot."""
    size = 70 << 20
    before = capture.execute("SELECT @@GLOBAL.max_allowed_packet")[0][0]
    capture.execute("SET GLOBAL max_allowed_packet = 268435456")
    try:
        capture.execute("CREATE TABLE a (id INT PRIMARY KEY, b LONGBLOB, t LONGTEXT CHARACTER SET latin1)")
        start = capture.head()
        capture.execute("INSERT INTO a VALUES (1, 'small', 'é')")
        capture.execute(f"INSERT INTO a VALUES (2, REPEAT(X'00FF17', {size // 3}), REPEAT('é', {20 << 20}))")
        capture.execute("INSERT INTO a VALUES (3, REPEAT('z', 16777215 - 30), NULL), (4, NULL, REPEAT('y', 16777216))")
        digests = "id, SHA2(b, 256) AS b, SHA2(CONVERT(t USING utf8mb4), 256) AS t"
        wanted = shown(capture, digests)
        (chunk,) = capture.snapshot("a")
        for manifest in (capture.drain(capture.window_from(start)), chunk):
            rows = [row for table in capture.tables(manifest, "a") for row in table.to_pylist()]
            assert {
                row["id"]: {"id": row["id"], "b": _digest(row["b"]), "t": _digest(row["t"])} for row in rows
            } == wanted
    finally:
        capture.execute(f"SET GLOBAL max_allowed_packet = {before}")


def _digest(value):
    if value is None:
        return None
    return hashlib.sha256(value if isinstance(value, bytes) else value.encode()).hexdigest()
