"""What every format of lake tables does: one suite over :class:`cdc_lib.ports.MergeTarget` on a real Spark.

A second format is one more entry of :data:`spark_jobs.lake_format.LAKE_FORMATS`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from itertools import cycle

import pyarrow as pa
import pytest

from cdc_lib.config.maintenance import MaintenanceConfig
from cdc_lib.errors import IncompatibleSchema, MergeConflict, MergeError, ReselectError
from cdc_lib.lake.evolution import lake_columns
from cdc_lib.model.column_rename import ColumnRename
from cdc_lib.model.comments import TableComments
from cdc_lib.model.lake_table import LakeColumn, LakeName, Marker, Reselected
from cdc_lib.model.lake_upkeep import Tidied
from cdc_lib.model.layout import Layout
from cdc_lib.model.position import Point
from cdc_lib.model.schema import SourceType
from cdc_lib.model.table_commit import Filled, Superseded, TableCommit
from cdc_lib.model.table_name import TableName
from cdc_lib.ports import MergeChanges
from spark_jobs.lake_format import LAKE_FORMATS
from spark_jobs.sql import full_name
from tests.harness.lake.batches import BIGINT, INT, START_TIME, TEXT, Row, table
from tests.harness.lake.merge_targets import FormatTable, HeldWrite, marker_at
from tests.harness.lake.running import empty_catalog

pytestmark = [
    pytest.mark.turns(6),
    # pyspark leaves them to the collector.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

KEYED = ("mirror", "soft_delete", "scd2")
MODES = (*KEYED, "append")
CURRENT = {"soft_delete": "NOT _is_deleted", "scd2": "_is_current AND _op <> 'd'"}
SCHEMA = table("shop.orders", {"id": BIGINT, "v": INT})
WIDER = table("shop.orders", {"id": BIGINT, "note": TEXT, "v": BIGINT})
LISTED = table("shop.orders", {"id": BIGINT, "v": INT}, key=())
BEFORE_50 = Superseded(Point(1, 1, 50), {}, reads=True, at=START_TIME + timedelta(seconds=50))


@pytest.fixture(params=LAKE_FORMATS)
def formatted(request, spark_lake):
    """Return what makes a table of a format that has no table yet, in the running Spark."""
    spark, config = spark_lake
    yield lambda **named: FormatTable.new(spark, config, LAKE_FORMATS[request.param], **named)
    empty_catalog(config)


@pytest.fixture
def orders(formatted):
    """A table that is not made yet."""
    return formatted()


@pytest.fixture
def begun(orders):
    """Return what makes the table in a mode, with the rows 1 and 2 and a marker."""

    def begin(mode="mirror"):
        writer = orders.writer()
        writer.target.create(LISTED if mode == "append" else SCHEMA, mode)
        writer.write(row("c", 10, 1, 1), row("c", 20, 2, 1))
        return orders

    return begin


def row(op, offset, key, v=0, **named):
    return Row(op, offset, {"id": key, "v": v}, **named)


def current(found):
    """Return the rows that the source has, by the table's own columns for it."""
    return found.rows("id", "v", where=CURRENT.get(found.state().mode, "true"))


def seen(found):
    """Return all that readers see of a table: its rows, its columns and its markers."""
    hidden = {"last_sequence": 0, "updated": None}  # a commit that is not published yet counts in them too
    return found.everything(), replace(found.state(), **hidden)


def read_one(writer, change, lake):
    yield writer.changes([change], lake.fields)


def local_time(offset):
    """Return the time of a change as Spark gives times to Python."""
    return (START_TIME + timedelta(seconds=offset)).astimezone().replace(tzinfo=None)


def added_to(schema, **columns):
    """Return a schema with further columns."""
    have = {column.name: column.type for column in schema.columns}
    return table(schema.name, {**have, **columns}, schema.primary_key)


# --- a table and its columns


def test_a_missing_table_loads_as_none(orders):
    assert orders.writer().target.load() is None


@pytest.mark.parametrize("mode", MODES)
def test_a_new_table_has_its_columns_key_and_mode_and_no_rows(orders, mode):
    """The returned state equals the loaded one."""
    made = orders.writer().target.create(SCHEMA, mode)
    assert made == orders.state()
    assert made.columns == lake_columns(SCHEMA, mode)
    assert (made.primary_key, made.mode, made.renames) == (("id",), mode, ())
    assert (made.snapshot_id, made.records, made.empty) == (None, 0, True)
    assert made.markers == {SCHEMA.name: Marker()}
    assert made.marker.is_blank
    assert made.uuid
    assert orders.everything() == []


def test_a_table_without_a_key_is_always_in_append_mode(orders):
    made = orders.writer().target.create(LISTED, "mirror")
    assert (made.mode, made.primary_key) == ("append", ())


