"""How far back stored batches show every change of a table: gaps, overlaps, quarantine, renames, row images, keys, XA."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from cdc_lib.model.manifest import Manifest, QuarantinedTable
from cdc_lib.model.position import Point
from cdc_lib.model.quarantine import Fault, QuarantineRecord
from cdc_lib.model.schema_policy import DEFAULT_POLICY, SchemaPolicy
from cdc_lib.model.stored_window import StoredWindow
from cdc_lib.model.table_name import TableName
from cdc_lib.read.archive.manifests import TableManifests, may_concern, of_table
from cdc_lib.read.archive.reach import Floor, reach_of, tail
from cdc_lib.read.cache import Cache
from cdc_lib.store import documents
from cdc_lib.store.manifests import load_manifest
from cdc_lib.store.objects.local import LocalStore
from cdc_lib.store.windows import stored_windows
from tests.harness.lake.batches import BIGINT, TEXT, BatchWriter, Row, at, table

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ORDERS = table("shop.orders", {"id": BIGINT, "v": TEXT})
OTHER = table("shop.lines", {"id": BIGINT, "v": TEXT})
BEGIN = "the first one"


def point(offset, epoch=1):
    return Point(epoch, 1, offset)


def window(start, stop, epoch=1):
    return StoredWindow(f"{epoch}:{start}-{stop}", point(start, epoch), point(stop, epoch), NOW)


def bounds(*windows, end):
    return [(one.window.key, one.low.offset, one.high.offset) for one in tail(windows, point(end))]


@pytest.mark.parametrize(
    ("windows", "end", "expected"),
    [
        ([window(4, 10), window(10, 20)], 20, [("1:4-10", 4, 10), ("1:10-20", 10, 20)]),
        ([window(4, 10), window(12, 20), window(20, 30)], 30, [("1:12-20", 12, 20), ("1:20-30", 20, 30)]),
        ([window(4, 10), window(10, 20)], 10, [("1:4-10", 4, 10)]),
        ([window(4, 10), window(10, 20)], 15, [("1:4-10", 4, 10), ("1:10-20", 10, 15)]),
        ([window(4, 10)], 20, []),
        ([], 20, []),
        ([window(4, 10, epoch=2), window(10, 20)], 20, [("1:10-20", 10, 20)]),
        ([window(4, 16), window(8, 12), window(12, 20), window(16, 20)], 20, [("1:4-16", 4, 12), ("1:12-20", 12, 20)]),
        ([window(4, 20), window(4, 30), window(20, 30)], 30, [("1:4-30", 4, 30)]),
    ],
    ids=["all", "a gap", "until the end", "inside a window", "a gap at the end", "none", "epochs", "overlap", "wider"],
)  # fmt: skip
def test_windows_are_followed_back_to_the_first_gap(windows, end, expected):
    """Where they overlap, rows of one window count at each point."""
    assert bounds(*windows, end=end) == bounds(*reversed(windows), end=end) == expected


class Batches:
    """Windows of the tables in a store, and what they know of the orders."""

    def __init__(self, folder):
        self.store = LocalStore(folder)
        self.writer = BatchWriter(self.store)
        self.changed = {}

    def window(self, start, stop, *rows, schema=ORDERS, **more):
        """Write a window with changes of a table."""
        return self.writer.window(start, stop, {schema: rows} if rows else {}, **more)

    def reach(self, *, end=None, records=(), captured=None, policy=DEFAULT_POLICY, until=None):
        """Return what the windows know."""
        windows = stored_windows(self.store, "shop")
        end = windows[-1].stop if end is None else point(end)
        slices = [(one, self.manifest(one.window.key)) for one in tail(windows, end)]
        begin = Floor(slices[0][0].low if slices else end, BEGIN)
        return reach_of(ORDERS.name, slices, begin, captured, records, ORDERS.primary_key, policy, until=until or end)

    def manifest(self, key):
        """Return what a manifest has of the orders."""
        manifest = load_manifest(self.store, key)
        return of_table(self.changed.get(key, lambda one: one)(manifest), ORDERS.name)


@pytest.fixture
def batches(tmp_path):
    """Three windows: two with changes of the orders, and one of another table between them."""
    made = Batches(tmp_path)
    made.window(4, 104, change("c", 10, 1))
    made.window(104, 204, change("c", 110, 1), schema=OTHER)
    made.window(204, 304, change("u", 210, 1))
    return made


def change(op, offset, key, **more):
    return Row(op, offset, {"id": key, "v": str(offset)}, **more)


def ends(reach):
    """First point, reason, and the bounds of each file, newest first."""
    return reach.floor.point.offset, reach.floor.why, [(one.low.offset, one.high.offset) for one in reach.parts]


def test_files_are_those_of_the_table_newest_first(batches):
    assert ends(batches.reach()) == (4, BEGIN, [(204, 304), (4, 104)])
    assert ends(batches.reach(until=point(206))) == (4, BEGIN, [(204, 206), (4, 104)])
    assert ends(batches.reach(until=point(204))) == (4, BEGIN, [(4, 104)])
    assert ends(batches.reach(end=204)) == (4, BEGIN, [(4, 104)])


def test_a_table_is_followed_since_its_first_snapshot_or_its_first_change(batches):
    """A window before that has none of its changes, because nobody looked for them."""
    why = "the source began to follow the table there"
    assert ends(batches.reach(captured=point(150))) == (4, BEGIN, [(204, 304), (4, 104)])
    batches.store.delete(
        [key for key in (one.key for one in stored_windows(batches.store, "shop")) if "000000000004-" in key]
    )
    assert ends(batches.reach()) == (104, BEGIN, [(204, 304)])
    assert ends(batches.reach(captured=point(150))) == (150, why, [(204, 304)])
    assert ends(batches.reach(captured=point(290))) == (204, why, [(204, 304)])


QUARANTINED = "the table was quarantined, or a new snapshot replaced its changes"


def record(start, released=None, *, fault=None, name="orders"):
    ends = {"released_position": at(released), "released_epoch": 1, "snapshot_id": "s2"} if released else {}
    return QuarantineRecord(
        TableName("shop", name), 1, at(start), at(start), at(start), fault, None, NOW, "test", **ends
    )


@pytest.mark.parametrize("fault", [None, Fault(at(110), "unknown_event", "?")], ids=["a new snapshot", "a fault"])
def test_windows_that_leave_out_the_table_end_its_history(batches, fault):
    """By where the window starts, as in a merge; also without a fault, where a new snapshot was requested."""
    assert ends(batches.reach(records=[record(104, 204, fault=fault)])) == (204, QUARANTINED, [(204, 304)])
    assert ends(batches.reach(records=[record(104, 150, fault=fault)])) == (204, QUARANTINED, [(204, 304)])
    assert ends(batches.reach(records=[record(150, 204, fault=fault)])) == (4, BEGIN, [(204, 304), (4, 104)])
    assert ends(batches.reach(records=[record(104, fault=fault)])) == (304, QUARANTINED, [])
    assert ends(batches.reach(records=[record(104, name="lines", fault=fault)]))[0] == 4
    # The lake table is as of the quarantine's start, and has the history before it.
    assert ends(batches.reach(records=[record(104, fault=fault)], until=point(104))) == (4, BEGIN, [(4, 104)])


def test_a_window_in_which_the_table_is_quarantined_ends_its_history(batches):
    key = batches.window(304, 404, change("u", 310, 1))
    batches.window(404, 504, change("u", 410, 1))
    faulty = QuarantinedTable(ORDERS.name, Fault(at(350), "unknown_event", "?"))
    batches.changed[key] = lambda one: replace(one, quarantined=(faulty,))
    assert ends(batches.reach()) == (404, QUARANTINED, [(404, 504)])


def test_rows_under_other_names_are_no_versions(batches):
    """They begin after the statement, inside of its window."""
    batches.window(
        304, 404, change("u", 310, 1), change("u", 350, 1), statements=[("rename_columns", "shop.orders", 320)]
    )
    assert ends(batches.reach()) == (321, "columns of the table were renamed", [(321, 404)])


def test_rows_without_all_columns_are_no_versions(batches):
    batches.window(304, 404, change("u", 310, 1, absent=frozenset({"v"})))
    batches.window(404, 504, change("u", 410, 1))
    assert ends(batches.reach()) == (404, "rows lack columns, because binlog_row_image is not FULL", [(404, 504)])


def test_rows_with_another_key_are_no_versions(batches):
    batches.window(304, 404, change("u", 310, 1), schema=replace(ORDERS, primary_key=("id", "v")))
    batches.window(404, 504, change("u", 410, 1))
    assert ends(batches.reach()) == (404, "the key of the table was another one", [(404, 504)])
    batches.window(504, 604, change("u", 510, 1), schema=replace(ORDERS, primary_key=("ID",)))
    assert ends(batches.reach())[0] == 404


def test_rows_of_an_xa_transaction_count_where_it_is_committed(batches):
    """Also in a later window; a transaction that was rolled back has none."""
    prepared = batches.window(
        304, 404, prepared={"x": (310, {ORDERS: [change("u", 310, 1)]}), "y": (330, {ORDERS: [change("u", 330, 1)]})}
    )
    batches.window(404, 504, decided={"x": (410, True), "y": (420, False)})
    reach = batches.reach()
    assert ends(reach) == (4, BEGIN, [(404, 504), (404, 504), (204, 304), (4, 104)])
    assert [[one.decision.xid for one in part.commits] for part in reach.parts] == [["x"], ["x"], [], []]
    assert [part.file.path.rpartition("/")[2] for part in reach.parts[:2]] == [
        "prepared-00000.parquet",
        "prepared-00001.parquet",
    ]
    assert {part.manifest for part in reach.parts[:2]} == {prepared}
    assert ends(batches.reach(until=point(410)))[2] == [(204, 304), (4, 104)]


def test_a_transaction_whose_rows_are_not_stored_ends_the_history(batches):
    """It may have changed any table."""
    batches.window(304, 404, decided={"x": (350, True)})
    batches.window(404, 504, change("u", 410, 1))
    why = "an XA transaction is committed whose rows are in an earlier batch"
    assert ends(batches.reach()) == (351, why, [(404, 504)])
    batches.window(504, 604, decided={"z": (550, False)})
    assert ends(batches.reach())[0] == 351


def test_a_transaction_that_was_prepared_before_the_floor_is_not_known(batches):
    """A window that does not decode the table has none of its rows, and lists none."""
    batches.window(304, 404, prepared={"x": (310, {OTHER: [change("u", 310, 1)]})})
    batches.window(404, 504, decided={"x": (410, True)})
    assert ends(batches.reach())[0] == 4
    assert ends(batches.reach(records=[record(304, 404)]))[0] == 411


def resets(reach):
    return [one.offset if one in reach.removals else -one.offset for one in reach.resets]


def test_statements_that_remove_all_rows_are_known(batches):
    """And those that create the table, here with a minus; as the lake follows them; not those before the floor, and not those of other tables."""
    statements = [("truncate", "shop.orders", 310), ("truncate", "shop.lines", 320), ("drop", "shop.*", 330)]
    batches.window(304, 404, statements=[*statements, ("create_if_missing", "shop.orders", 340)])
    batches.window(404, 504, statements=[("create", "shop.orders", 410), ("drop", "club.*", 420)])
    assert resets(batches.reach()) == [310, 330, -340, -410]
    assert resets(batches.reach(until=point(320))) == [310]
    assert resets(batches.reach(policy=SchemaPolicy(truncate="keep"))) == [330, -340, -410]
    batches.window(504, 604, statements=[("rename_columns", "shop.orders", 520), ("truncate", "shop.orders", 530)])
    assert resets(batches.reach()) == [530]


@pytest.mark.parametrize(
    ("rows", "more", "concerns"),
    [
        ({ORDERS: [change("c", 10, 1)]}, {}, True),
        ({OTHER: [change("c", 10, 1)]}, {}, False),
        ({}, {"statements": [("drop", "shop.*", 20)]}, True),
        ({}, {"statements": [("drop", "shop.lines", 20)]}, False),
        ({}, {"statements": [("truncate", "shop.orders", 20)]}, True),
        ({}, {"decided": {"x": (20, True)}}, True),
        ({}, {"prepared": {"x": (20, {})}}, True),
        ({}, {}, False),
    ],
    ids=["rows", "other rows", "its database", "another statement", "a statement", "a decision", "a prepare", "nothing"],
)  # fmt: skip
def test_the_bytes_of_a_manifest_tell_whether_it_must_be_read(tmp_path, rows, more, concerns):
    """What is not read has nothing of the table."""
    store = LocalStore(tmp_path)
    stored = store.get(BatchWriter(store).window(4, 104, rows, **more))
    assert may_concern(stored.data, ORDERS.name) == concerns
    kept = of_table(documents.load(Manifest, stored.data, ""), ORDERS.name)
    assert (kept is not None) == concerns


def test_windows_that_are_removed_after_they_were_listed_end_the_history(batches):
    """With those before them; what comes back later is read again."""
    slices = tail(stored_windows(batches.store, "shop"), point(304))
    manifests, key = TableManifests(batches.store, Cache(), ORDERS.name), slices[1].window.key
    removed = batches.store.get(key).data
    batches.store.delete([key])
    assert [one.low.offset for one, _ in manifests.of(slices)] == [204]
    batches.store.put(key, removed)
    found = manifests.of(slices)
    assert [(one.low.offset, kept is not None) for one, kept in found] == [(4, True), (104, False), (204, True)]


def test_names_that_json_escapes_are_found_in_the_bytes(tmp_path):
    store = LocalStore(tmp_path)
    odd = table('shop.`a"b\\ä`', {"id": BIGINT})
    stored = store.get(BatchWriter(store).window(4, 104, {odd: [Row("c", 10, {"id": 1})]}))
    assert may_concern(stored.data, odd.name)
    assert not may_concern(stored.data, ORDERS.name)
