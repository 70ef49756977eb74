"""The source's types of the rows in the lake, and statements that gave their columns other types."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import replace

import pytest

from cdc_lib.errors import ValuesNotLogged
from cdc_lib.lake.routing import RoutedTable
from cdc_lib.merge.contribution import Contribution
from cdc_lib.merge.load import load_batches
from cdc_lib.merge.plan import work_on
from cdc_lib.merge.source_types import refuse_retyped, types_after
from cdc_lib.model.column_rename import ColumnRename
from cdc_lib.model.ddl_effect import TableStatement
from cdc_lib.model.lake_table import LakeTable, Marker, Shadow
from cdc_lib.model.position import Point
from cdc_lib.model.route import Target
from cdc_lib.model.schema import Column, SourceType
from cdc_lib.store.objects.local import LocalStore
from tests.harness.lake.batches import BIGINT, BatchWriter, Row, at, table

TEXT = SourceType("string", width=36, charset="utf8mb4", text="varchar(9)")
LABELS = SourceType("enum", members=("a", "b"))
SET = SourceType("set", members=("a", "b"))


def of_types(**types):
    return table("shop.t", {"id": BIGINT, **types})


T = of_types(v=TEXT)


@pytest.fixture
def writer(tmp_path):
    return BatchWriter(LocalStore(tmp_path))


def point(offset):
    return Point(1, 1, offset)


def batches_of(writer, *keys, statements=()):
    """Batches; the last one has the statements."""
    *others, last = load_batches(writer.store, keys)
    return [*others, replace(last, manifest=replace(last.manifest, statements=tuple(statements)))]


def retype(offset, kind=SET, column="v"):
    return TableStatement("retype", T.name, at(offset), retyped=(Column(column, kind),))


def work(writer, batches, marker, stop):
    return work_on(T.name, "mirror", batches, marker, writer.plan(stop, *(batch.key for batch in batches)))


def lake(text="", marker=None):
    marker = marker or Marker(point(50))
    return LakeTable((), ("id",), "mirror", marker, 1, 1, {T.name: marker}, source_types=text)


def after(writer, batches, state=None, renames=(), stop=1000):
    marker = state.markers[T.name] if state is not None else Marker()
    part = Contribution(
        RoutedTable(T.database, T.table, Target(T.database, T.table)), work(writer, batches, marker, stop), (), renames
    )
    return types_after([part], state)


def noted(writer, schema=T):
    """The types that the lake has after the first rows of the table."""
    key = writer.window(4, 50, {schema: [Row("c", 10, {"id": 1})]})
    return after(writer, load_batches(writer.store, [key]), stop=50)


@contextmanager
def column_of_error():
    """Gives the column of the error, if there is one."""
    found: list[str] = []
    try:
        yield found
    except ValuesNotLogged as error:
        found.append(error.message.partition("column ")[2].split()[0])


def refused(writer, statements, *, state, rows=None, schema=T, renames=()):
    key = writer.window(50, 100, {schema: [Row("c", one, {"id": 2}) for one in rows]} if rows else {})
    batches = batches_of(writer, key, statements=statements)
    marker = state.markers[T.name]
    needs = work(writer, batches, marker, 100)
    with column_of_error() as found:
        refuse_retyped(needs, marker, state, renames)
    return found[0] if found else ""


def test_types_of_the_rows_decide(writer):
    """A table that an older release merged has none until its next rows: then nothing is refused, as before."""
    state = lake(noted(writer))
    assert refused(writer, [retype(60)], state=state) == "v"
    assert refused(writer, [retype(60, TEXT)], state=state) == ""
    assert refused(writer, [retype(60, TEXT), retype(70, LABELS), retype(80, TEXT)], state=state) == "v"
    assert refused(writer, [retype(60)], state=lake()) == ""


def test_rows_of_the_statements_window_come_after_it(writer):
    assert refused(writer, [retype(60)], state=lake(noted(writer)), rows=[70], schema=of_types(v=SET)) == "v"
    assert refused(writer, [retype(60)], state=lake(), rows=[70], schema=of_types(v=SET)) == ""


def test_rows_of_an_earlier_window_of_the_merge_are_newer_than_the_lakes(writer):
    earlier = writer.window(50, 55, {of_types(v=SET): [Row("c", 52, {"id": 2})]})
    state, key = lake(noted(writer)), writer.window(55, 100, {})
    for kind, column in ((TEXT, []), (LABELS, ["v"])):
        batches = batches_of(writer, earlier, key, statements=[retype(60, kind)])
        with column_of_error() as found:
            refuse_retyped(work(writer, batches, Marker(point(50)), 100), Marker(point(50)), state, ())
        assert found == column


def test_a_column_that_the_rows_lack_was_added_since(writer):
    assert refused(writer, [retype(60, TEXT, "w")], state=lake(noted(writer))) == "w"


@pytest.mark.parametrize(
    ("kind", "charset", "column"),
    [
        (TEXT, "binary", "v"), (TEXT, "latin1", ""), (LABELS, "latin1", ""), (LABELS, "ucs2", "v"),
        (SourceType("enum", charset="utf8mb4", members=("ü",)), "latin1", "v"),
        (SourceType("enum", charset="utf8mb3", members=("ü",)), "utf8mb4", ""),
    ],
)  # fmt: skip
def test_a_conversion_of_all_texts_is_decided_by_the_types_of_the_rows(writer, kind, charset, column):
    state = lake(noted(writer, of_types(v=kind)))
    converted = retype(60, SourceType("string", charset=charset), column="")
    assert refused(writer, [converted], state=state) == column


def test_names_are_followed(writer):
    """Of renames before the statement, and of its own."""
    state = lake(noted(writer))
    before = (ColumnRename(T.name, point(55), (("v", "w"),), "", 1),)
    assert refused(writer, [retype(60, SET, "w")], state=state, renames=before) == "w"
    assert refused(writer, [retype(60, TEXT, "w")], state=state, renames=before) == ""
    own = (ColumnRename(T.name, point(60), (("v", "w"),), "", 1),)
    assert refused(writer, [retype(60, TEXT, "v")], state=state, renames=own) == ""


def test_no_row_from_before_a_statement_that_removed_all_counts(writer):
    state = lake(noted(writer))
    truncate = TableStatement("truncate", T.name, at(55))
    assert refused(writer, [truncate, retype(60)], state=state) == ""
    assert refused(writer, [retype(60), truncate], state=state) == ""
    assert refused(writer, [retype(60)], state=lake(noted(writer), Marker(point(50), emptied=point(40)))) == ""


def test_a_snapshot_that_began_after_the_statement_has_its_values(writer):
    for low, column in ((52, ["v"]), (65, [])):
        other = BatchWriter(writer.store, f"s{low}")
        chunk = other.chunk(T, low, [{"id": 1}])
        batches = batches_of(other, chunk, other.window(50, 100, {}), statements=[retype(60)])
        with column_of_error() as found:
            refuse_retyped(work(other, batches, Marker(), 100), Marker(), None, ())
        assert found == column


def test_a_shadow_counts_at_its_swap(writer):
    """The marker carries it from window to window."""
    alter = TableStatement("shadow_add_default", T.name, at(60), retyped=(Column("v", SET),))
    state = lake(noted(writer))
    assert refused(writer, [alter], state=state) == ""
    assert refused(writer, [alter, TableStatement("swap", T.name, at(70))], state=state) == "v"
    kept = Marker(point(50), shadow=Shadow(retyped=(Column("v", SET),)))
    assert Marker.from_json(kept.to_json(), "t") == kept
    assert refused(writer, [TableStatement("swap", T.name, at(70))], state=lake(noted(writer), kept)) == "v"


def test_the_newest_rows_are_noted_and_old_ones_that_are_merged_again_are_not(writer):
    first = noted(writer)
    longer = of_types(v=replace(TEXT, width=80, text=""))
    key = writer.window(50, 100, {longer: [Row("c", 60, {"id": 1})]})
    assert after(writer, load_batches(writer.store, [key]), lake(first)) == first  # nothing that values depend on
    key = writer.window(100, 150, {of_types(v=LABELS): [Row("c", 110, {"id": 1})]})
    labels = after(writer, load_batches(writer.store, [key]), lake(first))
    assert json.loads(labels)["types"][0]["columns"]["v"] == {"kind": "enum", "members": ["a", "b"]}
    old = load_batches(writer.store, [writer.window(4, 40, {T: [Row("c", 10, {"id": 1})]})])
    part = Contribution(
        RoutedTable(T.database, T.table, Target(T.database, T.table)), work(writer, old, Marker(), 1000), ()
    )
    assert types_after([part], lake(labels)) == labels


def test_the_types_of_a_snapshot_are_newer_than_those_of_rows_that_the_table_had_before_it_was_left_out(writer):
    """A table that is quarantined is merged further without its rows."""
    first = noted(writer)
    (chunk,) = load_batches(writer.store, [writer.chunk(of_types(v=LABELS), 150, [{"id": 1}])])
    left_out, has_rows = Marker(point(200), defined_at=point(50)), Marker(point(200), defined_at=point(200))
    assert "enum" in after(writer, [chunk], lake(first, left_out))
    assert after(writer, [chunk], lake(first, has_rows)) == first


def test_tables_of_one_route_share_their_text(writer):
    """And types of one table do not touch those of another."""
    parts = []
    for name in ("shop.a", "shop.b", "shop.c"):
        schema = table(name, {"id": BIGINT, "v": LABELS if name == "shop.c" else TEXT})
        writer = BatchWriter(writer.store, name.replace(".", "_"))
        key = writer.window(4, 50, {schema: [Row("c", 10, {"id": 1})]})
        batches = load_batches(writer.store, [key])
        needs = work_on(schema.name, "mirror", batches, Marker(), writer.plan(50, key))
        parts.append(Contribution(RoutedTable(schema.database, schema.table, Target(T.database, T.table)), needs, ()))
    text = types_after(parts, None)
    assert [one["tables"] for one in json.loads(text)["types"]] == [["shop.a", "shop.b"], ["shop.c"]]
    assert types_after(parts[:1], lake(text)) == text
