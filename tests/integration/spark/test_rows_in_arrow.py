"""Few rows are merged in Arrow: the table comes out as by Spark SQL, with files as Iceberg's own writers make them."""

from __future__ import annotations

from decimal import Decimal
from itertools import count

import pyarrow.parquet as pq
import pytest

from cdc_lib.model.schema import SourceType
from spark_jobs.iceberg import arrow_rows
from spark_jobs.iceberg.arrow_rows import ArrowRows
from spark_jobs.merging import table_merge
from spark_jobs.runtime import session
from tests.harness.batches import BIGINT, INT, TEXT, Row, table
from tests.harness.lake import Lake
from tests.harness.past import local_path

COLUMNS = {"id": BIGINT, "name": TEXT, "price": SourceType("decimal", precision=12, scale=2), "n": INT}


LINEAGE = (2147483540, 2147483539)
"""Field ids of a row's id and of the commit that changed it last, which Spark writes as nulls."""


def row(op, offset, key, name="new", price="1.00", n=0):
    return Row(op, offset, {"id": key, "name": name, "price": Decimal(price), "n": n})


FIRST = [row("c", 10 + key, key) for key in range(1, 41)]
SECOND = [
    row("u", 110, 1, "Zoë", "-0.01"),
    row("d", 111, 2),
    row("c", 112, 50, None, "9999999999.99", 7),
    row("u", 113, 50, "twice"),
    row("d", 114, 60),
    row("d", 115, 3),
    row("c", 116, 3, "again"),
]
THIRD = [row("d", 210, key) for key in (1, 3)] + [row("u", 213, 4, "third")]
REST = [row("d", 220 + key, key) for key in range(1, 61)]


@pytest.fixture
def ways(lake, monkeypatch, mode):
    """Return two tables, and what merges a window with the same changes into both: into one in Arrow, into the other by Spark SQL."""
    arrow, spark = (table(f"{lake.database}.{name}", COLUMNS) for name in ("arrow", "spark"))
    settings = lake.config.model_dump(mode="json") | {"modes": [{"tables": "*.*", "mode": mode}]}
    here = Lake(lake.spark, type(lake.config).model_validate(settings), lake.store)
    starts, done = count(4, 100), []
    real, is_few = ArrowRows._with_rows, table_merge.is_few

    def noted(self, *arguments):
        done.append(self.of)
        return real(self, *arguments)

    monkeypatch.setattr(ArrowRows, "_with_rows", noted)
    monkeypatch.setattr(
        table_merge, "is_few", lambda routed, *more: routed.table == arrow.name and is_few(routed, *more)
    )

    def merge(rows, *, read_at=None, same_files=True):
        if read_at:
            stop, values = 104, [one.values for one in rows]
            manifests = [here.batches.chunk(one, read_at, values, snapshot="s") for one in (arrow, spark)]
        else:
            start = next(starts)
            stop = start + 100
            manifests = [here.batches.window(start, stop, {arrow: rows, spark: rows})]
        done.clear()
        here.merge(here.batches.plan(stop, *manifests))
        assert done == [arrow.name]
        columns = [*COLUMNS, "_epoch", "_binlog", "_offset", "_row", "_ts"]
        columns += {"soft_delete": ["_is_deleted"], "append": ["_op"]}.get(mode, [])
        assert here.rows(arrow.name, *columns) == here.rows(spark.name, *columns)
        if same_files:
            assert files(here, arrow.name) == files(here, spark.name)
            assert summary(here, arrow.name) == summary(here, spark.name)

    return [arrow.name, spark.name], merge


@pytest.fixture
def mode():
    return "mirror"


def files(lake, name):
    """Return what Iceberg knows of a table's files, without names, sizes and the rows' lineage, which follows from their positions."""
    columns = (
        "content, record_count, spec_id, sort_order_id, value_counts, null_value_counts, lower_bounds, upper_bounds"
    )
    found = [one.asDict() for one in lake.spark.sql(f"SELECT {columns} FROM {lake.name(name)}.files").collect()]
    for one in found:
        for counts in (one["value_counts"], one["null_value_counts"]):
            for field in LINEAGE if counts else ():
                counts.pop(field, None)
    return sorted(found, key=repr)


def summary(lake, name):
    found = lake.spark.sql(
        f"SELECT summary FROM {lake.name(name)}.snapshots ORDER BY committed_at DESC LIMIT 1"
    ).first()[0]
    sizes = ("size", "app", "version", "spark", "engine", "cdc.", "changed-partition", "manifests")
    return {key: text for key, text in found.items() if not any(part in key for part in sizes)}


@pytest.mark.parametrize("mode", ["mirror", "soft_delete", "append"])
def test_rows_files_and_summaries_are_those_of_spark(ways):
    _, merge = ways
    for rows in (FIRST, SECOND, THIRD):
        merge(rows)


@pytest.mark.parametrize("mode", ["mirror", "soft_delete"])
def test_rows_that_are_newer_than_a_change_stay(lake, ways):
    """A chunk was read in the middle of the window that is merged after it."""
    (arrow, _), merge = ways
    merge(FIRST)
    merge([row("r", 0, key, "read") for key in (1, 2, 3)], read_at=150)
    merge([row("u", 110, 1, "older"), row("d", 120, 2), row("u", 160, 3, "newer"), row("c", 170, 90, "another")])
    assert {(1, "read"), (2, "read"), (3, "newer"), (90, "another")} <= set(lake.rows(arrow, "id", "name"))


def test_a_file_all_of_whose_rows_are_deleted_is_removed(lake, ways):
    """So that nothing is left of the table, and the next rows begin with nothing to look into."""
    (arrow, _), merge = ways
    merge(FIRST)
    merge(SECOND)
    merge(REST, same_files=False)
    assert (lake.rows(arrow, "id"), files(lake, arrow)) == ([], [])
    merge([row("c", 350, 5)], same_files=False)
    assert lake.rows(arrow, "id") == [(5,)]


def test_rows_are_compressed_as_the_source_file_says(lake, monkeypatch):
    """A setting of a server's session counts more than the property of the table, as it does in Spark."""
    monkeypatch.setattr(session, "is_attached", lambda: True)
    settings = lake.config.model_dump(mode="json")
    settings["merge"]["conf"] = {"spark.sql.iceberg.compression-codec": "gzip"}
    here = Lake(lake.spark, type(lake.config).model_validate(settings), lake.store)
    orders = table(f"{lake.database}.orders", COLUMNS)
    here.merge(here.batches.plan(104, here.batches.window(4, 104, {orders: FIRST})))
    [path] = [row[0] for row in lake.spark.sql(f"SELECT file_path FROM {lake.name(orders.name)}.data_files").collect()]
    assert pq.ParquetFile(local_path(path)).metadata.row_group(0).column(0).compression == "GZIP"


def test_few_changes_find_their_rows_in_several_files(ways):
    """Files without their keys are not read."""
    _, merge = ways
    for start in (0, 1000, 2000):
        merge([row("c", 10 + start + key, start + key) for key in range(1, 41)])
    merge([row("u", 4000 + key, key, "changed") for key in (1, 40, 1001, 5000)] + [row("d", 4010, 2040)])


@pytest.mark.parametrize("small", [0, 1 << 20])
def test_files_that_are_not_of_this_machine_are_read_through_iceberg(ways, monkeypatch, small):
    """As a whole, or where they are asked for; deletion vectors as well."""
    monkeypatch.setattr(arrow_rows, "_LOCAL", "none:")
    monkeypatch.setattr(arrow_rows, "_SMALL_FILE", small)
    _, merge = ways
    for rows in (FIRST, SECOND, THIRD):
        merge(rows)
