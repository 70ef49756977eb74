"""Where statements removed the rows of a table, and what a merge leaves out because of them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_lib.errors import SchemaChangeStopped, ValuesNotLogged
from cdc_lib.lake.routing import RoutedTable
from cdc_lib.merge.contribution import Contribution
from cdc_lib.merge.live_rows import has_rows_after
from cdc_lib.merge.load import load_batches, load_plan
from cdc_lib.merge.plan import TableWork, refuse_unclear, tables_of, work_on
from cdc_lib.merge.stopped_statements import refuse_statements
from cdc_lib.merge.table_resets import expand_database_statements, statement_effects
from cdc_lib.model.ddl_effect import AddedDefault, TableStatement
from cdc_lib.model.lake_table import LakeTable, Marker, PlacedDefault, Shadow
from cdc_lib.model.position import Point
from cdc_lib.model.quarantine import QuarantineRecord
from cdc_lib.model.route import Target
from cdc_lib.model.schema_policy import SchemaPolicy
from cdc_lib.model.table_name import TableName
from cdc_lib.store.objects.local import LocalStore
from tests.harness.lake.batches import BIGINT, START_TIME, BatchWriter, Row, at, table

ORDERS = table("shop.orders", {"id": BIGINT})
VIEWS = table("shop.views", {"id": BIGINT}, key=())
KINDS = ("truncate", "drop", "create", "create_if_missing", "swap")


@pytest.fixture(scope="module")
def writer(tmp_path_factory):
    return BatchWriter(LocalStore(tmp_path_factory.mktemp("store")))


def manifests(writer, *statements, start=4, stop=1000):
    """Return the manifest of one window with statements (kind, offset) on the orders."""
    writer.plans += 1
    source = BatchWriter(writer.store, f"s{writer.plans}")
    key = source.window(start, stop, {}, statements=[(kind, ORDERS.name, offset) for kind, offset in statements])
    return [batch.manifest for batch in load_batches(writer.store, [key])]


def point(offset):
    return Point(1, 1, offset)


@pytest.mark.parametrize(
    ("statements", "dropped", "before", "after"),
    [
        ([("truncate", 10), ("truncate", 20)], None, 20, None),
        ([("drop", 10)], None, None, 10),
        ([("drop", 10), ("create", 20)], None, 20, None),
        ([("create", 20)], None, 20, None),
        ([("create_if_missing", 20)], None, None, None),
        ([("create_if_missing", 20)], 3, 20, None),
        ([("drop", 10), ("create_if_missing", 20), ("create_if_missing", 30)], None, 20, None),
        ([("swap", 20)], None, None, None),
        ([("truncate", 5), ("drop", 10)], None, 5, 10),
    ],
)
def test_the_last_statement_that_removed_rows_applies(writer, statements, dropped, before, after):
    """A CREATE that may have done nothing applies only after a DROP, also an old one."""
    found = statement_effects(
        ORDERS.name, manifests(writer, *statements), None, Marker(dropped=dropped and point(dropped))
    )
    assert (found.before, found.dropped) == (before and point(before), after and point(after))


@pytest.mark.parametrize(
    ("policy", "statements", "before", "kept", "resets"),
    [
        (SchemaPolicy(truncate="keep"), [("truncate", 10), ("truncate", 20)], None, [10, 20], []),
        (SchemaPolicy(truncate="keep"), [("truncate", 10), ("drop", 20), ("create", 30)], 30, [], [20, 30]),
        (SchemaPolicy(truncate="keep", drop_table="follow"), [("truncate", 10), ("drop", 20)], 20, [], [20]),
        (SchemaPolicy(drop_table="follow"), [("drop", 10)], 10, [], [10]),
        (SchemaPolicy(drop_table="keep"), [("drop", 10)], None, [], []),
        (SchemaPolicy(drop_table="keep"), [("drop", 10), ("create", 20)], 20, [], [20]),
        (SchemaPolicy(), [("truncate", 10), ("drop", 20)], 10, [], [10, 20]),
    ],
)
def test_the_policy_decides_which_statements_remove_rows(writer, policy, statements, before, kept, resets):
    """A table that is created again begins without the earlier rows, also those that were kept."""
    found = statement_effects(ORDERS.name, manifests(writer, *statements), None, Marker(), policy)
    assert (found.before, found.kept) == (before and point(before), tuple(map(point, kept)))
    assert [one.offset for one in found.resets] == resets


def test_a_snapshot_replaces_the_rows_since_the_last_kept_statement_before_it(writer):
    """Also if a later one came in the same merge; rows of before an earlier CREATE go in any case."""
    work = TableWork(ORDERS.name, "mirror", (), Marker(), kept=(point(10), point(20), point(90)))
    ends = [(rebuild, work.kept_before(point(rebuild))) for rebuild in (5, 15, 50)]
    assert ends == [(5, None), (15, point(10)), (50, point(20))]
    routed = RoutedTable("shop", "orders", Target("shop", "orders"))
    state = LakeTable((), ("id",), "mirror", Marker(point(4)), 7, 1, {ORDERS.name: Marker(point(4))})

    def removed(**changed):
        rules = Contribution(routed, replace(work, **changed), ()).superseded("s", state)
        return [(rule.since and rule.since.offset, rule.before.offset) for rule in rules]

    assert removed(rebuild_before=point(50)) == [(20, 50)]
    assert removed(rebuild_before=point(50), reset_before=point(15)) == [(None, 15), (20, 50)]
    assert removed(rebuild_before=point(50), kept=()) == [(None, 50)]
    assert removed(reset_before=point(95)) == [(None, 95)]


@pytest.mark.parametrize(
    ("kind", "key", "words"),
    [("truncate", "truncate", "ran TRUNCATE"), ("drop", "drop_table", "dropped the table")],
)
def test_a_statement_stops_a_table_once(writer, kind, key, words):
    """Merged statements, those of other tables and other kinds do not."""
    windows, policy = manifests(writer, (kind, 10)), SchemaPolicy(**{key: "stop"})
    with pytest.raises(SchemaChangeStopped, match=rf"{words} at .*:10, .*schema_changes\.{key}: stop"):
        refuse_statements(ORDERS.name, policy, windows, point(10))
    refuse_statements(ORDERS.name, policy, windows, point(11))
    refuse_statements(VIEWS.name, policy, windows, None)
    refuse_statements(ORDERS.name, SchemaPolicy(**{key: "keep"}), windows, None)


def test_renamed_columns_stop_a_table(writer):
    (window,) = manifests(writer)
    rename = TableStatement("rename_columns", ORDERS.name, at(10), names=(("a", "b"),))
    window = replace(window, statements=(rename,))
    with pytest.raises(
        SchemaChangeStopped, match=r"renamed columns \(a to b\) at .*schema_changes\.rename: stop"
    ) as stop:
        refuse_statements(ORDERS.name, SchemaPolicy(rename="stop"), [window], None)
    assert "Set schema_changes.rename to follow for" in stop.value.hint


@given(kinds=st.lists(st.sampled_from(KINDS), max_size=8), cut=st.integers(0, 8))
def test_it_does_not_matter_how_windows_are_cut(writer, kinds, cut):
    """The effects of earlier windows are enough for later ones; merged statements apply once."""
    placed = [(kind, 10 + 10 * i) for i, kind in enumerate(kinds)]
    whole = statement_effects(ORDERS.name, manifests(writer, *placed), None, Marker())
    middle = 10 + 10 * cut - 5
    first = statement_effects(ORDERS.name, manifests(writer, *placed[:cut], stop=middle), None, Marker())
    second = statement_effects(ORDERS.name, manifests(writer, *placed), point(middle), Marker(dropped=first.dropped))
    assert second.dropped == whole.dropped
    assert (second.before or first.before) == whole.before


def test_a_statement_without_rows_applies_to_its_table(writer):
    """A statement on a whole database names no table yet."""
    source = BatchWriter(writer.store, "alone")
    key = source.window(4, 100, {}, statements=[("truncate", ORDERS.name, 10), ("drop", "other.*", 20)])
    batches = load_batches(writer.store, [key])
    assert tables_of(batches) == (ORDERS.name,)
    work = work_on(ORDERS.name, "mirror", batches, Marker(point(4)), source.plan(100, key))
    assert work.reset_before == point(10)
    assert [piece.floor for piece in work.inputs] == [point(10)]
    assert work.marker.merged_to == point(100)
    again = work_on(ORDERS.name, "mirror", batches, work.marker, source.plan(100, key))
    assert (again.inputs, again.reset_before) == ((), None)


def test_chunks_before_a_statement_are_left_out_too(writer):
    """Rows that still exist come with later changes."""
    source = BatchWriter(writer.store, "chunks")
    chunk = source.chunk(ORDERS, 50, [{"id": 1}])
    late = source.chunk(ORDERS, 90, [{"id": 2}], number=1)
    key = source.window(40, 200, {ORDERS: [Row("c", 110, {"id": 3})]}, statements=[("truncate", ORDERS.name, 80)])
    batches = load_batches(writer.store, [chunk, late, key])
    work = work_on(ORDERS.name, "mirror", batches, Marker(), source.plan(200, chunk, late, key))
    assert [piece.floor for piece in work.inputs] == [point(80)] * 3


def test_an_append_table_keeps_earlier_changes(writer):
    """As any table without a key."""
    source = BatchWriter(writer.store, "views")
    key = source.window(4, 100, {VIEWS: [Row("c", 5, {"id": 3})]}, statements=[("truncate", VIEWS.name, 10)])
    work = work_on(VIEWS.name, "append", load_batches(writer.store, [key]), Marker(), source.plan(100, key))
    assert (work.reset_before, [piece.floor for piece in work.inputs]) == (None, [None])


def test_a_statement_on_a_database_applies_to_its_known_tables(writer):
    """And to no others."""
    (manifest,) = manifests(writer)
    source = BatchWriter(writer.store, "database")
    key = source.window(
        4, 100, {ORDERS: [Row("c", 5, {"id": 3})]}, statements=[("drop", "shop.*", 10), ("truncate", "a.b", 20)]
    )
    (batch,) = load_batches(writer.store, [key])
    found = expand_database_statements(
        batch.manifest, {TableName.parse(name) for name in ("shop.orders", "shop2.x", "`shop.x`.y", "a.b")}
    )
    assert [(one.kind, one.table) for one in found.statements] == [("drop", "shop.orders"), ("truncate", "a.b")]
    (loaded,) = load_plan(writer.store, source.plan(100, key))
    assert [one.table for one in loaded.manifest.statements] == ["shop.orders", "a.b"]
    assert expand_database_statements(manifest, {TableName("shop", "orders")}) == manifest


def test_a_table_that_was_missing_at_its_release_is_dropped(writer):
    """The DROP itself never reached the lake."""
    source = BatchWriter(writer.store, "gone")
    key = source.window(60, 100, {}, statements=[("create_if_missing", ORDERS.name, 70)])
    plan = source.plan(100, key)
    record = QuarantineRecord(
        ORDERS.name, 1, at(4), at(4), at(4), None, None, START_TIME, released_position=at(60), released_epoch=1
    )
    plan = type(plan)(plan.source, 1, plan.merge_id, plan.start, plan.stop, plan.batches, quarantine=(record,))
    batches = load_batches(writer.store, [key])
    assert work_on(ORDERS.name, "mirror", batches, Marker(point(30)), plan).reset_before == point(70)
    assert work_on(ORDERS.name, "mirror", batches, Marker(point(65)), plan).reset_before is None


@pytest.mark.parametrize(
    ("low", "columns", "before", "dropped"),
    [
        (60, {"id": BIGINT}, None, None),
        (80, {"id": BIGINT}, 70, None),
        (60, {}, 70, None),
        (50, {"id": BIGINT}, 70, None),
    ],
    ids=["before the CREATE", "after it", "of a missing table", "before the DROP"],
)
def test_a_create_if_missing_removes_no_rows_of_a_table_that_a_snapshot_read_after_its_drop(
    writer, low, columns, before, dropped
):
    """Another table got the name: no statement shows a CREATE. The position of the DROP is where it starts."""
    source = BatchWriter(writer.store, f"read-{low}-{len(columns)}")
    chunk = source.chunk(table("shop.orders", columns, key=()), low, [])
    window = source.window(40, 100, {}, statements=[("drop", ORDERS.name, 50), ("create_if_missing", ORDERS.name, 70)])
    batches = [batch.manifest for batch in load_batches(writer.store, [chunk, window])]
    found = statement_effects(ORDERS.name, batches, None, Marker())
    assert (found.before, found.dropped) == (before and point(before), dropped)


@pytest.mark.parametrize(("low", "columns"), [(60, {"id": BIGINT}), (50, {"id": BIGINT}), (60, {})])
def test_the_marker_forgets_a_drop_before_a_snapshot_that_read_the_table(writer, low, columns):
    source = BatchWriter(writer.store, f"marked-{low}-{len(columns)}")
    chunk = source.chunk(table("shop.orders", columns, key=()), low, [])
    batches = load_batches(writer.store, [chunk])
    exists = bool(columns) and low > 50
    work = work_on(ORDERS.name, "mirror", batches, Marker(point(55), dropped=point(50)), source.plan(100, chunk))
    assert work.marker.dropped == (None if exists else point(50))


@pytest.mark.parametrize(("offset", "exists"), [(45, False), (55, True)])
def test_rows_after_its_drop_show_that_a_table_exists(writer, offset, exists):
    """Also in the window of the DROP; rows of an XA transaction count where it is committed."""
    source = BatchWriter(writer.store, f"rows-{offset}")
    row = {ORDERS: [Row("c", offset, {"id": 1})]}
    prepared = {"x": (42, {VIEWS: [Row("c", 43, {"id": 1})]})}
    key = source.window(40, 60, row, prepared=prepared, decided={"x": (offset, True)})
    batches = load_plan(writer.store, source.plan(60, key))
    for one in (ORDERS, VIEWS):
        assert has_rows_after(writer.store, one.name, batches, point(50)) is exists


def statement(kind, offset, *filled, unclear=""):
    return TableStatement(kind, ORDERS.name, at(offset), tuple(AddedDefault(*one) for one in filled), unclear)


def following_all(writer, marker, *statements):
    """Return what is so after statements in one window."""
    (manifest,) = manifests(writer)
    return statement_effects(ORDERS.name, [replace(manifest, statements=statements)], None, marker)


def test_defaults_of_a_shadow_apply_from_its_swap_on(writer):
    """Not those of an abandoned shadow; the marker carries them from window to window."""
    first = following_all(
        writer, Marker(),
        statement("shadow", 10), statement("shadow_add_default", 20, ("given_up", "1")), statement("shadow", 30),
        statement("shadow_add_default", 40, ("x", "5")),
    )  # fmt: skip
    assert (first.added_defaults, first.shadow) == ((), Shadow((AddedDefault("x", "5"),)))
    kept = Marker(shadow=first.shadow)
    assert Marker.from_json(kept.to_json(), "t") == kept
    swapped = following_all(writer, kept, statement("add_default", 50, ("y", "6")), statement("swap", 60))
    assert swapped.added_defaults == (
        PlacedDefault(point(50), AddedDefault("y", "6")),
        PlacedDefault(point(60), AddedDefault("x", "5")),
    )
    assert swapped.shadow is None


def test_a_swap_with_unclear_values_is_an_error_of_its_table(writer):
    """A merge requests a new snapshot for it; the hint says how a person does."""
    found = following_all(
        writer, Marker(), statement("shadow_add_default", 20, unclear="an expression"), statement("swap", 60)
    )
    with pytest.raises(ValuesNotLogged, match="an expression") as caught:
        refuse_unclear(ORDERS.name, found.unclear)
    assert "cdc snapshot" in caught.value.hint


def test_defaults_wait_for_their_column_and_end_with_their_rows(writer):
    """A TRUNCATE removes both; the marker keeps them unchanged."""
    kept = Marker(point(5), pending_defaults=(PlacedDefault(point(3), AddedDefault("x", "5")),), dropped=point(4))
    assert Marker.from_json(kept.to_json(), "t") == kept
    assert following_all(writer, kept, statement("swap", 10)).added_defaults == kept.pending_defaults
    assert following_all(writer, kept, statement("truncate", 10)).added_defaults == ()
