"""The batches of each table: what a merge decides for a table from them is what it decides from all batches.

Many tables go over the files of a batch once, and not once for each table. Reads are counted, not seconds.
"""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import pytest

from cdc_lib.lake.routing import LakeMerge, RoutedTable
from cdc_lib.merge.load import load_plan
from cdc_lib.merge.plan import tables_of, work_on
from cdc_lib.merge.renames import renamed_schemas, renames_of
from cdc_lib.merge.table_batches import by_table
from cdc_lib.model.lake_table import LakeName, Marker
from cdc_lib.model.manifest import DataFile
from cdc_lib.model.merge_plan import TableCut
from cdc_lib.model.route import Target
from cdc_lib.model.table_name import TableName
from cdc_lib.store.objects.local import LocalStore
from spark_jobs.merging.foreign_changes import ForeignChangeDetector
from tests.harness.lake.batches import BIGINT, BatchWriter, Row, table

MANY = 120


@pytest.fixture
def writer(tmp_path):
    return BatchWriter(LocalStore(tmp_path))


def counted(monkeypatch, kind, *names):
    """Count how often fields of a class are read."""
    reads = Counter()

    def counting(name):
        slot = getattr(kind, name)

        def read(self):
            reads[name] += 1
            return slot.__get__(self)

        return property(read, slot.__set__)

    for name in names:
        monkeypatch.setattr(kind, name, counting(name))
    return reads


def test_a_table_is_decided_from_its_own_batches_as_from_all(writer):
    """Windows, a chunk, statements and a committed XA transaction, each of some of the tables."""
    one, other, third = (table(f"shop.{name}", {"id": BIGINT}) for name in ("one", "other", "third"))
    keys = [
        writer.chunk(third, 4, [{"id": 1}]),
        writer.window(4, 100, {one: [Row("c", 10, {"id": 1})], other: [Row("c", 20, {"id": 1})]}),
        writer.window(
            100,
            200,
            {one: [Row("u", 110, {"id": 1})]},
            statements=[("truncate", "shop.other", 150)],
            prepared={"x1": (160, {third: [Row("c", 160, {"id": 2})]})},
        ),
        writer.window(200, 300, {}, decided={"x1": (250, True)}),
    ]
    plan = writer.plan(300, *keys)
    batches = load_plan(writer.store, plan)
    of_tables = by_table(batches)
    assert sorted(of_tables) == [*tables_of(batches)] == ["shop.one", "shop.other", "shop.third"]
    for name, parts in of_tables.items():
        whole, own = (work_on(name, "mirror", found, Marker(), plan) for found in (batches, parts))
        assert own.marker == whole.marker
        assert own.reset_before == whole.reset_before
        assert [(each.batch.key, each.floor) for each in own.inputs] == [
            (each.batch.key, each.floor) for each in whole.inputs
        ]
        assert [each.batch.commits for each in own.inputs] == [
            tuple(one for one in each.batch.commits if name in one[0].prepared.tables) for each in whole.inputs
        ]
        assert renamed_schemas(name, parts, ()) == renamed_schemas(name, batches, ())
        assert {file.table for each in own.inputs for file in each.batch.manifest.files} <= {name}
        assert sum(file.rows for each in own.inputs for file in each.batch.manifest.files) == sum(
            file.rows for each in whole.inputs for file in each.batch.manifest.files if file.table == name
        )


def test_many_tables_go_over_the_files_of_a_window_once(writer, monkeypatch):
    """Each of 5,000 tables went over the files of all 5,000, several times for each window."""
    schemas = [table(f"shop.t{number:04d}", {"id": BIGINT}) for number in range(MANY)]
    plan = writer.plan(
        1000, writer.window(4, 1000, {schema: [Row("c", 10 + i, {"id": 1})] for i, schema in enumerate(schemas)})
    )
    batches = load_plan(writer.store, plan)
    reads = counted(monkeypatch, DataFile, "table")
    of_tables = by_table(batches)
    for schema in schemas:
        parts = of_tables[schema.name]
        assert len(work_on(schema.name, "mirror", parts, Marker(), plan).inputs) == 1
        assert renamed_schemas(schema.name, parts, renames_of(schema.name, parts)) == (schema,)
    assert reads["table"] <= 8 * MANY


def test_many_tables_go_over_the_last_cut_once(writer, monkeypatch):
    """Each table that a merge changes asked all tables of the last cut whose they are, and so did each that it does not."""
    names = [TableName("shop", f"t{number:04d}") for number in range(MANY)]
    cuts = tuple(TableCut(name, f"lake.{name}", 1, 0) for name in names)
    reads = counted(monkeypatch, TableCut, "table", "lake_table")
    watch = ForeignChangeDetector("shop", writer.store, writer.plan(100), (), cuts)
    for name, cut in zip(names, cuts, strict=True):
        routed = RoutedTable("shop", name.table, Target("shop", name.table))
        lake = LakeMerge(LakeName("lake", ("shop",), name.table), (routed,))
        assert watch._cuts_of(lake) == {name: cut}
        assert watch.with_drop(name, Marker()) == Marker()
        assert watch.look(cut, SimpleNamespace(), None) is None
    assert sum(reads.values()) <= 20 * MANY
