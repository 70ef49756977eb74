"""Two writers of one lake table, the second of which runs whole while the first one waits at a labelled point of its own.

Whatever the order, no row is lost and none is there twice: after both, and one more merge of everything, the table equals its source.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest

from cdc_lib.config import Credentials
from cdc_lib.config.maintenance import MaintenanceConfig
from cdc_lib.config.routes import RouteRule
from cdc_lib.errors import MergeConflict, MergeError
from cdc_lib.lake.routing import lake_merges
from cdc_lib.merge.plan import StoredBatch
from cdc_lib.model.backfill import BackfillRequest, Period
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor, Move
from cdc_lib.model.lake_table import Reselected
from cdc_lib.model.manifest import Manifest
from cdc_lib.model.position import Point
from cdc_lib.pipeline import Pipeline
from cdc_lib.reselect.result import Reread
from cdc_lib.store import documents
from cdc_lib.store.cursors import ObjectCursorStore
from cdc_lib.store.objects.local import LocalStore
from cdc_lib.verify.lake import RepairRequest
from spark_jobs.backfill import backfill
from spark_jobs.iceberg import lake_table, upkeep
from spark_jobs.maintain import maintain
from spark_jobs.merging.repair import SparkRepairer
from tests.chaos.labelled_merge import CHORES, COMMITS, TIDYING
from tests.harness.lake.batches import BIGINT, IDENTITY, INT, START_TIME, Row, at, table
from tests.harness.lake.running import Lake

LOAD = {"the first look at the table": (lake_table.IcebergTable, "load")}
CREATION, COLUMNS = "the creation of a table", "the change of a table's columns"
NEVER = (
    "the renaming of columns",
    "the dropping of columns",
    "the change of a table's key",
    "the publication of a table that begins again",
)
"""Points that no writer of these tests comes to."""
POINTS = {**LOAD, **{name: where for name, where in COMMITS.items() if name not in NEVER}}
FILES = (
    ("all_data_files", "file_path"),
    ("all_delete_files", "file_path"),
    ("all_manifests", "path"),
    ("snapshots", "manifest_list"),
    ("metadata_log_entries", "file"),
)
"""Where Iceberg tells which files a table has."""
SHARED = 1000
"""Keys of the other source begin here."""
EARLY = MaintenanceConfig(keep_snapshots_for=timedelta(hours=1), min_small_files=2, max_deleted_ratio=0.01)
MODES = {"mirror": ("id",), "soft_delete": ("id",), "scd2": ("id",), "append": ()}


class Reader:
    """Hands a repair the rows that the source has: those of a batch that was read."""

    def __init__(self, read):
        self._read = read

    def read(self, *_):
        return self._read()


class Writers:
    """A lake table, what its source did, and everything that writes it.

    The first window is merged, unless the lake table is still to be created. The second one is what the merge brings; the third
    waits for the end. From the second window on, the table may have one more column.
    """

    def __init__(self, lake, mode, point=""):
        self.mode, self.created, self.wider = mode, point != CREATION, point == COLUMNS
        routes = (RouteRule(tables=f"{lake.database}*.orders", into=f"{lake.database}.orders"),)
        self.lake = self._lake(lake, "shop", routes)
        self.other = self._lake(lake, "second", routes)
        self.orders = table(f"{lake.database}.orders", {"id": BIGINT, "v": INT}, MODES[mode])
        self.others = table(f"{lake.database}_2.orders", {"id": BIGINT, "v": INT}, MODES[mode])
        first = [Row("c", 10 + i, {"id": i, "v": 1}) for i in range(1, 7)]
        second = [
            self._update(110, 1, 2),
            self._update(111, 2, 2),
            self._delete(112, 3),
            Row("c", 113, {"id": 7, "v": 2}),
        ]
        third = [self._update(210, 1, 3), self._delete(211, 4), Row("c", 212, {"id": 8, "v": 3})]
        self.changes = [first, second, third]
        narrow = self.orders
        if self.wider:
            self.orders = table(narrow.name, {"id": BIGINT, "v": INT, "w": INT}, MODES[mode])
            second, third = ([replace(row, values=self._wide(row.values)) for row in rows] for rows in (second, third))
        self.windows = [
            self.lake.batches.window(start, start + 100 if start > 4 else 100, {schema: rows})
            for start, schema, rows in ((4, narrow, first), (100, self.orders, second), (200, self.orders, third))
        ]
        # Plans are made by hand here; only the backfill asks where the source is.
        self.cursors = ObjectCursorStore(LocalStore(lake.store.root.parent / "cursors"))
        for name, stop in ((DRAIN, 300), (LAKE, 100)):
            moves = (Move(START_TIME, "start", None, at(4)),)
            self.cursors.swap(None, Cursor("shop", name, 0, 1, IDENTITY, at(stop), moves=moves))
        if self.created:
            self.lake.merge(self.lake.batches.plan(100, self.windows[0]))
        self.chunks = 0

    def _lake(self, lake, source, routes):
        config = lake.config.model_copy(
            update={"source": source, "routes": routes, "start": "earliest", "maintenance": EARLY}
        )
        if self.mode not in ("mirror", "append"):
            plain = {**config.model_dump(mode="json"), "modes": [{"tables": "*.*", "mode": self.mode}]}
            config = config.model_validate(plain)
        made = Lake(lake.spark, config, lake.store)
        made.database, made.batches.source = lake.database, source
        return made

    def _wide(self, values):
        """Add the column that the table has from the second window on."""
        return {**values, "w": values["v"]} if self.wider else values

    @staticmethod
    def _update(offset, key, value):
        return Row("u", offset, {"id": key, "v": value})

    @staticmethod
    def _delete(offset, key):
        return Row("d", offset, {"id": key, "v": 0})

    # --- the writers

    def merge(self):
        """Bring the second window, and the first one to a table that is not created; the same however often it is asked for."""
        self.lake.merge(self.lake.batches.plan(200, *self.windows[int(self.created) : 2]))

    def backfill(self):
        """Bring what the lake cursor has after it once more."""
        pipeline = Pipeline(self.lake.config, Credentials("", ""), self.lake.store, self.cursors)
        wanted = BackfillRequest(Period(), (self.orders.name,))
        backfill(self.lake.spark, self.lake.config, pipeline, wanted, self.lake.said.append)

    def repair(self):
        """Read three rows of the source as it is at the end, of which one is deleted by then."""
        share = lake_merges(self.lake.config, [self.orders.name])[0]
        subject = SimpleNamespace(lake=share.name, constants={}, keys=())
        wrong = RepairRequest(subject, share.routed_tables[0].target, self.orders, (), Point(1, 1, 100))
        repairer = SparkRepairer(self.lake.spark, self.lake.config, self.lake.store, Reader(self._reread))
        assert repairer.repair(wrong) == ""

    def _reread(self):
        self.chunks += 1
        values = [self._wide({"id": key, "v": value}) for key, value in ((1, 3), (6, 1))]
        key = self.lake.batches.chunk(self.orders, 300, values, snapshot=f"read-{self.chunks}")
        batch = StoredBatch(key, documents.load(Manifest, self.lake.store.get(key).data, key))
        return Reread(batch, 2, 0, Reselected(Point(1, 1, 300), Point(1, 1, 300)))

    def snapshot(self):
        """Take the table again, as of the place after the third window."""
        values = [self._wide({"id": key, "v": value}) for key, value in sorted(self.source().items())]
        chunk = self.lake.batches.chunk(self.orders, 300, values, snapshot="s-again")
        self.lake.merge(self.lake.batches.plan(100, chunk))

    def other_source(self):
        """Bring rows of another source's table into the same lake table."""
        rows = [Row("c", 10 + i, {"id": SHARED + i, "v": 9}) for i in range(3)]
        self.other.merge(self.other.batches.plan(100, self.other.batches.window(4, 100, {self.others: rows})))

    def maintain(self):
        """Write files again in key order, and remove old snapshots."""
        config = self.lake.config.model_copy(update={"maintenance": EARLY})
        name = lake_merges(config, [self.orders.name])[0].name
        maintain(self.lake.spark, config, self.lake.store, [name], self.lake.said.append)

    def foreign_delete(self):
        """Somebody else's commit, which takes a row that nothing of this touches; it is a row less."""
        self.lake.spark.sql(f"DELETE FROM {self.lake.name(self.orders.name)} WHERE id = 5")
        self.changes.append([self._delete(290, 5)])

    # --- what is right

    def source(self):
        rows = {}
        for window in self.changes:
            for row in window:
                if row.op == "d":
                    rows.pop(row.values["id"], None)
                else:
                    rows[row.values["id"]] = row.values["v"]
        return rows

    def check(self, *ran):
        """Merge everything once more, and compare."""
        self.merge()
        self.lake.merge(self.lake.batches.plan(300, self.windows[2]))
        shared = range(SHARED, SHARED + 3 * ("other_source" in ran))
        expected, found = [*sorted(self.source().items()), *((key, 9) for key in shared)], self.rows()
        if self.mode == "append":
            taken = ((15, 5), (290, 5)) if "foreign_delete" in ran else ()
            changes = {(row.offset, row.values["id"]) for window in self.changes for row in window if row.op != "r"}
            expected = sorted([*changes.difference(taken), *((10 + i, key) for i, key in enumerate(shared))])
            found = sorted(one for one in self.lake.rows(self.orders.name, "_offset", "id") if one[0] != 300)
        if "foreign_delete" in ran and {"backfill", "snapshot"} & set(ran):
            # They bring the row again if they came last.
            place = 1 if self.mode == "append" else 0
            assert len([one for one in found if one[place] == 5]) <= 1
            expected, found = ([one for one in rows if one[place] != 5] for rows in (expected, found))
        assert found == expected
        if self.mode == "scd2":
            versions = self.lake.rows(self.orders.name, "id", "_epoch", "_binlog", "_offset", "_row")
            assert len(versions) == len(set(versions))
        if self.wider:
            rows = set(self.lake.rows(self.orders.name, "id", "v", "w"))
            assert (8, 3, 3) in rows
            assert all(w in (None, v) for _, v, w in rows)
        main = self.lake.target(self.orders.name)._java()
        assert [str(name) for name in main.refs().keySet()] == ["main"]

    def rows(self):
        where = {"scd2": " WHERE _is_current", "soft_delete": " WHERE NOT _is_deleted"}.get(self.mode, "")
        frame = self.lake.spark.sql(f"SELECT id, v FROM {self.lake.name(self.orders.name)}{where}")
        return sorted((row.id, row.v) for row in frame.collect())


