"""Rows of a range of keys that the lake has and the source no longer: deletes beside the rows that a snapshot brings.

Numbers, dates and bytes compare in Spark as at the source. Texts and times do not; which of such keys lie in the range is
asked of the source, for the keys alone that no chunk brings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from cdc_lib.errors import MergeError
from cdc_lib.merge.key_ranges import ReadRange
from cdc_lib.model.lake_table import CHANGE_TYPES, LAKE_FILE, LAKE_NAMES, LakeColumn, LakeName, LakeTable
from cdc_lib.model.manifest import EPOCH, FILE, OFFSET, OP, ROW, TS
from cdc_lib.model.position import SNAPSHOT_ROW
from cdc_lib.model.schema import SourceType
from spark_jobs.merging.reselect import Origin
from spark_jobs.sql import belongs, full_name, point, quoted, struct, text_literal

_NUMBERS = {"int", "year", "decimal"}


@dataclass(frozen=True, slots=True)
class RangeDeletes:
    """Finds the rows that are gone.

    Args:
        session: to read in.
        lake: the lake table.
        lake_table: it, as it is.
        columns: its columns, as they are when the rows are written.
        constants: columns that say whose rows are meant, and their values.
        origin: the way to the source; None where there is none.
        max_keys: more keys than these are not asked for.
    """

    session: SparkSession
    lake: LakeName
    lake_table: LakeTable
    columns: Sequence[LakeColumn]
    constants: Mapping[str, str]
    origin: Origin | None
    max_keys: int

    def of(self, span: ReadRange, brought: DataFrame) -> DataFrame:
        """Return a delete for each row of a range that no chunk brings, in the shape of a frame of changes.

        Args:
            span: the range.
            brought: changes of the table, its chunks' rows among them.

        Raises:
            MergeError: too many keys would have to be asked for, or nobody can be asked.
            SourceError: the source does not answer.
        """
        names = [name for name in self.lake_table.primary_key if name not in self.constants]
        older = f"{struct((EPOCH, LAKE_FILE, OFFSET))} < {point(span.point)}"
        whose = belongs(self.constants)
        conditions, exact = _conditions(span, names)
        where = " AND ".join((older, *whose, *conditions))
        listed = ", ".join(map(quoted, names))
        rows = self.session.sql(f"SELECT {listed} FROM {full_name(self.lake)} WHERE {where}")
        rows = rows.join(brought.where(f"{quoted(OP)} = 'r'").select(*map(quoted, names)), names, "left_anti")
        if not exact:
            rows = self._asked(span, rows, names)
        return self._deletes(span, rows, names)

    def _asked(self, span: ReadRange, rows: DataFrame, names: Sequence[str]) -> DataFrame:
        """Leave those that lie in the range by the order of the source."""
        keys = rows.limit(self.max_keys + 1).toArrow()
        if keys.num_rows == 0:
            return rows
        if self.origin is None or keys.num_rows > self.max_keys:
            why = (
                "nobody can (reselect.mode)"
                if self.origin is None
                else f"they are more than {self.max_keys} (reselect.max_keys)"
            )
            raise MergeError(
                f"which rows of {span.selection.text} were deleted must be asked of the source, and {why}",
                hint="Change that, or give the snapshot up (cdc snapshot {source} --cancel TABLE) and take the whole "
                "table.",
                table=span.schema.name,
            )
        found = self.origin().within(span.schema, span.selection, keys.rename_columns(list(span.schema.primary_key)))
        return self.session.createDataFrame(found.rename_columns(list(names)).cast(_plain(keys.schema)))

    def _deletes(self, span: ReadRange, rows: DataFrame, names: Sequence[str]) -> DataFrame:
        at = {
            EPOCH: str(span.epoch),
            FILE: str(span.low.file_number),
            OFFSET: str(span.low.offset),
            ROW: str(SNAPSHOT_ROW),
            TS: f"timestamp_micros({int(span.at.timestamp() * 1_000_000)})",
        }
        values = {LAKE_NAMES[name].lower(): value for name, value in at.items()}
        values |= {name.lower(): quoted(name) for name in names}
        values |= {name.lower(): text_literal(value) for name, value in self.constants.items()}
        kept = [column for column in self.columns if column.name != OP]
        own = [f"CAST({values.get(c.name.lower(), 'NULL')} AS {c.type}) AS {quoted(c.name)}" for c in kept]
        return rows.selectExpr(f"CAST('d' AS {CHANGE_TYPES[OP]}) AS {quoted(OP)}", *own)


def _conditions(span: ReadRange, names: Sequence[str]) -> tuple[list[str], bool]:
    """Return what Spark can say of the rows of a range, and whether that is all there is to say."""
    own = {column.name: column.type for column in span.schema.columns}
    types = [own[name] for name in span.schema.primary_key]
    same = next((i for i, one in enumerate(types) if not _compares_alike(one)), len(types))
    found, exact = [], True
    for end, strict, last in ((span.selection.lower, ">", ">="), (span.selection.upper, "<", "<=")):
        if end is None:
            continue
        exact = exact and len(end) <= same
        # The first columns alone stand for more keys, among them all that are meant.
        if texts := end[:same]:
            found.append(_compared(names, types, texts, strict, last))
    return found, exact


def _compares_alike(own: SourceType) -> bool:
    return own.family.orders_alike and not own.as_text and not (own.kind == "decimal" and own.lake_type == "string")


def _compared(names: Sequence[str], types: Sequence[SourceType], texts: Sequence[str], strict: str, last: str) -> str:
    """Compare column by column, as ``cdc_lib/snapshot/chunks.py`` does at the source."""
    values = [_literal(own, text) for own, text in zip(types, texts, strict=False)]
    terms = []
    for i, value in enumerate(values):
        equal = [f"{quoted(name)} = {before}" for name, before in zip(names, values[:i], strict=False)]
        terms.append(" AND ".join([*equal, f"{quoted(names[i])} {last if i == len(values) - 1 else strict} {value}"]))
    return f"({' OR '.join(f'({term})' for term in terms)})"


def _literal(own: SourceType, text: str) -> str:
    if own.kind in _NUMBERS:
        return f"{text}BD"
    match own.kind:
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
