"""SQL that gives an existing Iceberg table another layout; every statement may be repeated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyspark.sql import Row, SparkSession

from cdc_lib.lake.layout import LayoutChange
from cdc_lib.model.lake_table import LakeName
from cdc_lib.model.layout import Partition, partition_of
from cdc_lib.model.lexer import quoted
from spark_jobs.iceberg.ddl import SETTINGS, layout_properties, order_sql, partitions_of, set_sql
from spark_jobs.sql import full_name, plain_literal


def change_sql(
    session: SparkSession, name: LakeName, change: LayoutChange, key: Sequence[str], *, scd2: bool
) -> Iterator[str]:
    """Yield the statements that change what is written from now on.

    Args:
        session: reads the current partition spec.
        name: the table.
        change: to its new layout.
        key: of the table.
        scd2: whether the table keeps versions, in partitions of its own.
    """
    table, layout = full_name(name), change.to
    have = partitions_in(session.sql(f"DESCRIBE TABLE {table}").collect())
    wanted = partitions_of("scd2" if scd2 else "mirror", layout)
    for one in have:
        if one not in wanted:
            yield f"ALTER TABLE {table} DROP PARTITION FIELD {one}"
    for one in wanted:
        if one not in have:
            yield f"ALTER TABLE {table} ADD PARTITION FIELD {one} AS {quoted(one.field)}"
    yield order_sql(name, key, layout)
    if removed := [one for one in change.removed if one not in SETTINGS]:
        yield f"ALTER TABLE {table} UNSET TBLPROPERTIES IF EXISTS ({', '.join(map(plain_literal, removed))})"
    defaults = {one: SETTINGS[one] for one in change.removed if one in SETTINGS}
    yield set_sql(name, {**defaults, **layout_properties(layout)})


def partitions_in(described: Sequence[Row]) -> list[Partition]:
    """Return the partition spec from the rows of DESCRIBE TABLE."""
    names = [row.col_name for row in described]
    if "# Partitioning" in names:
        return [
            partition_of(row.data_type)
            for row in described[names.index("# Partitioning") + 1 :]
            if row.col_name.startswith("Part ")
        ]
    if "# Partition Information" in names:  # columns only
        return [Partition("identity", name) for name in names[names.index("# Partition Information") + 2 :] if name]
    return []
