"""Deletes of lake rows in a key range that the source no longer has, merged together with the rows of a snapshot.

Numbers, dates and bytes compare in Spark as at the source. Texts and times do not: the source decides which of these keys lie
in the range, for the keys that are in no chunk.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from cdc_lib.merge.key_ranges import ReadRange
from cdc_lib.model.lake_table import CHANGE_TYPES, LakeColumn, LakeName, LakeTable
from cdc_lib.model.lexer import quoted
from cdc_lib.model.manifest import BINLOG, EPOCH, OFFSET, OP, ROW, TS
from cdc_lib.model.position import SNAPSHOT_ROW, Point
from cdc_lib.model.schema import SourceType
from spark_jobs.merging.range_deletes import keys_in_range
from spark_jobs.merging.source_rows import Origin
from spark_jobs.sql import belongs, full_name, point, struct, text_literal

_NUMBERS = {"int", "year", "decimal"}


@dataclass(frozen=True, slots=True)
class SparkRangeDeletes:
    """Finds the deleted rows.

    Args:
        session: the Spark session.
        lake: name of the lake table.
        lake_table: its current state.
        columns: its columns when the rows are written.
        constants: columns that identify the source table, and their values.
        origin: opens the source; None without access to it.
        max_keys: most keys that the source is asked for.
    """

    session: SparkSession
    lake: LakeName
    lake_table: LakeTable
    columns: Sequence[LakeColumn]
    constants: Mapping[str, str]
    origin: Origin | None
    max_keys: int

    def of(self, read_range: ReadRange, frame: DataFrame, kept: Point | None = None) -> DataFrame:
        """Return a delete for each lake row of a range that is in no chunk, in the shape of a frame of changes.

        Args:
            read_range: the range.
            frame: changes of the table, including its chunks' rows.
            kept: the lake keeps rows from before this point; None for no such point.

        Raises:
            MergeError: the source is needed, and there are too many keys or no access to it.
            SourceError: the source does not answer.
        """
        names = [name for name in self.lake_table.primary_key if name not in self.constants]
        older = f"{struct((EPOCH, BINLOG, OFFSET))} < {point(read_range.point)}"
        of_table = belongs(self.constants)
        conditions, exact = _conditions(read_range, names)
        newer = [] if kept is None else [f"{struct((EPOCH, BINLOG, OFFSET))} >= {point(kept)}"]
        where = " AND ".join((older, *newer, *of_table, *conditions))
        listed = ", ".join(map(quoted, names))
        rows = self.session.sql(f"SELECT {listed} FROM {full_name(self.lake)} WHERE {where}")
        rows = rows.join(frame.where(f"{quoted(OP)} = 'r'").select(*map(quoted, names)), names, "left_anti")
        if not exact:
            rows = self._in_source_order(read_range, rows, names)
        return self._deletes(read_range, rows, names)

    def _in_source_order(self, read_range: ReadRange, rows: DataFrame, names: Sequence[str]) -> DataFrame:
        """Return the rows whose keys lie in the range by the source's order."""
        keys = rows.limit(self.max_keys + 1).toArrow()
        if keys.num_rows == 0:
            return rows
        in_range = keys_in_range(self.origin, self.max_keys, read_range, keys)
        return self.session.createDataFrame(in_range.rename_columns(list(names)).cast(_plain(keys.schema)))

    def _deletes(self, read_range: ReadRange, rows: DataFrame, names: Sequence[str]) -> DataFrame:
        values = {
            EPOCH: str(read_range.epoch),
            BINLOG: str(read_range.low.file_number),
            OFFSET: str(read_range.low.offset),
            ROW: str(SNAPSHOT_ROW),
            TS: f"timestamp_micros({int(read_range.at.timestamp() * 1_000_000)})",
        }
        values |= {name.lower(): quoted(name) for name in names}
        values |= {name.lower(): text_literal(value) for name, value in self.constants.items()}
        kept = [column for column in self.columns if column.name != OP]
        cells = [f"CAST({values.get(c.name.lower(), 'NULL')} AS {c.type}) AS {quoted(c.name)}" for c in kept]
        return rows.selectExpr(f"CAST('d' AS {CHANGE_TYPES[OP]}) AS {quoted(OP)}", *cells)


def _conditions(read_range: ReadRange, names: Sequence[str]) -> tuple[list[str], bool]:
    """Return Spark's conditions of the rows of a range, and whether they are exact."""
    by_name = {column.name: column.type for column in read_range.schema.columns}
    types = [by_name[name] for name in read_range.schema.primary_key]
    same = next((i for i, one in enumerate(types) if not _has_same_order(one)), len(types))
    conditions, exact = [], True
    for end, strict, last in ((read_range.selection.lower, ">", ">="), (read_range.selection.upper, "<", "<=")):
        if end is None:
            continue
        exact = exact and len(end) <= same
        # A condition on the first columns alone selects more keys, including all in the range.
        if texts := end[:same]:
            conditions.append(_compared(names, types, texts, strict, last))
    return conditions, exact


def _has_same_order(source_type: SourceType) -> bool:
    is_text = source_type.as_text or (source_type.kind == "decimal" and source_type.lake_type == "string")
    return source_type.family.orders_alike and not is_text


def _compared(names: Sequence[str], types: Sequence[SourceType], texts: Sequence[str], strict: str, last: str) -> str:
    """Compare column by column, as ``cdc_lib/snapshot/chunks.py`` does at the source."""
    values = [_literal(source_type, text) for source_type, text in zip(types, texts, strict=False)]
    terms = []
    for i, value in enumerate(values):
        equal = [f"{quoted(name)} = {before}" for name, before in zip(names, values[:i], strict=False)]
        terms.append(" AND ".join([*equal, f"{quoted(names[i])} {last if i == len(values) - 1 else strict} {value}"]))
    return f"({' OR '.join(f'({term})' for term in terms)})"


def _literal(source_type: SourceType, text: str) -> str:
    if source_type.kind in _NUMBERS:
        return f"{text}BD"
    match source_type.kind:
        case "bytes":
            return f"X'{text}'"
        case "date":
            return f"DATE'{text}'"
        case "datetime":
            return f"TIMESTAMP_NTZ'{text}'"
        case "timestamp":
            return f"TIMESTAMP'{text}+00:00'"
        case _:
            return f"CAST('{text}' AS DOUBLE)"


def _plain(schema: pa.Schema) -> pa.Schema:
    return schema.remove_metadata()
