"""The source's checksums: whatever the key, every row is counted once, and in the range and share that the lake puts it in."""

from __future__ import annotations

import zlib
from bisect import bisect_left
from collections import Counter

import pytest

from cdc_lib.errors import SourceError, SourceUnavailable
from cdc_lib.model import pace
from cdc_lib.model.lake_table import LakeName
from cdc_lib.model.projection import whole
from cdc_lib.model.route import Target
from cdc_lib.model.value_policy import ValuePolicy
from cdc_lib.mysql.information_schema import InformationSchema
from cdc_lib.mysql.read_only_session import answer, reading
from cdc_lib.verify.checksums import Sum, added
from cdc_lib.verify.comparability import BUCKETS, subject_of
from cdc_lib.verify.source_checksums import SourceSums
from tests.harness.binlog.capture import Capture

KEYS = {
    "integer": ("id INT PRIMARY KEY", "{n}", "ranges"),
    "unsigned": ("id BIGINT UNSIGNED PRIMARY KEY", "18446744073709551615 - {n} * {n}", "ranges"),
    "zerofill": ("id INT ZEROFILL PRIMARY KEY", "{n}", "ranges"),
    "few tenants": ("t INT, id INT, PRIMARY KEY (t, id)", "{n} DIV 25, {n}", "ranges"),
    "a tenant and a text": ("t TINYINT, k VARCHAR(9), PRIMARY KEY (t, k)", "{n} DIV 40, CONCAT('K', {n})", "ranges"),
    "text of any case": ("k VARCHAR(9) CHARACTER SET latin1 PRIMARY KEY", "CONCAT('é', {n})", "hashes"),
    "two texts": ("k VARCHAR(9), l VARCHAR(9), PRIMARY KEY (k, l)", "CONCAT('#', {n}), '#'", "hashes"),
    "bytes": ("k VARBINARY(9) PRIMARY KEY", "CHAR({n}, 0, {n})", "hashes"),
    "member": ("k ENUM('a', 'b', 'é#') PRIMARY KEY", None, "hashes"),
    "day": ("d DATE, id INT, PRIMARY KEY (d, id)", "'2024-02-28' + INTERVAL {n} DIV 3 DAY, {n}", "hashes"),
    "double": ("d DOUBLE, UNIQUE (d), id INT, PRIMARY KEY (d, id)", "{n} / 3e0, {n}", "hashes"),
    "unique": ("id INT NOT NULL, UNIQUE the_key (id)", "{n}", "ranges"),
    "none": ("id INT, j INT", "{n} DIV 3, 1", "copies"),
}


def hashed(text):
    return zlib.crc32(str(zlib.crc32(text)).encode())


@pytest.fixture
def capture(any_server, database, tmp_path):
    return Capture(any_server, database, tmp_path)


def sums_of(connection, database, rows, values=ValuePolicy()):  # noqa: B008 - frozen
    schema = InformationSchema(connection).schema(database, "a")
    lake = LakeName("lake", ("a",), "a")
    subject = subject_of(schema, whole(schema), Target(database, "a"), lake, None, {}, values)
    return SourceSums(connection, subject, rows)


@pytest.mark.parametrize("kind", KEYS)
def test_every_row_is_counted_once(capture, kind):
    """In chunks of several sizes; a key's first column may be the same in more rows than a chunk has."""
    declared, value, how = KEYS[kind]
    capture.execute(f"CREATE TABLE a ({declared}, v VARCHAR(20), w DECIMAL(9,2))")
    keys = [f"({value.format(n=n)}, 'v{n}', {n} / 4)" for n in range(1, 101)] if value else []
    keys = keys or [f"('{k}', NULL, 1)" for k in ("a", "b", "é#")]
    capture.execute(f"INSERT INTO a VALUES {', '.join(keys)}")
    with reading(capture.config.server, capture.credentials) as connection:
        one = sums_of(connection, capture.database, 1000)
        assert one.subject.how == how
        (whole_table,) = one.sums().values()
        assert whole_table.rows == len(keys)
        for rows in (1, 7, 25, 100):
            sums = sums_of(connection, capture.database, rows)
            found = sums.sums()
            assert added((0, part) for part in found.values()) == {0: whole_table}
            if how == "ranges":
                assert len(found) == len(sums.cuts) or max(found) <= len(sums.cuts)
            for number, expected in found.items():
                buckets = sums.buckets(number)
                assert added((0, part) for part in buckets.values()) == {0: expected}
                listed = sums.listed(number, buckets)
                assert sum(row.copies for row in listed) == expected.rows
                assert sum(row.copies * row.hash for row in listed) == expected.hashes
                if how != "copies":
                    assert {zlib.crc32(row.name.encode()) % BUCKETS[how] for row in listed} == set(buckets)
                seen = sums.rows({row.name: row.key for row in listed})
                assert {name: one.copies for name, one in seen.items()} == {row.name: row.copies for row in listed}


@pytest.mark.parametrize(
    ("ids", "ends"),
    [
        ([*range(1, 11), *range(16, 41)], [10, 20, 30, 40]),
        (list(range(-25, 6)), [-16, -6, 4]),
        ([1000 * n for n in range(1, 36)], [10_000, 20_000, 30_000]),
    ],
)
def test_an_integer_key_with_few_gaps_is_cut_by_its_values_and_another_one_by_its_rows(capture, ids, ends):
    """So that no statement walks over rows to find an end; each row is counted in its range."""
    capture.execute("CREATE TABLE a (id INT PRIMARY KEY)")
    capture.execute(f"INSERT INTO a VALUES {', '.join(f'({n})' for n in ids)}")
    capture.execute("ANALYZE TABLE a")
    with reading(capture.config.server, capture.credentials) as connection:
        sums = sums_of(connection, capture.database, 10)
        assert sums.ends == tuple((str(end),) for end in ends)
        expected = [bisect_left(ends, n) for n in ids]
        assert {number: one.rows for number, one in sums.sums().items()} == dict(Counter(expected))