@pytest.fixture
def overlapped(lake, monkeypatch):
    """Run one writer, and at a point of it another; return what was compared with."""

    def run(mode, first, second, when, deed):
        writers, passed = Writers(lake, mode, deed), []
        owner, name = {**POINTS, **CHORES, **TIDYING}[deed]
        if deed in TIDYING:
            monkeypatch.setattr(upkeep, "SMALL_FILES", 1)
        real = getattr(owner, name)

        def around(*arguments, **named):
            if when == "before" and not passed:
                passed.append(True)
                getattr(writers, second)()
            result = real(*arguments, **named)
            if when == "after" and not passed:
                passed.append(True)
                getattr(writers, second)()
            return result

        with monkeypatch.context() as patch:
            patch.setattr(owner, name, around)
            # A person asks again where another commit came first.
            with suppress(MergeConflict):
                getattr(writers, first)()
        assert passed, f"{first} never came to {deed}"
        with suppress(MergeConflict):
            getattr(writers, first)()
        writers.check(first, second)

    return run


@pytest.fixture
def interleaved(lake, monkeypatch):
    """Run one writer to a point, another to a point, the first to its end, and then the second to its end."""

    def run(mode, first, first_deed, second, second_deed):
        writers, reached, go_on = Writers(lake, mode), threading.Event(), threading.Event()
        beside, passed = threading.Thread(target=lambda: _asked_for(writers, second)), []

        def after(deed):
            if deed == first_deed and not passed:
                passed.append(first)
                beside.start()
                assert reached.wait(60), f"{second} never came to {second_deed}"
            elif deed == second_deed and passed == [first]:
                passed.append(second)
                reached.set()
                assert go_on.wait(60)

        def around(real, deed):
            def wrapped(*arguments, **named):
                result = real(*arguments, **named)
                after(deed)
                return result

            return wrapped

        with monkeypatch.context() as patch:
            for deed in {first_deed, second_deed}:
                owner, name = POINTS[deed]
                patch.setattr(owner, name, around(getattr(owner, name), deed))
            _asked_for(writers, first)
            keys = [key for key, _ in writers.rows()]  # before the second one writes these rows again
            go_on.set()
            beside.join(90)
        assert len(keys) == len(set(keys))
        assert passed == [first, second]
        assert not beside.is_alive()
        writers.check(first, second)

    return run


