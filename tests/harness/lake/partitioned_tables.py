"""A table for each transform of each lake type, and conditions on its partition column: what engines may skip files wrongly on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from cdc_lib.config.layouts import LayoutRule
from cdc_lib.model.schema import SourceType, TableSchema
from tests.harness.lake.batches import BIGINT, INT, TEXT, Row, table
from tests.harness.lake.running import Lake

_TEN = 10
"""Width of the partitions of numbers."""
_TIMES = [
    datetime(1000, 1, 1, 0, 0, 0, 1),  # noqa: DTZ001
    datetime(1931, 7, 15, 12),  # noqa: DTZ001
    datetime(1969, 12, 31, 23, 59, 59, 999999),  # noqa: DTZ001
    datetime(1970, 1, 1),  # noqa: DTZ001
    datetime(2024, 2, 29, 23, 30),  # noqa: DTZ001
    datetime(2037, 12, 31, 1, 1, 1, 123456),  # noqa: DTZ001
]

COLUMNS: dict[str, tuple[SourceType, Sequence[Any]]] = {
    "int": (INT, [-(2**31), -(2**31) + 5, -11, -1, 0, 7, 10, 2**31 - 1]),
    "bigint": (BIGINT, [-(2**63), -(2**63) + 5, -11, -1, 0, 7, 10, 2**63 - 1]),
    "unsigned": (
        SourceType("int", width=8, unsigned=True),
        [Decimal(one) for one in (0, 7, 19, 100, 2**63, 2**64 - 1)],
    ),
    "decimal": (
        SourceType("decimal", precision=9, scale=2),
        [Decimal(one) for one in ("-9999990.00", "-10.05", "-0.01", "0.00", "0.07", "12.34", "9999999.99")],
    ),
    "long": (
        SourceType("decimal", precision=38, scale=10),
        [Decimal(f"{one}E-10") for one in (-(10**37), -105, -1, 0, 7, 1234, 10**38 - 1)],
    ),
    "text": (TEXT, ["", "a", "ab", "abc", "straße", "stra", "zz\U0001f600", "\U0001f600\U0001f600\U0001f600"]),
    "bytes": (
        SourceType("bytes", width=16),
        [b"", b"\x00", b"\x00\x01\x02", b"ab", b"\x7f\xff\xff", b"\xff\xff\xff\xff"],
    ),
    "date": (
        SourceType("date"),
        [
            date(1000, 1, 1),
            date(1931, 7, 15),
            date(1969, 12, 31),
            date(1970, 1, 1),
            date(2024, 2, 29),
            date(9999, 12, 31),
        ],
    ),
    "datetime": (SourceType("datetime", scale=6), _TIMES),
    "timestamp": (SourceType("timestamp", scale=6), [one.replace(tzinfo=UTC) for one in _TIMES[2:]]),
    "flag": (SourceType("int", width=1, as_boolean="error"), [False, True]),
}
"""By name of a lake type, a column of the source and its values, smallest first. Partitions by float or double are refused."""

TRANSFORMS = {
    "identity": ("v", tuple(COLUMNS)),
    "bucket": ("bucket(4, v)", tuple(name for name in COLUMNS if name != "flag")),
    "truncate": ("truncate(2, v)", ("text", "bytes")),
    "truncate_10": ("truncate(10, v)", ("int", "bigint", "unsigned", "decimal", "long")),
    "year": ("year(v)", ("date", "datetime", "timestamp")),
    "month": ("month(v)", ("date", "datetime", "timestamp")),
    "day": ("day(v)", ("date", "datetime", "timestamp")),
    "hour": ("hour(v)", ("datetime", "timestamp")),
}
"""By name, the partition and the columns that can have it."""

COMPARISONS = {
    "=": lambda left, right: left == right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
    "<>": lambda left, right: left != right,
}


@dataclass(frozen=True)
class Asked:
    """A condition on the column ``v``: its operator and its values."""

    operator: str
    values: tuple[Any, ...] = ()

    def holds(self, value: Any) -> bool:
        """Whether a row with this value is among the rows."""
        if self.operator in ("IS NULL", "IS NOT NULL"):
            return (value is None) == (self.operator == "IS NULL")
        if value is None:
            return False
        return value in self.values if self.operator == "IN" else COMPARISONS[self.operator](value, self.values[0])


@dataclass(frozen=True)
class Partitioned:
    """A table that is partitioned by its column ``v``.

    Args:
        column: name in :data:`COLUMNS`.
        transform: name in :data:`TRANSFORMS`.
        version: Iceberg's format version.
        mode: write mode.
    """

    column: str
    transform: str
    version: int
    mode: str

    @property
    def name(self) -> str:
        """Name of the table."""
        return f"v{self.version}_{self.mode}_{self.transform}_{self.column}"

    @property
    def partition(self) -> str:
        """Text of ``partition_by``."""
        return TRANSFORMS[self.transform][0]

    @property
    def values(self) -> Sequence[Any]:
        """Values of the column, smallest first; of integers that are truncated the partition before the first is one of the type."""
        values = COLUMNS[self.column][1]
        if self.transform == "truncate_10" and self.column in ("int", "bigint"):
            lowest = (values[0] // _TEN + 2) * _TEN
            return [lowest, lowest + 5, *values[2:]]
        return values

    @property
    def lake_type(self) -> str:
        """The type of the column in the lake."""
        return COLUMNS[self.column][0].lake_type

    def schema(self, database: str) -> TableSchema:
        """Return the table of the source."""
        return table(f"{database}.{self.name}", {"id": BIGINT, "v": COLUMNS[self.column][0]})

    def rule(self) -> LayoutRule:
        """Return the layout."""
        return LayoutRule(
            tables=f"*.{self.name}", format_version=self.version, write_mode=self.mode, partition_by=(self.partition,)
        )

    def rows(self) -> dict[int, Any]:
        """Return the value of each row that is left after :func:`merge`."""
        first, second = _rounds(self.values)
        return {key: value for key, value in {**first, **second}.items() if value is not ...}

    def conditions(self) -> Iterator[Asked]:
        """Yield each operator with each value of the column, which has the smallest and the largest of its type."""
        for value in self.values:
            yield from (Asked(operator, (value,)) for operator in COMPARISONS)
        yield Asked("IN", (self.values[0], self.values[-1]))
        yield Asked("IN", tuple(self.values[1:3]))
        yield Asked("IS NULL")
        yield Asked("IS NOT NULL")


def tables(transforms: Sequence[str], layouts: Sequence[tuple[int, str]]) -> list[Partitioned]:
    """Return the tables of some transforms in some layouts."""
    return [
        Partitioned(column, transform, version, mode)
        for transform in transforms
        for column in TRANSFORMS[transform][1]
        for version, mode in layouts
    ]


def _rounds(values: Sequence[Any]) -> tuple[dict[int, Any], dict[int, Any]]:
    """Return the rows of an insert, and of changes after it, which move rows to other partitions; ``...`` is a delete."""
    cells = [*values, None, *values]
    first = dict(enumerate(cells))
    moved = {key: cells[key + 1] for key in range(0, len(cells) - 1, 3)}
    return first, {**moved, len(values) + 2: ...}


def merge(lake: Lake, chosen: Sequence[Partitioned]) -> None:
    """Make the tables: one merge of inserts, one of updates and deletes."""
    lake.config = lake.config.model_copy(update={"layouts": tuple(one.rule() for one in chosen)})
    for number in range(2):
        start = 1000 * number + 4
        changes: Mapping[TableSchema, list[Row]] = {
            one.schema(lake.database): list(_changes(_rounds(one.values), number, start)) for one in chosen
        }
        lake.merge(lake.batches.plan(start + 1000, lake.batches.window(start, start + 1000, changes)))


def _changes(rounds: tuple[dict[int, Any], dict[int, Any]], number: int, start: int) -> Iterator[Row]:
    for offset, (key, value) in enumerate(rounds[number].items(), start + 1):
        op = "c" if number == 0 else "d" if value is ... else "u"
        yield Row(op, offset, {"id": key, "v": None if value is ... else value})


def sql(condition: Asked, *, zoned: str, plain: str, binary: Callable[[bytes], str]) -> str:
    """Return a condition in SQL.

    Args:
        condition: the condition.
        zoned: name of the engine's TIMESTAMP literals with a time zone.
        plain: of those without.
        binary: returns a literal of bytes.
    """

    def literal(value: Any) -> str:
        zone = "+00:00" if isinstance(value, datetime) and value.tzinfo else ""
        texts: dict[type, Callable[[Any], str]] = {
            bool: lambda one: str(one).lower(),
            int: lambda one: f"({one + 1} - 1)" if one == -(2**63) else str(one),
            Decimal: lambda one: f"CAST('{one:f}' AS DECIMAL(38, {max(0, -int(one.as_tuple().exponent))}))",
            str: lambda one: f"'{one}'",
            bytes: binary,
            datetime: lambda one: f"{zoned if zone else plain} '{one.replace(tzinfo=None).isoformat(' ')}{zone}'",
            date: lambda one: f"DATE '{one.isoformat()}'",
        }
        return texts[type(value)](value)

    texts = [literal(one) for one in condition.values]
    if condition.operator == "IN":
        return f"v IN ({', '.join(texts)})"
    return f"v {condition.operator} {texts[0]}" if texts else f"v {condition.operator}"