def test_a_long_comparison_logs_its_progress(capture, monkeypatch, caplog):
    """The rows that are counted so far, with each chunk once the time for a line has come; a short one logs nothing."""
    capture.execute("CREATE TABLE a (id INT PRIMARY KEY)")
    capture.execute(f"INSERT INTO a VALUES {', '.join(f'({n})' for n in range(30))}")
    caplog.set_level("INFO", "cdc_lib")
    with reading(capture.config.server, capture.credentials) as connection:
        sums_of(connection, capture.database, 10).sums()
        assert caplog.messages == []
        monkeypatch.setattr(pace, "EVERY", 0.0)
        sums_of(connection, capture.database, 10).sums()
    lines = [line.split(" rows")[0] for line in caplog.messages]
    assert [one for one in lines if not one.endswith(": 0")][:3] == [
        f"comparing {capture.database}.a: {n}" for n in (10, 20, 30)
    ]


def test_the_text_of_a_row_is_what_the_lake_makes_of_it(capture):
    """Cells between separators, lengths of the texts, and a sign for each NULL."""
    capture.execute("CREATE TABLE a (id INT PRIMARY KEY, a VARCHAR(9), b TEXT, d DATE, n INT)")
    capture.execute("INSERT INTO a VALUES (1, 'x#y', '', '2024-02-03', NULL)")
    with reading(capture.config.server, capture.credentials) as connection:
        sums = sums_of(connection, capture.database, 10)
        assert sums.sums() == {0: Sum(1, hashed(b"1#x#y##2024-02-03#~#3#0"))}


def test_rows_that_differ_only_in_where_a_separator_is_differ(capture):
    """So do NULL and an empty text."""
    capture.execute("CREATE TABLE a (id INT PRIMARY KEY, a VARCHAR(9), b VARCHAR(9))")
    found = set()
    for values in ("'x#', 'y'", "'x', '#y'", "'x', 'y'", "NULL, 'y'", "'', 'y'", "'y', NULL", "'y', ''", "'~', 'y'"):
        capture.execute(f"REPLACE INTO a VALUES (1, {values})")
        with reading(capture.config.server, capture.credentials) as connection:
            found.add(sums_of(connection, capture.database, 10).sums()[0])
    assert len(found) == 8


def test_invalid_dates_are_null(capture):
    """As the lake has them with zero_dates: null; the row by row comparison knows partial zeros too."""
    modes = "SET sql_mode = 'ALLOW_INVALID_DATES'"
    with capture.server.connect(database=capture.database, init_command=modes) as session:
        cursor = session.cursor()
        cursor.execute("CREATE TABLE a (id INT PRIMARY KEY, d DATE NOT NULL, t DATETIME(2) NOT NULL)")
        cursor.execute("INSERT INTO a VALUES (1, '0000-00-00', '0000-00-00'), (2, '2024-00-10', '2024-02-31 10:00:00')")
        session.commit()
    with reading(capture.config.server, capture.credentials) as connection:
        sums = sums_of(connection, capture.database, 1)
        assert sums.sums()[0] == Sum(1, hashed(b"1#~#~"))
        seen = sums.rows({"1": ("1",), "2": ("2",)})
        assert {name: one.cells for name, one in seen.items()} == {"1": ("1", None, None), "2": ("2", None, None)}
        kept = sums_of(connection, capture.database, 10, ValuePolicy(zero_dates="error")).rows({"1": ("1",)})
        assert kept["1"].cells == ("1", "0000-00-00", "0000-00-00 00:00:00.00")


def test_a_session_that_reads_cannot_write(capture):
    """Whatever a statement would do; and a broken one is an error of the source's."""
    capture.execute("CREATE TABLE a (id INT PRIMARY KEY)")
    with reading(capture.config.server, capture.credentials) as connection:
        for statement in (f"INSERT INTO {capture.database}.a VALUES (1)", "SELECT nothing"):
            with pytest.raises(SourceError) as caught:
                answer(connection, statement)
            assert not isinstance(caught.value, SourceUnavailable)


def test_texts_of_several_collations_make_one_text(capture):
    """The server compares nothing here, so that it need not know which collation counts."""
    capture.execute(
        "CREATE TABLE a (k VARCHAR(9) COLLATE utf8mb4_bin PRIMARY KEY, a TEXT COLLATE utf8mb4_general_ci, "
        "b VARCHAR(9) COLLATE utf8mb4_unicode_ci, c VARCHAR(9) CHARACTER SET utf8mb3 COLLATE utf8mb3_bin, "
        "d VARCHAR(9) CHARACTER SET ucs2, e ENUM('ß') CHARACTER SET latin2, f VARCHAR(9) CHARACTER SET sjis)"
    )
    capture.execute("INSERT INTO a VALUES ('é', 'é', 'é', 'é', 'é', 'ß', '日')")
    with reading(capture.config.server, capture.credentials) as connection:
        sums = sums_of(connection, capture.database, 10)
        lengths = "2#2#2#2#1#1"  # in bytes where the character set is one of UTF-8's, else in characters
        assert sums.sums() == {0: Sum(1, hashed(f"é#é#é#é#é#ß#日#{lengths}".encode()))}