def test_a_table_is_created_once(orders):
    """The second creation is a conflict, and the table is unchanged."""
    late = orders.writer()
    made = orders.writer().target.create(SCHEMA)
    with pytest.raises(MergeConflict):
        late.target.create(WIDER)
    assert orders.state() == made


def test_a_table_with_a_reserved_column_name_is_not_created(orders):
    with pytest.raises(IncompatibleSchema, match="_offset"):
        orders.writer().target.create(added_to(SCHEMA, _offset=INT))
    assert orders.writer().target.load() is None


def test_a_new_table_records_the_renames_of_its_columns(orders):
    renames = (ColumnRename(SCHEMA.name, Point(1, 1, 5), (("old", "v"),), "", 1),)
    assert orders.writer().target.create(SCHEMA, renames=renames).renames == renames
    assert orders.state().renames == renames


def test_columns_are_added_in_the_sources_order_and_widened(begun):
    """Rows keep their values, and are null in a new column."""
    found = begun()
    grown = found.writer().target.evolve(WIDER)
    assert grown == found.state()
    assert grown.columns[:3] == (LakeColumn("id", "bigint"), LakeColumn("note", "string"), LakeColumn("v", "bigint"))
    assert found.rows("id", "note", "v") == [(1, None, 1), (2, None, 1)]
    found.writer().write(Row("u", 30, {"id": 2, "note": "n", "v": 2**40}))
    assert found.rows("id", "note", "v") == [(1, None, 1), (2, "n", 2**40)]


def test_a_column_that_the_source_dropped_stays(begun):
    """Older rows keep its values, later ones are null."""
    found = begun()
    kept = found.writer().target.evolve(table("shop.orders", {"id": BIGINT}))
    assert kept.columns == lake_columns(SCHEMA, "mirror")
    found.writer().write(Row("c", 30, {"id": 3}))
    assert found.rows("id", "v") == [(1, 1), (2, 1), (3, None)]


def test_columns_are_dropped_and_a_new_one_of_the_name_is_another(begun):
    """That a merge dropped it is recorded with it; the other rows and columns stay."""
    found = begun()
    shrunk = found.writer().target.drop(found.state(), ["v"])
    assert shrunk == found.state()
    assert "v" not in [column.name for column in shrunk.columns]
    assert len(shrunk.dropped_fields) == 1
    found.writer().target.evolve(SCHEMA)
    assert found.rows("id", "v") == [(1, None), (2, None)]
    again = found.writer().target.drop(found.state(), ["v"])
    assert len(again.dropped_fields) == 2
    assert found.rows("id") == [(1,), (2,)]


def test_columns_that_fit_are_unchanged(begun):
    found = begun()
    before = found.state()
    assert found.writer().target.evolve(SCHEMA) == before
    assert found.state() == before


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (table("shop.orders", {"id": BIGINT, "more": INT, "v": TEXT}), "column v"),
        (table("shop.orders", {"id": BIGINT, "more": INT, "v": INT}, ("id", "v")), "primary key"),
        (table("shop.orders", {"id": BIGINT, "more": INT, "_row": INT}), "_row"),
    ],
)
def test_incompatible_columns_are_refused_before_any_change(begun, schema, message):
    """A type that loses values, another key, a reserved name; the new column is not added either."""
    found = begun()
    before = found.state()
    with pytest.raises(IncompatibleSchema, match=message):
        found.writer().target.evolve(schema)
    assert found.state() == before


def test_columns_exchange_their_names_and_the_renames_are_recorded(orders):
    """The values and the key follow."""
    writer = orders.writer()
    made = writer.target.create(added_to(SCHEMA, w=INT))
    writer.write(Row("c", 10, {"id": 1, "v": 2, "w": 3}))
    swap = ColumnRename(SCHEMA.name, Point(1, 1, 15), (("id", "key"), ("v", "w"), ("w", "v")), "", 1)
    renamed = orders.writer().target.rename(orders.state(), dict(swap.names), [swap])
    assert renamed == orders.state()
    assert (renamed.primary_key, renamed.renames) == (("key",), (swap,))
    assert [column.type for column in renamed.columns] == [column.type for column in made.columns]
    assert orders.rows("key", "w", "v") == [(1, 2, 3)]
    orders.writer().write(Row("u", 30, {"key": 1, "v": 30, "w": 20}))
    assert orders.rows("key", "w", "v") == [(1, 20, 30)]


def test_comments_are_carried_over_once_and_follow_a_rename(begun):
    """The same again changes nothing; a column that comes later has its comment at once."""
    found = begun()
    wanted = [TableComments(SCHEMA.name, "orders", {"V": "value", "later": "more"})]
    assert found.writer().target.comment(wanted, shared=False)
    before = found.state()
    assert before.comments == {"": "orders", "v": "value", "later": "more"}
    assert not found.writer().target.comment(wanted, shared=False)
    found.writer().target.evolve(added_to(SCHEMA, later=INT))
    rename = ColumnRename(SCHEMA.name, Point(1, 1, 25), (("v", "w"),), "", 1)
    found.writer().target.rename(found.state(), {"v": "w"}, [rename])
    now = [TableComments(SCHEMA.name, "orders", {"w": "value", "later": "more"})]
    assert found.writer().target.comment(now, shared=False)
    described = found.spark.sql(f"DESCRIBE {full_name(found.name)}").collect()
    assert {row.col_name: row.comment for row in described if row.comment} == {"w": "value", "later": "more"}