def _asked_for(writers, name):
    """Do what a person asks for, who may have to ask again."""
    with suppress(MergeConflict):
        getattr(writers, name)()


MERGES = ("merge", "backfill", "repair", "snapshot", "other_source")
ALL = (*MERGES, "maintain")


def _never(first, deed):
    """Whether a writer never comes to a point."""
    if deed in CHORES:
        return first != "maintain"
    if first == "maintain":
        return True
    # A backfill does no maintenance, and like a repair it needs a table.
    return first in ("backfill", "repair") and (deed in TIDYING or deed == CREATION)


def _needs_a_table(second, deed):
    """Whether a writer cannot run before the table is created."""
    return deed == CREATION and second in ("repair", "foreign_delete", "maintain")


def _is_not_for_lists(first, second):
    """Whether a list has no such writers.

    It is not repaired; its snapshot is planned with an entry of its own; and a backfill is refused in a list that two tables share.
    """
    return bool({"repair", "snapshot"} & {first, second}) or {"backfill", "other_source"} <= {first, second}


EVERY_PAIR = [
    (mode, first, second, when, deed)
    for mode in MODES
    for first in ALL
    for second in (*ALL, "foreign_delete")
    for deed in (*POINTS, *CHORES, *TIDYING)
    for when in ("before", "after")
    if not _never(first, deed)
    and not _needs_a_table(second, deed)
    and not (mode == "append" and _is_not_for_lists(first, second))
]

