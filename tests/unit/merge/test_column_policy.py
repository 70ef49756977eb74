"""Which columns of a source table reach the lake where the source file does not follow each that was added or dropped."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from cdc_lib.errors import SchemaChangeAsked, SchemaChangeStopped
from cdc_lib.lake.routing import RoutedTable
from cdc_lib.merge.column_policy import decide_columns, without_added
from cdc_lib.merge.load import load_batches
from cdc_lib.merge.plan import MergeInput
from cdc_lib.merge.renames import renames_of
from cdc_lib.merge.stopped_columns import refuse_columns, refuse_narrower, refuse_wider
from cdc_lib.model.binlog_checkpoint import BinlogCheckpoint
from cdc_lib.model.cursor import EpochChange
from cdc_lib.model.ddl_effect import TableStatement
from cdc_lib.model.failed_table import question_of
from cdc_lib.model.lake_table import LakeColumn, LakeTable, Marker
from cdc_lib.model.manifest import Ddl
from cdc_lib.model.position import Point
from cdc_lib.model.route import Target
from cdc_lib.model.schema_policy import SchemaPolicy
from cdc_lib.model.schema_question import SchemaAnswer
from cdc_lib.store.objects.local import LocalStore
from tests.harness.lake.batches import BIGINT, IDENTITY, INT, START_TIME, BatchWriter, Row, at, table

OLD = table("shop.orders", {"id": INT, "v": INT, "w": INT})
WITHOUT = table("shop.orders", {"id": INT, "v": INT})
MORE = table("shop.orders", {"id": INT, "v": INT, "w": INT, "n": INT})
ROUTED = RoutedTable("shop", "orders", Target("shop", "orders"))
FOLLOW = SchemaPolicy(drop_column="follow")
STOP = SchemaPolicy(add_column="stop", drop_column="stop")
MERGED = Marker(Point(1, 1, 100), source_columns=("id", "v", "w"))


@pytest.fixture
def writer(tmp_path):
    return BatchWriter(LocalStore(tmp_path))


def window(writer, start, stop, *schemas):
    rows = {one: [Row("c", start + 1 + i, {c.name: i for c in one.columns})] for i, one in enumerate(schemas)}
    (batch,) = load_batches(writer.store, [writer.window(start, stop, rows)])
    return MergeInput(batch, None)


def lake(*columns):
    return LakeTable(tuple(LakeColumn(name, "int") for name in columns), ("id",), "mirror", MERGED, 7, 1)


def decide(policy, inputs, state, marker=MERGED, renames=()):
    return decide_columns(policy, ROUTED, inputs, state, marker, renames)


@pytest.mark.parametrize("have", [("id", "v", "w"), ("id", "v")], ids=["first", "after the lake's column was dropped"])
def test_a_dropped_column_is_left_out_of_older_rows_of_the_merge(writer, have):
    """Whether the lake still has it or not: a merge that is tried again decides the same."""
    decision = decide(FOLLOW, [window(writer, 100, 200, OLD, WITHOUT)], lake(*have))
    assert (decision.dropped, decision.source_columns) == (("w",), ("id", "v"))
    assert [name for name in ("id", "v", "w", "W", "x") if decision.of(ROUTED).target.keeps(name)] == ["id", "v", "x"]


def test_without_a_memory_the_first_rows_of_the_merge_are_compared(writer):
    """Columns that the lake has from long ago, or that somebody added there, are not dropped."""
    decision = decide(FOLLOW, [window(writer, 100, 200, OLD, WITHOUT)], lake("id", "v", "w", "mine"), Marker())
    assert decision.dropped == ("w",)
    assert decide(FOLLOW, [window(writer, 200, 300, WITHOUT)], lake("id", "v", "mine"), Marker()).dropped == ()


def test_rows_that_are_merged_again_bring_no_dropped_column_back(writer):
    marker = replace(MERGED, merged_to=Point(1, 1, 300), source_columns=("id", "v"))
    decision = decide(FOLLOW, [window(writer, 100, 200, OLD)], lake("id", "v"), marker)
    assert (decision.dropped, decision.source_columns) == ((), ("id", "v"))
    assert not decision.of(ROUTED).target.keeps("w")


def test_rows_of_a_later_epoch_drop_no_column_as_long_as_they_may_be_those_of_before(writer):
    """They may be from before an ADD COLUMN that comes again. A column that they bring back is dropped again after them."""
    end = BinlogCheckpoint(IDENTITY, at(300), START_TIME + timedelta(days=1), "", False, None)
    changes = (EpochChange(2, "rewind", START_TIME, "test", "test", end, end),)
    key = writer.window(4, 100, {MORE: [Row("c", 10, {"id": 1})], WITHOUT: [Row("c", 20, {"id": 2})]}, epoch=2)
    (batch,) = load_batches(writer.store, [key])
    state, given = lake("id", "v", "w"), [MergeInput(batch, None)]
    found = decide_columns(FOLLOW, ROUTED, given, state, MERGED, (), changes)
    assert (found.dropped, found.left_out) == ((), frozenset())
    assert found.source_columns == ("id", "v", "w", "n")
    ended = replace(changes[0], previous_end=replace(end, time=START_TIME - timedelta(days=1)))
    found = decide_columns(FOLLOW, ROUTED, given, state, MERGED, (), (ended,))
    assert (found.dropped, found.left_out, found.source_columns) == (("w",), frozenset("wn"), ("id", "v"))


@pytest.mark.parametrize(
    ("statements", "kinds", "dropped"),
    [
        (["ALTER TABLE orders DROP COLUMN w"], [], ("w",)),
        (["ALTER TABLE orders DROP COLUMN w", "ALTER TABLE orders_2 ADD COLUMN w INT"], [], ("w",)),
        (["ALTER TABLE orders DROP COLUMN w", "ALTER TABLE `orders` ADD COLUMN `w` INT"], [], ()),
        (["ALTER TABLE orders DROP COLUMN w", "CREATE TABLE orders LIKE others"], ["drop", "create"], ()),
        ([], ["swap"], ("w",)),
        ([], ["swap", "swap"], ()),
    ],
)
def test_a_column_that_may_have_come_again_within_its_window_is_not_dropped(writer, statements, kinds, dropped):
    """The schemas of a window do not show that rows had the first of them once more; the rows of the next window do."""
    given = window(writer, 100, 200, OLD, WITHOUT)
    ddl = tuple(Ddl(at(110 + i), "shop", text) for i, text in enumerate(statements))
    effects = tuple(TableStatement(kind, OLD.name, at(150)) for kind in kinds)
    manifest = replace(given.batch.manifest, ddl=ddl, statements=effects)
    found = decide(FOLLOW, [replace(given, batch=replace(given.batch, manifest=manifest))], lake("id", "v", "w"))
    assert (found.dropped, found.of(ROUTED).target.keeps("w")) == (dropped, not dropped)
    assert set(found.source_columns) == {"id", "v", "w"} - set(dropped)
    first = replace(MERGED, source_columns=("id", "v"))
    found = decide(FOLLOW, [replace(given, batch=replace(given.batch, manifest=manifest))], lake("id", "v"), first)
    assert found.of(ROUTED).target.keeps("w") == (not dropped)


def test_rows_of_a_snapshot_may_be_newer_or_older_than_those_of_a_window(writer):
    """No column is left out that some of them have."""
    (chunk,) = load_batches(writer.store, [writer.chunk(MORE, 150, [{"id": 1, "v": 1, "w": 1, "n": 1}])])
    given = [MergeInput(chunk, None), window(writer, 100, 200, OLD)]
    assert decide(FOLLOW, given, lake("id", "v", "w")).of(ROUTED).target.keeps("n")
    other = BatchWriter(writer.store, "other")
    (chunk,) = load_batches(writer.store, [other.chunk(WITHOUT, 350, [{"id": 1, "v": 1}])])
    mixed = decide(FOLLOW, [MergeInput(chunk, None), window(writer, 200, 300, OLD)], lake("id", "v", "w"))
    assert (mixed.dropped, mixed.of(ROUTED).target.keeps("w")) == ((), True)
    assert decide(FOLLOW, [MergeInput(chunk, None)], lake("id", "v", "w")).dropped == ("w",)


@pytest.mark.parametrize(
    ("read_at", "defined_at", "is_kept"),
    [(300, 100, True), (250, 100, True), (300, 300, True), (250, 300, False), (300, None, True), (250, None, False)],
)
def test_a_column_that_came_while_the_table_was_left_out_is_that_of_its_snapshot(writer, read_at, defined_at, is_kept):
    """The lake has moved on without its rows. A column that rows which it has lack was dropped after the snapshot had read it."""
    marker = replace(MERGED, merged_to=Point(1, 1, 300), defined_at=defined_at and Point(1, 1, defined_at))
    (chunk,) = load_batches(writer.store, [writer.chunk(MORE, read_at, [{"id": 1, "v": 1, "w": 1, "n": 1}])])
    found = decide(FOLLOW, [MergeInput(chunk, None)], lake("id", "v", "w"), marker)
    assert (found.of(ROUTED).target.keeps("n"), "n" in found.source_columns, found.dropped) == (is_kept, is_kept, ())


def test_a_renamed_column_is_neither_added_nor_dropped(writer):
    key = writer.window(
        100, 200, {table("shop.orders", {"id": INT, "v": INT, "x": INT}): [Row("c", 160, {"id": 1, "v": 1, "x": 1})]}
    )
    (batch,) = load_batches(writer.store, [key])
    rename = TableStatement("rename_columns", OLD.name, at(150), names=(("w", "x"),))
    (file,) = batch.manifest.files
    manifest = replace(batch.manifest, statements=(rename,), files=(replace(file, renames=1),))
    batch = replace(batch, manifest=manifest)
    decision = decide(STOP, [MergeInput(batch, None)], lake("id", "v", "x"), renames=renames_of(OLD.name, [batch]))
    assert (decision.added, decision.dropped, decision.source_columns) == ((), (), ("id", "v", "x"))


def test_an_ignored_column_is_no_new_one_afterwards(writer):
    """The marker remembers it, so that a table may stop at the next one."""
    ignores = SchemaPolicy(add_column="keep")
    first = decide(ignores, [window(writer, 100, 200, MORE)], lake("id", "v", "w"))
    assert (first.added, first.of(ROUTED).target.keeps("n")) == (("n",), False)
    later = replace(MERGED, source_columns=first.source_columns)
    decision = decide(STOP, [window(writer, 200, 300, MORE)], lake("id", "v", "w"), later)
    assert (decision.added, decision.of(ROUTED).target.keeps("n")) == ((), False)
    refuse_columns(STOP, ROUTED, decision, (), ())


def test_a_table_without_a_commit_gets_all_columns(writer):
    """Also if a merge died after it made the table with the first of them."""
    for state in (None, replace(lake("id", "v", "w"), snapshot_id=None)):
        decision = decide(SchemaPolicy(add_column="keep"), [window(writer, 4, 100, OLD, MORE)], state, Marker())
        assert (decision.of(ROUTED).target.keeps("n"), decision.source_columns) == (True, ("id", "v", "w", "n"))


def test_a_column_of_the_key_is_never_left_out(writer):
    rekeyed = table("shop.orders", {"id": INT, "v": INT, "w": INT, "n": INT}, key=("id", "n"))
    decision = decide(SchemaPolicy(add_column="keep"), [window(writer, 100, 200, rekeyed)], lake("id", "v", "w"))
    assert decision.of(ROUTED).target.keeps("n")


def test_columns_of_rows_that_are_read_from_the_source_wait_for_a_merge():
    """A repair or a reselect adds none that the source file does not follow."""
    state = lake("id", "v")
    assert without_added(SchemaPolicy(), ROUTED.target, state, ("id",)) is ROUTED.target
    for policy in (STOP, SchemaPolicy(add_column="keep")):
        target = without_added(policy, ROUTED.target, state, ("id",))
        assert [name for name in ("id", "V", "n") if target.keeps(name)] == ["id", "V"]


def test_a_stopped_table_names_the_statement_of_its_own(writer):
    """Not that of another table with such a column."""
    given = window(writer, 100, 200, WITHOUT)
    ddl = (
        Ddl(at(110), "shop", "ALTER TABLE orders DROP COLUMN w"),
        Ddl(at(120), "shop", "ALTER TABLE orders_2 DROP COLUMN w"),
        Ddl(at(130), "shop", "ALTER TABLE orders ADD KEY (v)"),
    )
    given = replace(given, batch=replace(given.batch, manifest=replace(given.batch.manifest, ddl=ddl)))
    with pytest.raises(SchemaChangeStopped, match=r"dropped column w at .*110 \('ALTER TABLE orders DROP COLUMN w'\)"):
        refuse_columns(STOP, ROUTED, decide(STOP, [given], lake("id", "v", "w")), [given], ())


def test_a_column_of_a_shared_lake_table_is_not_dropped(writer):
    given = window(writer, 100, 200, WITHOUT)
    with pytest.raises(SchemaChangeStopped, match=r"dropped column w, and shop\.others share the lake table"):
        refuse_columns(FOLLOW, ROUTED, decide(FOLLOW, [given], lake("id", "v", "w")), [given], ["shop.others"])


def test_a_wider_type_stops_a_table_until_the_lake_has_it(writer):
    wide = table("shop.orders", {"id": INT, "v": BIGINT})
    state = lake("id", "v")
    refuse_wider(SchemaPolicy(), ROUTED, [wide], (), state)
    stops = SchemaPolicy(widen="stop")
    with pytest.raises(SchemaChangeStopped, match="changed column v, which is int in the lake, to bigint"):
        refuse_wider(stops, ROUTED, [wide], [window(writer, 100, 200, wide)], state)
    widened = replace(state, columns=(LakeColumn("id", "int"), LakeColumn("v", "bigint")))
    refuse_wider(stops, ROUTED, [wide, WITHOUT], (), widened)


def with_ddl(given, *texts):
    """Return a window with statements, the first of them at 110."""
    ddl = tuple(Ddl(at(110 + 10 * i), "shop", text) for i, text in enumerate(texts))
    return replace(given, batch=replace(given.batch, manifest=replace(given.batch.manifest, ddl=ddl)))


def answers_to(error, decision):
    return (SchemaAnswer("shop", question_of(error), decision, "ann", START_TIME),)


@pytest.mark.parametrize(
    ("key", "schema", "text", "words"),
    [
        ("add_column", MORE, "ALTER TABLE orders ADD COLUMN n INT", "added column n"),
        ("drop_column", WITHOUT, "ALTER TABLE orders DROP COLUMN w", "dropped column w"),
    ],
)
@pytest.mark.parametrize("decision", ["follow", "keep"])
def test_an_answer_decides_as_the_source_file_would_have(writer, key, schema, text, words, decision):
    """About the columns of the statement that the question names; a later statement asks again."""
    given, state, asks = (
        [with_ddl(window(writer, 100, 200, schema), text)],
        lake("id", "v", "w"),
        SchemaPolicy(**{key: "ask"}),
    )
    with pytest.raises(SchemaChangeAsked, match=rf"{words} at .*:110 .*schema_changes\.{key}: ask") as asked:
        refuse_columns(asks, ROUTED, decide(asks, given, state), given, ())
    policy, said = replace(asks, answers=answers_to(asked.value, decision)), SchemaPolicy(**{key: decision})
    found = decide(policy, given, state)
    refuse_columns(policy, ROUTED, found, given, ())
    expected = decide(said, given, state)
    names = ("id", "v", "w", "n")
    assert [found.of(ROUTED).target.keeps(name) for name in names] == [
        expected.of(ROUTED).target.keeps(name) for name in names
    ]
    assert (found.left_out, found.source_columns) == (expected.left_out, expected.source_columns)
    later = [with_ddl(window(writer, 200, 300, schema), "ALTER TABLE x DROP COLUMN y", text)]
    with pytest.raises(SchemaChangeAsked, match=":120"):
        refuse_columns(policy, ROUTED, decide(policy, later, state), later, ())


def test_a_question_without_its_statement_names_the_first_batch_of_the_merge(writer):
    """The statement was in an earlier merge, which had no row after it."""
    given, asks = [window(writer, 100, 200, MORE), window(writer, 200, 300, MORE)], SchemaPolicy(add_column="ask")
    with pytest.raises(SchemaChangeAsked) as asked:
        refuse_columns(asks, ROUTED, decide(asks, given, lake("id", "v", "w")), given, ())
    assert asked.value.context["position"] == str(at(100))


BIG = LakeTable((LakeColumn("id", "int"), LakeColumn("v", "bigint")), ("id",), "mirror", MERGED, 7, 1)


@pytest.mark.parametrize(
    ("text", "schemas", "stops"),
    [
        ("ALTER TABLE orders MODIFY v INT", [{"id": INT, "v": BIGINT}, {"id": INT, "v": INT}], True),
        ("ALTER TABLE orders CHANGE v v INT NOT NULL", [{"id": INT, "v": INT}], True),
        ("ALTER TABLE orders ADD KEY (v)", [{"id": INT, "v": INT}], False),
        ("ALTER TABLE orders MODIFY v BIGINT", [{"id": INT, "v": INT}, {"id": INT, "v": BIGINT}], False),
        ("ALTER TABLE orders_2 MODIFY v INT", [{"id": INT, "v": INT}], False),
    ],
)
def test_a_narrower_type_stops_a_table_at_its_statement(writer, text, schemas, stops):
    """Where the last rows have the narrower type; the lake keeps its own type by default and after the answer."""
    tables = [table("shop.orders", columns) for columns in schemas]
    given = [with_ddl(window(writer, 100, 200, *tables), text)]
    refuse_narrower(SchemaPolicy(), ROUTED, tables, given, BIG)
    asks = SchemaPolicy(narrow="ask")
    if not stops:
        refuse_narrower(asks, ROUTED, tables, given, BIG)
        return
    with pytest.raises(SchemaChangeStopped, match=r"changed column v, which is bigint in the lake, to int at .*:110"):
        refuse_narrower(SchemaPolicy(narrow="stop"), ROUTED, tables, given, BIG)
    with pytest.raises(SchemaChangeAsked) as asked:
        refuse_narrower(asks, ROUTED, tables, given, BIG)
    assert "Answer keep: cdc schema answer SOURCE shop.orders keep" in asked.value.hint
    refuse_narrower(replace(asks, answers=answers_to(asked.value, "keep")), ROUTED, tables, given, BIG)
    merged = replace(BIG, markers={ROUTED.table: replace(MERGED, merged_to=Point(1, 1, 150))})
    refuse_narrower(asks, ROUTED, tables, given, merged)
