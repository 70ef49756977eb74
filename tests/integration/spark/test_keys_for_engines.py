"""The key of a lake table as other engines see it: identifier fields and the sort order of its files."""

from __future__ import annotations

import datetime as dt

import pytest

from cdc_lib.config.modes import ModeRule
from cdc_lib.model.schema import SourceType
from spark_jobs.iceberg.loading import identity_of
from tests.harness.lake.batches import BIGINT, INT, TEXT, Row, table


def seen(lake, schema):
    """Return the identifier fields, the required columns and the sort order of a lake table."""
    java = lake.target(schema.name)._java()
    order = java.sortOrder().fields()
    fields = [str(java.schema().findColumnName(order.get(place).sourceId())) for place in range(order.size())]
    return (*identity_of(java), fields)


def merged(lake, schema, *rows):
    end = 100 * (1 + len(lake.cuts))
    lake.merge(lake.batches.plan(end + 100, lake.batches.window(end if lake.cuts else 4, end + 100, {schema: rows})))


@pytest.mark.parametrize("mode", ["mirror", "soft_delete"])
def test_the_key_identifies_a_row(lake, mode):
    """Engines that update rows by key, and users, see the key columns."""
    lake.config = lake.config.model_copy(update={"modes": (ModeRule(tables="*.*", mode=mode),)})
    schema = table(f"{lake.database}.lines", {"note": TEXT, "id": BIGINT, "part": TEXT}, key=("id", "part"))
    merged(
        lake,
        schema,
        Row("c", 10, {"note": None, "id": 1, "part": "a"}),
        Row("c", 20, {"note": "x", "id": 1, "part": "b"}),
    )
    fields, required, order = seen(lake, schema)
    assert set(fields) == {"id", "part"}
    assert set(required) == {"id", "part"}
    assert order == ["id", "part"]
    merged(
        lake,
        schema,
        Row("u", 210, {"note": "y", "id": 1, "part": "a"}),
        Row("d", 220, {"note": "x", "id": 1, "part": "b"}),
    )
    alive = "WHERE _is_deleted IS NOT TRUE" if mode == "soft_delete" else ""
    live = lake.spark.sql(f"SELECT note, id, part FROM {lake.name(schema.name)} {alive}").collect()
    assert [tuple(row) for row in live] == [("y", 1, "a")]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (SourceType("double"), 0.5),
        (SourceType("date"), dt.date(2026, 1, 1)),
        (SourceType("datetime"), dt.datetime.fromisoformat("2026-01-01")),
    ],
)
def test_a_nullable_or_floating_point_key_gives_no_identifier_fields(lake, kind, value):
    """A zero date is null in the lake: a required column would make the merge fail."""
    schema = table(f"{lake.database}.days", {"id": kind, "n": INT})
    merged(lake, schema, Row("c", 10, {"id": value, "n": 1}))
    assert seen(lake, schema) == ([], [], ["id"])


def test_scd2_versions_are_sorted_by_the_key_without_identifier_fields(lake):
    lake.config = lake.config.model_copy(update={"modes": (ModeRule(tables="*.*", mode="scd2"),)})
    schema = table(f"{lake.database}.prices", {"id": BIGINT, "n": INT})
    merged(lake, schema, Row("c", 10, {"id": 1, "n": 1}), Row("u", 20, {"id": 1, "n": 2}))
    assert seen(lake, schema) == ([], [], ["id"])


def test_rows_are_sorted_once(lake):
    """A merge produces its rows in the table's sort order, without a second sort."""
    schema = table(f"{lake.database}.orders", {"id": BIGINT, "n": INT})
    merged(lake, schema, Row("c", 10, {"id": 1, "n": 1}))
    name, view = lake.name(schema.name), f"again_{lake.database}"
    lake.spark.table(name).sortWithinPartitions("id").createOrReplaceTempView(view)
    plan = lake.spark.sql(f"EXPLAIN INSERT INTO {name} SELECT * FROM {view}").collect()[0][0]
    assert plan.count("Sort ") == 1
