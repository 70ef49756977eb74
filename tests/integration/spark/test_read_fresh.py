"""What a reader with ``fresh`` returns before a merge equals what Spark reads after it."""

from __future__ import annotations

import random
from contextlib import contextmanager
from dataclasses import replace

import pytest

from cdc_lib.config.computed import ComputedRule
from cdc_lib.config.modes import ModeRule
from cdc_lib.errors import ConfigError, MergeError
from cdc_lib.merge.load import load_plan
from cdc_lib.read import Lake as ReadLake
from cdc_lib.read.fresh.pin import with_waiting
from cdc_lib.read.fresh.waiting import Waiting
from cdc_lib.read.pin import pin
from cdc_lib.read.table import TableReader
from tests.harness.lake.batches import BIGINT, INT, TEXT, Row, table
from tests.harness.lake.reading import assert_reads_as_spark, opened, spark_rows

HIDDEN = {"mirror": "false", "soft_delete": "_is_deleted", "scd2": "NOT _is_current"}


def orders(lake, mode):
    """An empty table in a mode; its key has two parts."""
    name = f"{lake.database}.orders"
    lake.config = lake.config.model_copy(update={"modes": (ModeRule(tables=name, mode=mode),)})
    return table(name, {"shop": TEXT, "id": BIGINT, "v": INT, "t": TEXT}, key=("shop", "id"))


def by_order(rows):
    """Rows in a fixed order."""
    return sorted(rows, key=lambda row: (row["_offset"], row["_row"], row["shop"] or "", row["id"] or 0))


