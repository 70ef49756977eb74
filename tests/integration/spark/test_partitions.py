"""Each engine finds the rows of a condition on a partition column: each transform of each lake type, in each layout.

What an engine does not find is asserted as it is, see :mod:`cdc_lib.lake.reader_faults`.
"""

from __future__ import annotations

from itertools import product

import pyiceberg
import pyspark
import pytest
from pyiceberg.expressions import (
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNull,
    LessThan,
    LessThanOrEqual,
    NotEqualTo,
    NotNull,
)

from cdc_lib.lake.catalog import open_table
from cdc_lib.lake.reader_faults import READER_FAULTS, kind_of
from tests.harness.lake.duckdb_queries import arrow_tables, installed, versions
from tests.harness.lake.partitioned_tables import TRANSFORMS, merge, sql, tables
from tests.harness.lake.past import metadata_file

LAYOUTS = [(version, mode) for version, mode in product((3, 2), ("merge_on_read", "copy_on_write"))]
PREDICATES = {
    "=": EqualTo,
    "<": LessThan,
    "<=": LessThanOrEqual,
    ">": GreaterThan,
    ">=": GreaterThanOrEqual,
    "<>": NotEqualTo,
}
SPARK, PYICEBERG = f"Spark {pyspark.__version__}", f"PyIceberg {pyiceberg.__version__}"


def by_spark(lake, table, conditions):
    lake.spark.conf.set("spark.sql.session.timeZone", "UTC")
    name = lake.name(table.schema(lake.database).name)
    for one in conditions:
        where = sql(one, zoned="TIMESTAMP", plain="TIMESTAMP_NTZ", binary=lambda value: f"X'{value.hex()}'")
        yield {row.id for row in lake.spark.sql(f"SELECT id FROM {name} WHERE {where}").collect()}


def by_pyiceberg(lake, table, conditions):
    with open_table(lake.config, table.schema(lake.database).name) as loaded:
        for one in conditions:
            try:
                found = loaded.scan(row_filter=predicate(one), selected_fields=("id",)).to_arrow()
            except OverflowError as error:
                yield str(error)
            else:
                yield set(found["id"].to_pylist())


def predicate(one):
    """Return a condition as PyIceberg's; it takes dates and times as texts."""
    if one.operator == "IS NULL":
        return IsNull("v")
    if one.operator == "IS NOT NULL":
        return NotNull("v")
    values = [value.isoformat() if hasattr(value, "isoformat") else value for value in one.values]
    return In("v", values) if one.operator == "IN" else PREDICATES[one.operator]("v", values[0])


def by_duckdb(version, lake, table, conditions):
    def blob(value):
        return "'" + "".join(f"\\x{one:02X}" for one in value) + "'::BLOB"

    file = metadata_file(lake, table.schema(lake.database).name)
    texts = [sql(one, zoned="TIMESTAMPTZ", plain="TIMESTAMP", binary=blob) for one in conditions]
    queries = [f"SELECT id FROM iceberg_scan('{file}') WHERE {where}" for where in texts]
    for found in arrow_tables(installed(version), queries, ["SET TimeZone = 'UTC'"]):
        yield found if isinstance(found, str) else set(found["id"].to_pylist())


def ignores_deletes(engine, table, condition):
    """Whether this is the known fault that has nothing to do with partitions: see ``docs/operations/limits.md``."""
    deletes = (table.version, table.mode) == (2, "merge_on_read")
    return engine == "DuckDB 1.4.4" and deletes and condition.operator in ("IS NULL", "IS NOT NULL")


def faulty(engine, read, lake, table):
    """Return the conditions whose rows an engine does not find exactly, with what it returns."""
    conditions = [one for one in table.conditions() if not ignores_deletes(engine, table, one)]
    found = zip(conditions, read(lake, table, conditions), strict=True)
    rows = table.rows()
    return {one: got for one, got in found if got != {key for key, value in rows.items() if one.holds(value)}}


@pytest.mark.turns(32)
@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda one: f"v{one[0]}_{one[1]}")
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_engines_find_the_rows_of_a_condition_on_a_partition(lake, transform, layout):
    """Of a condition with =, <, <=, >, >=, <>, IN, IS NULL and IS NOT NULL, with the smallest and the largest value of the type."""
    chosen = tables([transform], [layout])
    merge(lake, chosen)
    engines = {SPARK: by_spark, PYICEBERG: by_pyiceberg}
    for version in versions():
        engines[f"DuckDB {version}"] = lambda *asked, version=version: by_duckdb(version, *asked)
    wrong = {
        (engine, kind_of(table.lake_type)): faults
        for table, (engine, read) in product(chosen, engines.items())
        if (faults := faulty(engine, read, lake, table))
    }
    kinds = {kind_of(table.lake_type) for table in chosen}
    known = {
        (fault.reader, kind)
        for fault in READER_FAULTS
        for kind in fault.types
        if fault.transform == transform.partition("_")[0] and kind in kinds and fault.reader in engines
    }
    assert wrong.keys() == known, wrong