def test_types_of_the_source_are_kept_with_the_table(orders):
    """From its creation on; other commits leave them."""
    made = orders.writer().target.create(SCHEMA, source_types="first")
    assert made.source_types == "first"
    assert orders.writer().target.note_types("'second' \"$\"").source_types == "'second' \"$\""
    orders.writer().target.evolve(WIDER)
    assert orders.writer().target.load().source_types == "'second' \"$\""


def test_comments_of_a_missing_table_are_left_alone(orders):
    assert not orders.writer().target.comment([TableComments(SCHEMA.name, "orders")], shared=False)


@pytest.mark.parametrize("mode", MODES)
def test_a_computed_column_follows_from_its_row_in_each_mode(orders, mode):
    """Also after a rename of what it uses. Rows that were there before have no value."""
    writer = orders.writer()
    writer.target.create(LISTED if mode == "append" else SCHEMA, mode)
    writer.write(row("c", 10, 1, 1))
    made = writer.target.compute({"twice": "v * 2"}, {"twice": "int"})
    assert (made.computed, made.columns[2]) == ({"twice": "v * 2"}, LakeColumn("twice", "int"))
    writer.write(row("c", 20, 2, 2), row("u", 21, 2, 3), row("c", 22, 3, None))
    expected = {(1, 1, None), (2, 3, 6), (3, None, None)} | ({(2, 2, 4)} if mode in ("append", "scd2") else set())
    assert set(orders.rows("id", "v", "twice")) == expected
    rename = ColumnRename(SCHEMA.name, Point(1, 1, 25), (("v", "w"),), "", 1)
    renamed = orders.writer().target.rename(orders.state(), {"v": "w"}, [rename])
    assert renamed.computed == {"twice": "`w` * 2"}
    orders.writer().write(Row("c", 30, {"id": 4, "w": 5}))
    assert (4, 5, 10) in orders.rows("id", "w", "twice")


def test_renames_are_not_applied_twice(begun):
    """A job that decided on the old names gets a conflict; nothing of it is visible."""
    found = begun()
    late = found.writer()
    first, second = (ColumnRename(SCHEMA.name, Point(1, 1, at), (("v", f"v{at}"),), "", at) for at in (25, 26))
    found.writer().target.rename(found.state(), {"v": "v25"}, [first])
    with pytest.raises(MergeConflict):
        late.target.rename(late.loaded, {"v": "v26"}, [second])
    assert found.state().renames == (first,)
    assert found.rows("id", "v25") == [(1, 1), (2, 1)]


def test_rows_with_old_column_names_are_not_committed(begun):
    found = begun()
    late = found.writer()
    rename = ColumnRename(SCHEMA.name, Point(1, 1, 25), (("v", "w"),), "", 1)
    found.writer().target.rename(found.state(), {"v": "w"}, [rename])
    with pytest.raises(MergeConflict):
        late.write(row("u", 30, 1, 9))
    assert found.rows("id", "w") == [(1, 1), (2, 1)]
    assert found.state().marker == marker_at(21)


def test_a_table_continues_with_another_key(begun):
    """A lake row then belongs to the key with its values in the new key columns."""
    found = begun()
    found.writer().write(row("u", 30, 2, 7))
    writer = found.writer()
    state = writer.target.rekey(table("shop.orders", {"id": BIGINT, "v": INT, "w": INT}, ("v",)))
    assert state.primary_key == ("v",)
    assert state == found.state()
    writer.write(Row("u", 40, {"id": 5, "v": 7, "w": 1}))
    assert found.rows("id", "v", "w") == [(1, 1, None), (5, 7, 1)]


def test_a_table_changed_to_soft_delete_keeps_rows_deleted_later(begun):
    found = begun()
    state = found.writer().target.become("soft_delete")
    assert state == found.state()
    assert state.mode == "soft_delete"
    found.writer().write(row("d", 30, 1))
    assert found.rows("id", "_is_deleted") == [(1, True), (2, None)]


def test_a_table_changed_to_mirror_loses_its_deleted_rows(begun):
    """The marker is unchanged."""
    found = begun("soft_delete")
    found.writer().write(row("d", 30, 1))
    state = found.writer().target.become("mirror")
    assert (state.mode, state.marker) == ("mirror", marker_at(31))
    assert found.rows("id", "v") == [(2, 1)]
    found.writer().write(row("d", 40, 2))
    assert found.rows("id", "v") == []


# --- rows