class Shop:
    """Makes windows of random changes of a table."""

    def __init__(self, lake, schema, seed):
        self.lake, self.schema, self.chosen = lake, schema, random.Random(seed)
        self.alive, self.stop = set(), 4

    def window(self, *, emptied="", partial=False):
        """Write a window: inserts, updates and deletes; in its middle perhaps a statement that takes all rows.

        Rows may lack what they need not have.
        """
        start, rows, statements = self.stop, [], []
        self.stop = start + 100
        for number, n in enumerate(self.chosen.choices(range(40), k=20)):
            if emptied and number == 10:
                statements.append((emptied, self.schema.name, start + 20))
                self.alive.clear()
            op = self.chosen.choice("ud") if n in self.alive else "c"
            self.alive.symmetric_difference_update({n} if op != "u" else set())
            values = {"shop": "aä"[n % 2], "id": n // 2, "v": start + number, "t": f"t{n}"}
            lacks = {"c": (), "u": ("v", "t")[number % 3 :], "d": ("v", "t")}[op] if partial else ()
            kept = {name: value for name, value in values.items() if name not in lacks}
            rows.append(Row(op, start + 2 * number + 1, kept, absent=frozenset(lacks)))
        return self.lake.batches.window(start, self.stop, {self.schema: rows}, statements=statements)

    def plan(self, *keys):
        """Return the plan of the last batches."""
        return self.lake.batches.plan(self.stop, *keys)


def fresh(lake, reading: ReadLake, plan, name) -> TableReader:
    """Return a reader of a table with the batches of a plan."""
    waiting = Waiting(plan, tuple(load_plan(lake.store, plan)), {})
    iceberg = reading._load(name)
    return TableReader(
        lambda: with_waiting(pin(iceberg, name, reading._cache), iceberg, lake.config, lake.store, waiting)
    )


@contextmanager
def before_and_after(lake, plan, name, *, where="true"):
    """Yield a reader with the plan's batches, opened before the merge, and the rows of Spark after it."""
    with opened(lake) as reading:
        reader = fresh(lake, reading, plan, name)
        assert reader.until is not None
        lake.merge(plan)
        yield reader, spark_rows(lake, name, where)


@pytest.mark.parametrize(
    "emptied", ["", "truncate", "drop"], ids=["changes", "a TRUNCATE", "a DROP and an unlogged CREATE"]
)
@pytest.mark.parametrize("mode", HIDDEN)
def test_a_fresh_reader_sees_what_the_next_merge_makes(lake, mode, emptied):
    """Rows of the lake, new ones, changed and deleted ones; two windows wait, also with a statement that takes all in the second."""
    schema = orders(lake, mode)
    shop = Shop(lake, schema, seed=len(mode))
    for _ in range(2):
        lake.merge(shop.plan(shop.window()))
    plan = shop.plan(shop.window(), shop.window(emptied=emptied))
    missing = [("b", 1), ("a", 100)]
    with before_and_after(lake, plan, schema.name) as (reader, rows):
        shown = [row for row in rows if not row.get("_is_deleted") and row.get("_is_current", True)]
        assert_reads_as_spark(reader, shown, missing)
        if mode == "soft_delete":
            assert_reads_as_spark(reader, rows, missing, deleted=True)
        if mode == "scd2":
            with pytest.raises(ConfigError, match="past versions are read from the lake alone"):
                reader.versions(("a", 1))
        else:
            assert by_order(reader.rows().read_all().to_pylist()) == by_order(rows)


@pytest.mark.parametrize("mode", ["mirror", "soft_delete"])
def test_a_fresh_reader_completes_rows_that_lack_columns(lake, mode):
    """As with binlog_row_image=MINIMAL: an update has the key and what it assigned, a delete has the key."""
    schema = orders(lake, mode)
    shop = Shop(lake, schema, seed=7)
    for _ in range(2):
        lake.merge(shop.plan(shop.window()))
    plan = shop.plan(shop.window(partial=True), shop.window(), shop.window(partial=True))
    with before_and_after(lake, plan, schema.name) as (reader, rows):
        assert_reads_as_spark(reader, [row for row in rows if not row.get("_is_deleted")])
        assert by_order(reader.rows().read_all().to_pylist()) == by_order(rows)
        assert all(row["v"] is not None and row["t"] is not None for row in rows)


def test_a_fresh_reader_of_an_append_table_has_the_waiting_changes(lake):
    """With the entry of a TRUNCATE; each change once, also if a part of the plan is merged already."""
    schema = orders(lake, "append")
    shop = Shop(lake, schema, seed=4)
    lake.merge(shop.plan(first := shop.window()))
    plan = shop.plan(first, shop.window(), shop.window(emptied="truncate"))
    with before_and_after(lake, plan, schema.name) as (reader, rows):
        assert by_order(reader.rows().read_all().to_pylist()) == by_order(rows)
        assert reader.versions(("a", 1)).num_rows == sum((row["shop"], row["id"]) == ("a", 1) for row in rows)


@pytest.mark.parametrize("mode", ["mirror", "soft_delete"])
def test_a_fresh_reader_sees_the_rows_of_a_snapshot_that_waits(lake, mode):
    """A chunk is as of its low watermark: rows that the lake has from later changes stay."""
    schema = orders(lake, mode)
    shop = Shop(lake, schema, seed=3)
    first = [{"shop": "a", "id": n, "v": 0, "t": "read"} for n in range(30)]
    chunk = lake.batches.chunk(schema, 150, first[:15], number=0, last=False)
    lake.merge(shop.plan(chunk))
    more = lake.batches.chunk(schema, 150, first[15:], number=1)
    shop.stop = 104
    plan = shop.plan(more, shop.window(), shop.window())
    with before_and_after(lake, plan, schema.name) as (reader, rows):
        assert_reads_as_spark(reader, rows, [("c", 1)], deleted=True)


def test_what_is_merged_already_is_not_applied_again(lake):
    """The same batches wait still when the lake cursor is not acknowledged."""
    schema = orders(lake, "mirror")
    shop = Shop(lake, schema, seed=5)
    plan = shop.plan(shop.window(), shop.window())
    lake.merge(plan)
    with opened(lake) as reading:
        assert_reads_as_spark(fresh(lake, reading, plan, schema.name), spark_rows(lake, schema.name))


def test_waiting_changes_of_a_table_with_computed_columns_are_refused(lake):
    """Only Spark computes them; merged rows have them for every reader."""
    schema = orders(lake, "mirror")
    rule = ComputedRule(tables=schema.name, columns={"twice": "v * 2"})
    lake.config = lake.config.model_copy(update={"computed": (rule,)})
    shop = Shop(lake, schema, seed=8)
    lake.merge(shop.plan(shop.window()))
    with opened(lake) as reading:
        rows = reading.table(schema.name).rows().read_all().to_pylist()
        assert rows
        assert all(row["twice"] == row["v"] * 2 for row in rows)
        with pytest.raises(MergeError, match="computed columns, which only Spark computes"):
            fresh(lake, reading, shop.plan(shop.window()), schema.name)


def test_what_only_a_merge_can_do_is_refused(lake):
    """A column that the lake does not have yet, rows without all columns, a snapshot that is not whole."""
    schema = orders(lake, "mirror")
    shop = Shop(lake, schema, seed=6)
    lake.merge(shop.plan(shop.window()))
    wider = table(schema.name, {"shop": TEXT, "id": BIGINT, "v": INT, "t": TEXT, "more": INT}, key=schema.primary_key)
    values = {"shop": "a", "id": 1, "v": 1, "t": "x", "more": 1}
    batches = lake.batches
    plans = {
        "column more is not in the lake table yet": shop.plan(
            batches.window(104, 204, {wider: [Row("u", 105, values)]})
        ),
        r"a row has no value of column t \(binlog_row_image is not FULL\)": shop.plan(
            batches.window(104, 205, {schema: [Row("u", 105, values | {"id": 999}, absent=frozenset({"t"}))]})
        ),
    }
    with opened(lake) as reading:
        for message, plan in plans.items():
            with pytest.raises(MergeError, match=f"cannot be shown before they are merged.*{message}"):
                fresh(lake, reading, replace(plan, stop=replace(plan.stop, offset=205)), schema.name)
