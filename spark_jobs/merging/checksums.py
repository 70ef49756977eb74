"""The lake's side of a comparison: checksums of all parts of a table in one pass, lists of rows, rows by name."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr

from cdc_lib.merge.collapse import DELETE
from cdc_lib.model.lake_table import ORDER, LakeName, LakeTable
from cdc_lib.model.lexer import quoted
from cdc_lib.model.manifest import BINLOG, EPOCH, OFFSET, OP, ROW
from cdc_lib.model.position import Point
from cdc_lib.model.table_mode import RESET
from cdc_lib.model.table_name import TableName
from cdc_lib.verify.checksums import ListedRow, RangeBucket, Sum
from cdc_lib.verify.comparability import Subject, lake_cuts, lake_range
from cdc_lib.verify.judgement import RowState
from cdc_lib.verify.lake import states_of
from spark_jobs.errors import translate_errors
from spark_jobs.lake_format import LAKE_FORMAT
from spark_jobs.runtime.arrow import frame_of
from spark_jobs.sql import belongs, full_name, point, struct


@dataclass(frozen=True, slots=True)
class SparkLakeSums:
    """Reads the lake with Spark; implements :class:`cdc_lib.verify.lake.LakeSums`.

    Args:
        spark: a session that :func:`spark_jobs.runtime.session.connect_catalog` has seen.
        source: name of the source.
    """

    spark: SparkSession
    source: str

    def load(self, lake: LakeName, table: TableName, *, routed: bool) -> LakeTable | None:
        """Return the current state of a lake table, with the marker of ``database.table``; None if it is missing."""
        return LAKE_FORMAT.table(self.spark, lake, self.source, {table: routed}).load()

    def parts(self, subject: Subject, snapshot: int | None, cuts: tuple[int, ...]) -> dict[RangeBucket, Sum]:
        """Return the checksums of all parts of a table, in one pass."""
        if snapshot is None:
            return {}
        with translate_errors("read the lake table", subject.schema.name):
            rows = self._hashed(subject, snapshot, cuts)
            sums = rows.selectExpr("range", f"{subject.lake_bucket} AS bucket", "weight", "weight * hash AS hash")
            grouped = sums.groupBy("range", "bucket").agg({"weight": "sum", "hash": "sum"})
            parts = grouped.selectExpr("range", "bucket", "`sum(weight)`", "`sum(hash)`").collect()
        return {RangeBucket(int(row[0]), int(row[1])): Sum(int(row[2]), int(row[3])) for row in parts}

    def listed(
        self, subject: Subject, snapshot: int | None, cuts: tuple[int, ...], parts: Collection[RangeBucket]
    ) -> list[ListedRow]:
        """Return the rows of some parts."""
        if snapshot is None or not parts:
            return []
        # A table of Arrow needs no Python on the executors.
        ranges, buckets = zip(*parts, strict=True)
        named = {"range": pa.array(ranges, pa.int32()), "bucket": pa.array(buckets, pa.int64())}
        chosen = frame_of(self.spark, pa.table(named), "range INT, bucket BIGINT").hint("broadcast")
        with translate_errors("read the lake table", subject.schema.name):
            rows = self._hashed(subject, snapshot, cuts, within=_bounds(subject, cuts, {part.range for part in parts}))
            rows = rows.selectExpr("*", f"{subject.lake_bucket} AS bucket")
            rows = rows.join(chosen, ["range", "bucket"], "left_semi")
            if subject.how == "copies":
                grouped = rows.groupBy("name", "hash").agg({"weight": "sum"})
                listed = grouped.selectExpr("name", "hash", "`sum(weight)` AS weight", "array() AS key").where(
                    "weight <> 0"
                )
            else:
                listed = rows.selectExpr("name", "hash", "weight", "key")
            return [
                ListedRow(str(row[0]), int(row[1]), int(row[2]), tuple(map(_text, row[3]))) for row in listed.collect()
            ]

    def rows(self, subject: Subject, snapshot: int | None, keys: Mapping[str, tuple[str, ...]]) -> dict[str, RowState]:
        """Return rows by their names."""
        if snapshot is None or not keys:
            return {}
        with translate_errors("read the lake table", subject.schema.name):
            cells = ", ".join(cell.lake for cell in subject.cells)
            within = ""
            if subject.how == "ranges":
                firsts = [int(key[0]) for key in keys.values()]
                within = f"{quoted(subject.first)} BETWEEN {min(firsts)} AND {max(firsts)}"
            frame = self._open(subject, snapshot, within).selectExpr(
                f"{subject.lake_name} AS name", f"array({cells}) AS cells", f"{_weight(subject)} AS weight",
                f"{struct((EPOCH, BINLOG, OFFSET))} AS written",
            )  # fmt: skip
            rows = frame.where(frame.name.isin(list(keys))).collect()
        return states_of(subject, ((row["name"], row["cells"], row["weight"], Point(*row["written"])) for row in rows))

    def _hashed(self, subject: Subject, snapshot: int, cuts: tuple[int, ...], within: str = "") -> DataFrame:
        """Return the range, hash, name, key texts and weight of each row."""
        key = "array()" if subject.how == "copies" else f"array({', '.join(cell.lake for cell in subject.keys)})"
        name = "''" if subject.how == "copies" else subject.lake_name
        first = quoted(subject.first) if subject.how == "ranges" else "NULL"
        rows = self._open(subject, snapshot, within).selectExpr(
            f"{first} AS __first", f"{subject.lake_hash} AS hash", f"{name} AS name", f"{key} AS key",
            f"{_weight(subject)} AS weight",
        )  # fmt: skip
        # Each step of the search for the range copies its row: all but the hash and the key have been dropped before.
        rows = ranged(rows, subject, cuts).selectExpr("__range AS range", "hash", "name", "key", "weight")
        if subject.how != "copies":
            return rows
        return rows.selectExpr("range", "hash", "CAST(hash AS STRING) AS name", "key", "weight")

    def _open(self, subject: Subject, snapshot: int, within: str = "") -> DataFrame:
        conditions = belongs(subject.constants)
        table = f"{full_name(subject.lake)} VERSION AS OF {snapshot}"
        after_reset = _since_reset(table, conditions) if subject.folded else ""
        kept = subject.kept_before
        newer = f"{struct((EPOCH, BINLOG, OFFSET))} >= {point(kept)}" if kept is not None else ""
        where = " AND ".join((*conditions, *filter(None, [subject.current_rows, after_reset, newer, within])))
        rows = f"SELECT * FROM {table}{f' WHERE {where}' if where else ''}"
        if not subject.folded or subject.how == "copies":
            return self.spark.sql(rows)
        return self.spark.sql(_last_changes(subject, rows)).drop("__rank")


def _last_changes(subject: Subject, rows: str) -> str:
    """Return a SELECT of the last change of each key, without deletes, and with ``__rank``."""
    key, order = ", ".join(map(quoted, subject.schema.primary_key)), struct(ORDER)
    ranked = f"SELECT *, row_number() OVER (PARTITION BY {key} ORDER BY {order} DESC) AS __rank FROM ({rows})"
    return f"SELECT * FROM ({ranked}) WHERE __rank = 1 AND {quoted(OP)} <> '{DELETE}'"


def ranged(rows: DataFrame, subject: Subject, cuts: tuple[int, ...]) -> DataFrame:
    """Return rows with the number of their range as ``__range``, by the key's first column in ``__first``."""
    rows = rows.selectExpr("*", f"{lake_cuts(subject, cuts)} AS __cuts", "0 AS __range")
    for step in lake_range(subject, len(cuts)):
        rows = rows.withColumn("__range", expr(step))
    return rows


def _weight(subject: Subject) -> str:
    """Return a row's weight: without a key the table holds changes, and a delete cancels an insert."""
    return f"IF({quoted(OP)} = 'd', -1L, 1L)" if subject.how == "copies" else "1L"


def _bounds(subject: Subject, cuts: tuple[int, ...], ranges: Collection[int]) -> str:
    """Return the condition that skips files without these ranges; empty if no file can be skipped."""
    if subject.how != "ranges" or not cuts:
        return ""
    least, greatest = min(ranges), max(ranges)
    bounds = [f"{quoted(subject.first)} > {cuts[least - 1]}"] if least else []
    bounds += [f"{quoted(subject.first)} <= {cuts[greatest]}"] if greatest < len(cuts) else []
    return " AND ".join(bounds)


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _since_reset(table: str, conditions: Iterable[str]) -> str:
    """Return the condition of the changes after the last reset.

    Args:
        table: SQL relation of the append table.
        conditions: conditions of the source table's rows.
    """
    order = struct((EPOCH, BINLOG, OFFSET, ROW))
    last = " AND ".join((f"{quoted(OP)} = '{RESET}'", *conditions))
    return f"coalesce({order} > (SELECT max({order}) FROM {table} WHERE {last}), true)"