ESSENTIAL = [
    ("mirror", "merge", "backfill", "after", "the writing of the rows"),
    ("mirror", "backfill", "merge", "after", "the writing of the rows"),
    ("mirror", "backfill", "merge", "before", "the commit of the rows"),
    ("mirror", "merge", "other_source", "after", "the writing of the rows"),
    ("mirror", "merge", "merge", "before", "the writing of the rows"),
    ("mirror", "merge", "snapshot", "after", "the writing of the rows"),
    ("mirror", "merge", "other_source", "before", "the writing of the rows"),
    ("mirror", "merge", "maintain", "after", "the writing of the rows"),
    ("mirror", "maintain", "merge", "before", "the removal of old snapshots"),
    ("mirror", "repair", "merge", "after", "the first look at the table"),
    ("mirror", "merge", "foreign_delete", "before", "the commit of the rows"),
    ("scd2", "backfill", "merge", "before", "the writing of the rows"),
    ("append", "merge", "merge", "after", "the first look at the table"),
    ("append", "backfill", "merge", "before", "the writing of the rows"),
    ("mirror", "snapshot", "merge", "after", "the writing of the rows"),
    ("mirror", "maintain", "backfill", "before", "the rewriting of files"),
    ("mirror", "backfill", "repair", "after", "the first look at the table"),
    ("mirror", "other_source", "merge", "before", CREATION),
    ("mirror", "merge", "other_source", "after", COLUMNS),
    ("mirror", "merge", "backfill", "before", "the tidying of a table"),
    ("soft_delete", "backfill", "repair", "before", "the commit of the rows"),
    ("scd2", "snapshot", "merge", "before", "the writing of the rows"),
]


@pytest.mark.parametrize(("mode", "first", "second", "when", "deed"), ESSENTIAL)
def test_two_concurrent_writers_neither_lose_nor_duplicate_a_row(overlapped, mode, first, second, when, deed):
    overlapped(mode, first, second, when, deed)


@pytest.mark.parametrize(
    ("first", "first_deed", "second", "second_deed"),
    [
        ("merge", "the first look at the table", "backfill", "the writing of the rows"),
        ("backfill", "the writing of the rows", "merge", "the first look at the table"),
        ("backfill", "the writing of the rows", "merge", "the writing of the rows"),
    ],
)
def test_a_new_writer_does_not_disturb_a_running_one(interleaved, first, first_deed, second, second_deed):
    """Whoever ends first; the other one notices."""
    interleaved("mirror", first, first_deed, second, second_deed)


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize(("mode", "first", "second", "when", "deed"), EVERY_PAIR)
def test_no_pair_of_writers_loses_or_duplicates_a_row_at_any_point(overlapped, mode, first, second, when, deed):
    overlapped(mode, first, second, when, deed)


def test_a_merge_with_a_wrong_row_count_publishes_nothing(lake, monkeypatch):
    """The table has a key twice, as an error of before left it: the merge that meets it stops, with what to do."""
    writers = Writers(lake, "mirror")
    name = writers.lake.name(writers.orders.name)
    lake.spark.sql(f"INSERT INTO {name} SELECT * FROM {name}")
    before = writers.rows()
    with pytest.raises(MergeError, match="does not add up") as caught:
        writers.merge()
    assert not caught.value.retryable
    assert f"cdc snapshot shop {writers.orders.name}" in caught.value.hint
    assert writers.rows() == before


def test_a_merge_leaves_one_snapshot_and_no_file_that_nothing_names(lake):
    """The rows keep ids of their own."""
    writers = Writers(lake, "mirror")
    java = writers.lake.target(writers.orders.name)._java()
    before = lake.snapshots(writers.orders.name)
    writers.merge()
    java.refresh()
    assert lake.snapshots(writers.orders.name) == before + 1
    assert java.currentSnapshot().operation() == "overwrite"
    ids = [row[0] for row in lake.spark.sql(f"SELECT _row_id FROM {writers.lake.name(writers.orders.name)}").collect()]
    assert len(ids) == len(set(ids)) == 6
    assert None not in ids
    name = writers.lake.name(writers.orders.name)
    known = {
        row[0] for view, column in FILES for row in lake.spark.sql(f"SELECT {column} FROM {name}.{view}").collect()
    }
    home = Path(urlsplit(str(java.location())).path)
    found = {path.name for path in home.rglob("*") if path.is_file() and not path.name.endswith(".crc")}
    assert found == {Path(urlsplit(path).path).name for path in known}
    writers.check()