@pytest.mark.parametrize("mode", KEYED)
def test_changes_insert_update_and_delete_rows(begun, mode):
    found = begun(mode)
    assert found.writer().write(row("u", 30, 1, 2), row("d", 31, 2), row("c", 32, 3, 2)) == 3
    assert current(found) == [(1, 2), (3, 2)]
    assert not found.state().empty


@pytest.mark.parametrize("mode", KEYED)
def test_the_last_change_of_a_key_wins_by_number_and_in_any_order(begun, mode):
    """As text, 9 would come after 10, in a file and among files."""
    found = begun(mode)
    changes = [row("u", 109, 1, 4), row("u", 95, 1, 3), row("u", 50, 2, 6, file=10), row("u", 60, 2, 5, file=9)]
    found.writer().write(*changes)
    assert current(found) == [(1, 4), (2, 6)]


def test_a_mirror_has_the_order_key_of_each_rows_last_change(begun):
    found = begun()
    found.writer().write(row("u", 30, 1, 2, row=4))
    places = ("_epoch", "_binlog", "_offset", "_row", "_ts")
    assert found.rows("id", *places) == [(1, 1, 1, 30, 4, local_time(30)), (2, 1, 1, 20, 0, local_time(20))]


def test_soft_delete_keeps_deleted_rows(begun):
    """Marked, with the order key of the delete; a later row with the same key replaces it."""
    found = begun("soft_delete")
    found.writer().write(row("d", 30, 1, 1))
    assert found.rows("id", "v", "_is_deleted", "_offset") == [(1, 1, True, 30), (2, 1, False, 20)]
    found.writer().write(row("c", 40, 1, 8))
    assert found.rows("id", "v", "_is_deleted", "_offset") == [(1, 8, False, 40), (2, 1, False, 20)]


def test_scd2_keeps_every_version(begun):
    """Also versions that begin and end within one commit; each has the order key of its end."""
    found = begun("scd2")
    assert found.writer().write(row("u", 30, 1, 2), row("u", 31, 1, 3), row("d", 32, 2, 1)) == 3
    versions = found.rows("id", "v", "_offset", "_to_offset", "_is_current", where="_op <> 'd'")
    assert versions == [(1, 1, 10, 30, False), (1, 2, 30, 31, False), (1, 3, 31, None, True), (2, 1, 20, 32, False)]


@pytest.mark.parametrize("mode", KEYED)
@pytest.mark.parametrize("times", [1, 2])
def test_the_same_changes_again_change_no_row(begun, mode, times):
    """At once, and after later changes."""
    found = begun(mode)
    changes = [row("u", 30, 1, 2), row("d", 31, 2), row("c", 32, 3, 2), row("u", 33, 3, 3)]
    later = [row("u", 40, 1, 5), row("c", 41, 4, 5)]
    for one in (changes, later)[:times]:
        found.writer().write(*one, to=50)
    before = found.everything()
    found.writer().write(*changes, to=50)
    assert found.everything() == before


@pytest.mark.parametrize("mode", KEYED)
def test_late_changes_do_not_overwrite_newer_rows(begun, mode):
    """An older update and an older delete, with the guard."""
    found = begun(mode)
    found.writer().write(row("u", 60, 1, 6), row("u", 61, 2, 6))
    found.writer().write(row("u", 30, 1, 3), row("d", 31, 2), row("c", 32, 3, 3), guard=True, to=70)
    assert current(found) == [(1, 6), (2, 6), (3, 3)]


@pytest.mark.parametrize("mode", ["mirror", "soft_delete"])
def test_the_last_change_of_a_key_counts(orders, mode):
    """In an empty table and in one with rows."""
    writer = orders.writer()
    writer.target.create(SCHEMA, mode)
    writer.write(row("c", 10, 1, 1), row("u", 11, 1, 2), row("c", 12, 2, 1), row("d", 13, 2), row("c", 14, 3, 1))
    assert current(orders) == [(1, 2), (3, 1)]
    orders.writer().write(row("u", 30, 1, 3), row("d", 31, 3), row("c", 32, 4, 1))
    assert current(orders) == [(1, 3), (4, 1)]


