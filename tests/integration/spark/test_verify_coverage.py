"""The key ranges of each table are compared with the source, a part in each run, and the whole within a period."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from cdc_lib.model.table_name import TableName
from cdc_lib.source import Source
from cdc_lib.store.coverage import coverages
from cdc_lib.store.cuts import last_cut
from cdc_lib.verify.coverage.due_ranges import CoverageRun
from cdc_lib.verify.source_checksums import SourceSums
from tests.harness.lake.verify import Compared
from tests.harness.shop.source import Shop
from tests.integration.drain.test_drain_types import COLUMNS
from tests.integration.spark.test_verify import CHANGES, filled

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
PERIOD, GAP = timedelta(hours=40), timedelta(hours=1)


class Covered(Compared):
    """A source whose ranges are compared every hour of a clock of its own; five chunks of four rows are a range."""

    def __init__(self, *args, **settings):
        super().__init__(*args, verify={"cover_every": "40h", "chunk_rows": 4}, **settings)
        self.now = BEGAN

    def cover(self, *patterns):
        """Compare what is due, and return what was done by table; an hour passes."""
        capture = self.capture
        run = CoverageRun(Source.over(capture.config, capture.store, capture.credentials), now=lambda: self.now)
        done = run.run(patterns)
        self.now += GAP
        return {one.table.pair[1]: one for one in done}

    def period(self):
        """Compare for a whole period, and return the wrong rows that were found, by table."""
        found = {}
        for _ in range(PERIOD // GAP):
            for name, one in self.cover().items():
                assert not one.failed, one.failed
                found.setdefault(name, []).extend(one.new_wrong)
        return {
            name: sorted((one.row.kind, *one.row.key.values(), *one.row.columns) for one in rows)
            for name, rows in found.items()
            if rows
        }

    def known(self, name):
        """Return what is stored of a table."""
        (found,) = [one for one in coverages(self.capture.store, "shop") if one.table == TableName(self.database, name)]
        return found


@pytest.fixture
def source(any_server, database, tmp_path, lake):
    return Covered(any_server, database, tmp_path, lake)


def test_wrong_rows_with_every_kind_of_key_are_found_within_a_period_and_are_known_until_they_are_equal(source):
    """Missing, extra and different rows; small tables at once, larger ones in parts; no range is late."""
    filled(source)
    assert source.period() == {}
    for name in ("tenants", "texts", "bytes", "days", "nothing"):
        known = source.known(name)
        assert (known.ratio(source.now, PERIOD), known.overdue(source.now, PERIOD)) == (1.0, False), name
        assert known.oldest.position == last_cut(source.capture.store, "shop").position
    assert len(source.known("tenants").ranges) > 2
    assert source.known("list").skipped.startswith("it has no key")
    source.unlogged(*CHANGES, "INSERT INTO nothing VALUES (1)")
    assert source.period() == {
        "tenants": [("different", "1", "30", "v"), ("different", "1", "31", "v"), ("extra", "1", "25"), ("missing", "1", "1000")],
        "texts": [("different", "É9", "v"), ("extra", "É11"), ("extra", "É7"), ("missing", "Ünew"), ("missing", "é11")],
        "bytes": [("different", "2300", "v"), ("extra", "0100")],
        "days": [("different", "2024-02-29", "v"), ("missing", "1999-12-31")],
        "nothing": [("missing", "1")],
    }  # fmt: skip
    assert len(source.known("tenants").wrong) == 4
    source.execute("UPDATE tenants SET v = 'y' WHERE id = 30")
    source.round()
    source.cover()
    assert len(source.known("tenants").wrong) == 3


def test_each_type_has_the_same_hash_on_both_sides_and_modes_and_routes_are_compared(
    any_server, database, tmp_path, lake, monkeypatch
):
    """Equal ranges need no look-up of rows: a hash that differs would be found equal row by row, at a price."""
    source = Covered(
        any_server, database, tmp_path, lake,
        modes=[{"tables": f"*.{mode}", "mode": mode} for mode in ("soft_delete", "scd2", "append")],
        routes=[{"tables": "*.part_*", "into": f"{database}.parts", "keys": ["table"]}],
    )  # fmt: skip

    def never(*_):
        raise AssertionError("the checksums of equal ranges differ")

    declared = ", ".join(f"{name} {kind}" for name, (kind, _) in COLUMNS.items())
    source.execute(f"CREATE TABLE a (id INT PRIMARY KEY, {declared})")
    for number in (0, 1):
        source.execute(f"INSERT INTO a VALUES ({number}, {', '.join(cells[number] for _, cells in COLUMNS.values())})")
    source.execute("INSERT INTO a (id) VALUES (2)")
    names = ("soft_delete", "scd2", "append", "part_1", "part_2")
    for name in names:
        source.execute(f"CREATE TABLE {name} (id INT PRIMARY KEY, v INT)")
        source.execute(f"INSERT INTO {name} VALUES (1, 1), (2, 2), (3, 3)")
    source.round()
    for name in names:
        source.execute(f"UPDATE {name} SET v = 9 WHERE id = 2")
        source.execute(f"DELETE FROM {name} WHERE id = 3")
    source.round()
    with monkeypatch.context() as unequal:
        unequal.setattr(SourceSums, "listed_between", never)
        done = source.cover()
    assert {name: one.rows for name, one in done.items() if not one.coverage.skipped} == {
        "a": 3, "soft_delete": 2, "scd2": 2, "part_1": 2, "part_2": 2,
    }  # fmt: skip
    assert source.known("append").skipped.startswith("every change is kept (append)")
    source.unlogged("UPDATE part_2 SET v = 8 WHERE id = 2", "DELETE FROM scd2 WHERE id = 1")
    assert source.period() == {"part_2": [("different", "2", "v")], "scd2": [("extra", "1")]}


def test_two_keys_that_select_shows_alike_are_found_and_stay_known_until_one_is_gone(source):
    """An earlier version made one row of the lake of them."""
    text = "VARCHAR(9) CHARACTER SET cp932 COLLATE cp932_bin"
    source.execute(f"CREATE TABLE t (id INT, k {text}, PRIMARY KEY (id, k))")
    source.execute("INSERT INTO t VALUES (1, X'81BE')")
    source.round()
    source.unlogged("INSERT INTO t VALUES (1, X'879C')")
    assert source.period() == {"t": [("copies", "1", "\u222a")]}
    assert source.period() == {}
    assert [one.row.kind for one in source.known("t").wrong] == ["copies"]
    source.unlogged("DELETE FROM t WHERE HEX(k) = '879C'")
    assert source.period() == {}
    assert source.known("t").wrong == ()


def test_a_row_that_is_not_merged_yet_is_in_flight_and_two_tasks_do_not_lose_each_others_ranges(source):
    """The later cut decides; the second of two tasks at once leaves what the first has stored."""
    source.execute("CREATE TABLE a (id INT PRIMARY KEY, v INT)")
    source.execute(f"INSERT INTO a VALUES {', '.join(f'({n}, {n})' for n in range(60))}")
    source.round()
    source.execute("UPDATE a SET v = -1 WHERE id IN (1, 2)")
    source.unlogged("UPDATE a SET v = -1 WHERE id = 3")
    first = source.cover()["a"]
    assert (first.ranges, first.rows, first.in_flight, first.new_wrong) == (1, 20, 3, ())
    source.round()
    second = source.cover()["a"]
    assert (second.in_flight, [one.row.key for one in second.new_wrong]) == (0, [{"id": "3"}])

    stored = source.known("a")

    capture = source.capture
    other = []

    def sleep(_seconds):
        if not other:
            other.append("running")
            other.append(source.cover())

    source.now += timedelta(hours=12)
    run = CoverageRun(
        Source.over(capture.config, capture.store, capture.credentials),
        now=lambda: source.now,
        sleep=sleep,
    )
    (late,) = run.run()
    assert "another task" in late.failed
    assert source.known("a") == other[1]["a"].coverage != stored


def test_a_command_compares_what_is_due_repairs_a_corrupted_row_of_the_lake_and_the_status_shows_it(
    any_server, database, tmp_path, lake, monkeypatch
):
    """A row that another writer changed in the lake, which no merge has seen."""
    shop = Shop.on_running_spark(any_server, database, tmp_path, lake, monkeypatch)
    shop.write(verify={"wait": "0s", "cover_every": "7d"})
    shop.runs(1)
    assert "no key range was compared" not in shop.cdc("cdc status shop")  # the source is young
    shop.sql("UPDATE {t} SET v = 'corrupt' WHERE id = 3")
    said = " ".join(shop.cdc("cdc verify ranges shop", 1).split())
    assert f"{database}.orders: row id=3 is different in v" in said
    assert f"{database}.lines: compared 40 rows in 1 range" in said
    status = " ".join(shop.cdc("cdc status shop").split())
    assert "100% of the rows of 2 tables were compared by ranges since" in status
    assert f"{database}.orders has wrong rows (1): id=3 is different in v" in status
    assert f"cdc verify shop {database}.orders --repair" in status
    shop.write(verify={"wait": "0s", "cover_every": "7d", "on_difference": "repair"})
    shop.cdc("cdc verify ranges shop", 1)
    assert f"{database}.orders: compared 0 rows in 0 ranges" in " ".join(shop.cdc("cdc verify ranges shop").split())
    status = " ".join(shop.cdc("cdc status shop").split())
    assert "wrong rows" not in status
    assert "oldest range:" in status
    assert "no key range is due" in shop.cdc("cdc verify ranges shop")