@pytest.mark.parametrize(("mode", "version"), [("mirror", 3), ("soft_delete", 2)])
def test_many_changed_keys_of_several_columns_replace_exactly_their_rows(orders, mode, version):
    """Too many to be named in a statement; each column alone is the same in other rows, and zero equals minus zero."""
    key = {"name": TEXT, "amount": SourceType("decimal", precision=12, scale=2), "ratio": SourceType("double")}
    writer = orders.writer()
    schema = table("shop.orders", {**key, "v": INT}, key=tuple(key))
    writer.target.create(schema, mode, layout=Layout(format_version=version))

    def change(op, offset, number, v, zero=0.0):
        names = ("É", "é", "e")
        cells = {"name": names[number % 3], "amount": Decimal(number // 3) / 4, "ratio": zero}
        return Row(op, offset, {**cells, "v": v}, number)

    writer.write(*(change("c", 10, number, 1) for number in range(600)), guard=False)
    changes = [change("d" if number % 10 == 0 else "u", 30, number, 2, -0.0) for number in range(0, 600, 2)]
    orders.writer().write(*changes, change("c", 31, 600, 3), guard=False)
    found = orders.rows("name", "amount", "v", where=CURRENT.get(mode, "true"))
    expected = [change("u", 30, number, 1 + (number % 2 == 0)) for number in range(600) if number % 10]
    cells = [one.values for one in (*expected, change("c", 31, 600, 3))]
    assert Counter(found) == Counter((one["name"], one["amount"], one["v"]) for one in cells)


@pytest.mark.parametrize("mode", KEYED)
def test_missing_cells_are_completed_from_earlier_rows(begun, mode):
    """From an earlier change of the same commit, else from the lake's row."""
    found = begun(mode)
    found.writer().target.evolve(added_to(SCHEMA, w=INT))
    changes = [
        Row("u", 30, {"id": 1, "w": 7}, absent=frozenset({"v"})),
        Row("c", 31, {"id": 3, "v": 5, "w": 5}),
        Row("u", 32, {"id": 3, "v": 6}, absent=frozenset({"w"})),
    ]
    found.writer().write(*changes)
    where = CURRENT.get(mode, "true")
    assert found.rows("id", "v", "w", where=where) == [(1, 1, 7), (2, 1, None), (3, 6, 5)]


@pytest.mark.parametrize("mode", KEYED)
def test_a_row_that_cannot_be_completed_stops_the_commit(begun, mode):
    """Complete rows are not committed either; if a snapshot is to come, the row is left out instead."""
    found = begun(mode)
    before = seen(found)
    changes = [row("u", 30, 1, 2), Row("u", 31, {"id": 9}, absent=frozenset({"v"}))]
    with pytest.raises(MergeError, match="does not contain all columns"):
        found.writer().write(*changes)
    assert seen(found) == before
    found.writer().write(*changes, snapshot_to_come=True)
    assert current(found) == [(1, 2), (2, 1)]


def test_append_keeps_every_change_as_a_row_also_repeated_ones(begun):
    found = begun("append")
    changes = [row("u", 30, 1, 2), row("d", 31, 1, 2)]
    assert found.writer().write(*changes) == 2
    assert found.writer().write(*changes) == 2
    twice = [("d", 1, 2), ("d", 1, 2), ("u", 1, 2), ("u", 1, 2)]
    assert found.rows("_op", "id", "v") == [("c", 1, 1), ("c", 2, 1), *twice]


def test_append_refuses_incomplete_changes(begun):
    found = begun("append")
    with pytest.raises(MergeError, match="does not contain all columns"):
        found.writer().write(Row("u", 30, {"id": 1}, absent=frozenset({"v"})))
    assert found.rows("id", "v") == [(1, 1), (2, 1)]


# --- what else a commit does to rows


@pytest.mark.parametrize("mode", MODES)
def test_a_reset_removes_earlier_rows_by_mode_and_keeps_the_commits_rows(begun, mode):
    """Deleted, marked, or closed at the statement, in the commit of the rows."""
    found = begun(mode)
    before = found.state()
    found.writer().write(row("c", 60, 3, 3), supersedes=[BEFORE_50])
    assert current(found) == [(3, 3)]
    if mode == "soft_delete":
        assert found.rows("id", "_is_deleted") == [(1, True), (2, True), (3, False)]
    if mode == "scd2":
        ended = [(1, local_time(50)), (2, local_time(50))]
        assert found.rows("id", "_valid_to", where="NOT _is_current") == ended
    [commit] = found.writer().target.past(before.snapshot_id, before.schema_id).commits
    assert commit.marked


@pytest.mark.parametrize("mode", MODES)
def test_a_reset_affects_only_the_rows_of_its_source_table(orders, mode):
    """Tables that share a lake table differ in the columns of their route."""
    shared = table("shop.orders", {"id": BIGINT, "v": INT, "who's": TEXT}, () if mode == "append" else ("id", "who's"))
    writer = orders.writer()
    writer.target.create(shared, mode)
    owned = [Row("c", 10 + i, {"id": 1, "v": i, "who's": who}) for i, who in enumerate(("${a}'", "b"))]
    writer.write(*owned)
    rule = replace(BEFORE_50, columns={"who's": "${a}'"})
    orders.writer().write(Row("c", 60, {"id": 2, "v": 2, "who's": "b"}), supersedes=[rule])
    assert current(orders) == [(1, 1), (2, 2)]


@pytest.mark.parametrize("mode", ["mirror", "append"])
def test_rows_between_two_points_are_removed(begun, mode):
    """They are merged again; append keeps rows that a snapshot read there, unless the rule includes them."""
    found = begun(mode)
    found.writer().write(row("c", 30, 3, 3), row("r", 31, 4, 4), row("c", 60, 5, 5))
    rule = Superseded(Point(1, 1, 50), {}, since=Point(1, 1, 15))
    found.writer().write(row("c", 70, 6, 6), supersedes=[rule])
    read = [(4, 4)] if mode == "append" else []
    assert found.rows("id", "v") == [(1, 1), *read, (5, 5), (6, 6)]
    found.writer().write(row("c", 80, 7, 7), supersedes=[replace(rule, reads=True)])
    assert found.rows("id", "v") == [(1, 1), (5, 5), (6, 6), (7, 7)]


@pytest.mark.parametrize("mode", MODES)
def test_rows_older_than_a_column_get_its_default(begun, mode):
    """Later rows do not; a column that the table does not have is skipped, and NULL is a default too."""
    found = begun(mode)
    schema = added_to(LISTED if mode == "append" else SCHEMA, w=TEXT)
    found.writer().target.evolve(schema)
    text = "it's ${env:HOME} \\ `"
    fills = [Filled(Point(1, 1, 50), "w", text, {}), Filled(Point(1, 1, 50), "missing", "1", {})]
    found.writer().write(Row("c", 60, {"id": 3, "v": 3, "w": "own"}), fills=fills)
    assert found.rows("id", "w") == [(1, text), (2, text), (3, "own")]
    nothing = [Filled(Point(1, 1, 15), "w", None, {})]
    found.writer().write(Row("c", 70, {"id": 4, "v": 4, "w": "own"}), fills=nothing)
    assert found.rows("id", "w") == [(1, None), (2, text), (3, "own"), (4, "own")]


class FromSource:
    """Puts other rows in the place of changes; implements :class:`cdc_lib.ports.RereadRows`."""

    def __init__(self, read):
        self.reached = [(SCHEMA.name, REACH)]
        self._read = read

    def added_to(self, changes, key):
        return pa.concat_tables([changes, self._read(changes, key)])


REACH = Reselected(Point(1, 1, 120), Point(1, 1, 130))


@pytest.mark.parametrize("mode", ["mirror", "soft_delete"])
def test_reselected_rows_replace_changes(begun, mode):
    """The marker has their watermark."""
    found = begun(mode)
    writer = found.writer()

    def read(changes, _):
        return writer.changes(
            [row("r", 120, 1, 9)], [changes.schema.field(name) for name in changes.column_names[1:-1]]
        )

    assert writer.write(row("u", 30, 1, 2), reselect=FromSource(read)) == 1
    assert found.rows("id", "v") == [(1, 9), (2, 1)]
    assert found.state().marker == marker_at(31).with_reselected(REACH)


def test_a_failed_reselection_leaves_the_table_unchanged(begun):
    found = begun()
    before = seen(found)

    def read(*_):
        raise ReselectError("the source is away")

    with pytest.raises(ReselectError):
        found.writer().write(row("u", 30, 1, 2), reselect=FromSource(read))
    assert seen(found) == before


# --- the marker and the commit


@pytest.mark.parametrize("mode", MODES)
def test_the_marker_is_in_the_commit_of_the_rows(begun, mode):
    """Of rows, of deletes alone, and of an empty commit."""
    found = begun(mode)
    full = replace(marker_at(21), dropped=Point(1, 1, 99))
    assert found.state().marker == marker_at(21)
    writer = found.writer()
    for rows, to in (([row("u", 30, 1, 2)], 31), ([row("d", 40, 1, 2)], 41), ([], 50)):
        writer.write(*rows, to=to)
        assert found.state().markers == {SCHEMA.name: marker_at(to)}
    commit = TableCommit({SCHEMA.name: full})
    writer.target.apply(MergeChanges(lambda lake: iter([writer.changes([], lake.fields)])), commit)
    assert found.state().marker == full


def test_each_source_table_has_a_marker_of_its_own(formatted):
    """Routed tables of one source and of two; every commit repeats the others' markers."""
    one, two = TableName("shop", "a"), TableName("shop", "b")
    mine = replace(formatted(), tables={one: True, two: True})
    others = replace(mine, tables={one: True}, source="second")
    writer = mine.writer()
    writer.target.create(SCHEMA)
    commit = TableCommit({one: marker_at(11), two: marker_at(12)})
    writer.target.apply(MergeChanges(partial(read_one, writer, row("c", 10, 1, 1))), commit)
    others.writer().write(row("c", 5, 2, 2))
    assert mine.state().markers == {one: marker_at(11), two: marker_at(12)}
    writer = mine.writer()
    commit = TableCommit({one: marker_at(21), two: marker_at(22)})
    writer.target.apply(MergeChanges(partial(read_one, writer, row("c", 20, 3, 3))), commit)
    assert mine.state().markers == {one: marker_at(21), two: marker_at(22)}
    assert others.state().markers == {one: marker_at(6)}
    assert mine.rows("id", "v") == [(1, 1), (2, 2), (3, 3)]


@pytest.mark.parametrize("mode", MODES)
def test_a_write_becomes_visible_at_once(begun, mode):
    """A concurrent reader sees the old rows and the old marker until the commit."""
    found, held = begun(mode), HeldWrite()
    before = seen(found)

    def write():
        return found.writer().write(
            row("u", 60, 1, 2), row("c", 61, 3, 2), supersedes=[BEFORE_50], through=held.through
        )

    with held.begun(write) as writing:
        assert not writing.done()
        assert seen(found) == before
    assert writing.result() == 2
    assert current(found) == [(1, 2), (3, 2)]
    assert found.state().marker == marker_at(62)


@pytest.mark.parametrize("mode", MODES)
def test_a_failed_write_leaves_no_rows(begun, mode):
    """Its last rows cannot be computed; the next write succeeds as if it had not run."""
    found = begun(mode)
    before = seen(found)

    def broken(_):
        raise MergeError("a broken row")

    with pytest.raises(MergeError, match="a broken row"):
        found.writer().write(
            row("u", 60, 1, 1), row("d", 61, 2, 1), row("c", 62, 3, 2), supersedes=[BEFORE_50], through=broken
        )
    assert seen(found) == before
    found.writer().write(row("c", 62, 3, 2))
    assert current(found) == [(1, 1), (2, 1), (3, 2)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("other", ["a merge", "somebody else"])
def test_rows_are_not_committed_if_the_table_changed_since_it_was_read(begun, mode, other):
    """None of them is visible; after reading the table again, the commit succeeds."""
    found = begun(mode)
    late = found.writer()
    if other == "a merge":
        found.writer().write(row("c", 30, 3, 3))
    else:
        found.delete_foreign("id = 2")
    before = seen(found)
    with pytest.raises(MergeConflict):
        late.write(row("c", 31, 4, 4), to=90)
    assert seen(found) == before
    found.writer().write(row("c", 31, 4, 4), to=90)
    assert (4, 4) in current(found)
    assert found.state().marker == marker_at(90)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("other", ["a merge", "somebody else"])
def test_rows_are_not_committed_if_the_table_changed_while_they_were_written(begun, mode, other):
    """The first commit wins, whichever write began first."""
    found, held = begun(mode), HeldWrite()

    def write():
        return found.writer().write(row("u", 30, 1, 2), row("c", 31, 4, 2), to=90, through=held.through)

    with held.begun(write) as writing:
        if other == "a merge":
            found.writer().write(row("c", 30, 3, 3))
        else:
            found.delete_foreign("id = 2")
        before = seen(found)
    with pytest.raises(MergeConflict):
        writing.result()
    assert seen(found) == before


def test_a_job_may_commit_again_after_its_own_commit(begun):
    """Its commit is the table state that it has read."""
    found = begun()
    writer = found.writer()
    for i in range(3):
        writer.write(row("u", 30 + i, 1, 2 + i))
    assert found.rows("id", "v") == [(1, 4), (2, 1)]


def test_the_sequence_number_of_a_marker_only_grows(begun):
    """The next merge recognizes the table by it: other commits do not change it, and a new table has another UUID."""
    found = begun()
    states = [found.state()]
    for i in range(2):
        found.writer().write(row("u", 30 + i, 1, 2 + i))
        states.append(found.state())
    places = [state.sequences[SCHEMA.name] for state in states]
    assert places == sorted(set(places))
    assert len({state.snapshot_id for state in states}) == 3
    found.delete_foreign("id = 2")
    after = found.state()
    assert after.snapshot_id != states[-1].snapshot_id
    assert after.fingerprint(SCHEMA.name) == states[-1].fingerprint(SCHEMA.name)
    assert after.last_sequence > states[-1].last_sequence


def test_the_history_distinguishes_commits_of_merges_from_others(begun):
    """The newest first, with the numbers of added and deleted rows."""
    found = begun()
    state = found.state()
    assert found.writer().target.past(state.snapshot_id, state.schema_id).commits == ()
    found.delete_foreign("id = 2")
    found.writer().write(row("c", 30, 3, 3))
    merged, foreign = found.writer().target.past(state.snapshot_id, state.schema_id).commits
    assert (merged.marked, merged.added, merged.deleted) == (True, 1, 0)
    assert (foreign.marked, foreign.added, foreign.deleted) == (False, 0, 1)
    assert merged.snapshot_id == found.state().snapshot_id
    assert foreign.at <= merged.at


def test_the_history_identifies_columns_by_field_id(begun):
    """A renamed column keeps its id; a new column with the same name has another one."""
    found = begun()
    state = found.state()
    rename = ColumnRename(SCHEMA.name, Point(1, 1, 25), (("v", "w"),), "", 1)
    found.writer().target.rename(state, {"v": "w"}, [rename])
    found.writer().target.evolve(table("shop.orders", {"id": BIGINT, "w": BIGINT, "v": INT}))
    past = found.writer().target.past(state.snapshot_id, state.schema_id)
    then, now = ({one.name: one for one in fields} for fields in (past.fields_then, past.fields))
    assert (then["v"].type, now["w"].type, now["v"].type) == ("int", "bigint", "int")
    assert then["v"].id == now["w"].id
    assert now["v"].id not in {one.id for one in past.fields_then}


# --- names


NAMES = ("a.b", "`t`.`", 'it\'s "q"', "${env:HOME}", "%s {} \\n", "Straße 表", "select")


@pytest.mark.parametrize(("mode", "name"), list(zip(cycle(MODES), NAMES, strict=False)))
def test_names_with_special_characters_have_no_effect(formatted, name, mode):
    """Of a namespace, a table, a key and a column; in texts, defaults and rules too."""
    found = formatted(called=name, database=name)
    key, column, whose, late = (f"{name}{part}" for part in ("k", "", "w", "l"))
    columns = {key: TEXT, column: INT, whose: TEXT}
    schema, grown = (
        table(str(TableName(name, name)), one, () if mode == "append" else (key,))
        for one in (columns, {**columns, late: TEXT})
    )
    writer = found.writer()
    writer.target.create(schema, mode)
    first = [Row("c", 10 + i, {key: f"{name}{i}", column: i, whose: name}) for i in range(2)]
    writer.write(*first)
    found.writer().target.evolve(grown)
    fill = Filled(Point(1, 1, 20), late, name, {whose: name})
    found.writer().write(Row("u", 30, {key: f"{name}0", column: 7, whose: name, late: "x"}), fills=[fill])
    where = CURRENT.get(mode, "true")
    before = [(f"{name}0", 0, name)] if mode == "append" else []
    expected = [*before, (f"{name}0", 7, "x"), (f"{name}1", 1, name)]
    assert found.rows(key, column, late, where=where) == sorted(expected, key=repr)
    state = found.state()
    assert {key, column, whose, late} <= {one.name for one in state.columns}
    assert state.markers == {TableName(name, name): marker_at(31)}
    rename = ColumnRename(TableName(name, name), Point(1, 1, 35), ((column, f"{name}n"),), "", 1)
    renamed = found.writer().target.rename(state, {column: f"{name}n"}, [rename])
    assert renamed.renames == (rename,)
    gone = replace(BEFORE_50, columns={whose: name})
    found.writer().write(Row("c", 60, {key: "new", f"{name}n": 1, whose: name}), supersedes=[gone])
    assert found.rows(key, f"{name}n", where=where) == [("new", 1)]


def test_tables_whose_names_differ_by_a_dot_are_two(formatted):
    outer = formatted(called="b.c", database="a")
    [namespace] = outer.name.namespace
    inner = replace(outer, name=LakeName(outer.name.catalog, (f"{namespace}.b",), "c"))
    inner.lake_format.ensure_namespaces(inner.spark, [inner.name])
    for number, found in enumerate((outer, inner)):
        writer = found.writer()
        writer.target.create(SCHEMA)
        writer.write(row("c", 10, number, number))
    assert (outer.rows("id", "v"), inner.rows("id", "v")) == ([(0, 0)], [(1, 1)])


# --- what the format does beside merges


def test_an_existing_namespace_is_unchanged(begun):
    found = begun()
    found.lake_format.ensure_namespaces(found.spark, [found.name, found.name])
    assert found.rows("id", "v") == [(1, 1), (2, 1)]


@pytest.mark.parametrize("mode", MODES)
def test_maintenance_changes_neither_rows_nor_markers(begun, mode):
    """After a merge, and in the daily maintenance; a later reader may commit."""
    found = begun(mode)
    for i in range(3):
        found.writer().write(row("u", 30 + i, 1, 2 + i), row("d", 40 + i, 2))
    before, marker = found.everything(), found.state().marker
    settings = MaintenanceConfig(keep_snapshots_for=timedelta(0), min_small_files=2, max_deleted_ratio=0.01)
    writer, now = found.writer(), datetime.now(UTC) + timedelta(minutes=1)
    assert writer.target.tidy(settings, frozenset, now) == Tidied()
    session = writer.session
    kept = found.lake_format.maintenance(found.spark, {found.name: Layout()}, settings)(session, found.name, (), now)
    assert not kept.missing
    assert (found.everything(), found.state().marker) == (before, marker)
    found.writer().write(row("c", 90, 9, 9))
    assert (9, 9) in current(found)


def test_a_missing_table_needs_no_maintenance(orders):
    settings = MaintenanceConfig()
    maintain = orders.lake_format.maintenance(orders.spark, {orders.name: Layout()}, settings)
    assert maintain(orders.writer().session, orders.name, (), datetime.now(UTC)).missing
