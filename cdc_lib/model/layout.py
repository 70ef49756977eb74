"""The layout of a lake table's files: partitions, sort order, properties, format version and write mode."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Literal, get_args

from cdc_lib.model.lexer import quoted

TransformKind = Literal["identity", "bucket", "truncate", "year", "month", "day", "hour"]
WriteMode = Literal["merge_on_read", "copy_on_write"]
FormatVersion = Literal[2, 3]

LAYOUT_PROPERTY = "cdc.layout"
"""The table property with the layout that all files of a table have, as JSON."""

TIMES = ("year", "month", "day", "hour")
_SIZED = ("bucket", "truncate")
_COLUMN = r"(?P<column>[^\s`(),]+|`(?:[^`]|``)+`)"
_TRANSFORM = re.compile(rf"(?P<kind>\w+)\s*\(\s*(?:(?P<size>\d+)\s*,\s*)?{_COLUMN}\s*\)")
_NAME = re.compile(_COLUMN)
_SORT = re.compile(rf"{_COLUMN}(?:\s+(?P<direction>ASC|DESC))?(?:\s+NULLS\s+(?P<nulls>FIRST|LAST))?", re.IGNORECASE)
_MOST = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Partition:
    """One field of the partition spec.

    Args:
        kind: Iceberg's transform.
        column: name of the source column.
        size: number of buckets, or width of ``truncate``; 0 for other transforms.
    """

    kind: TransformKind
    column: str
    size: int = 0

    def __str__(self) -> str:
        """In the words of Spark SQL; the column is quoted."""
        column = quoted(self.column)
        if self.kind == "identity":
            return column
        return f"{self.kind}s({column})" if self.kind in TIMES else f"{self.kind}({self.size}, {column})"

    @property
    def field(self) -> str:
        """The name that Iceberg gives the field."""
        return {"identity": self.column, "truncate": f"{self.column}_trunc"}.get(
            self.kind, f"{self.column}_{self.kind}"
        )


@dataclass(frozen=True, slots=True)
class SortField:
    """One field of the sort order; its text is Spark SQL."""

    column: str
    descending: bool = False
    nulls_first: bool = True

    def __str__(self) -> str:
        """In the words of Spark SQL; the column is quoted."""
        direction, nulls = "DESC" if self.descending else "ASC", "FIRST" if self.nulls_first else "LAST"
        return f"{quoted(self.column)} {direction} NULLS {nulls}"


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout of a lake table.

    Args:
        partition_by: fields of the partition spec, without those of the mode.
        sort_by: sort order of written files; empty for the primary key.
        properties: Iceberg table properties, sorted by name.
        format_version: Iceberg's.
        write_mode: whether deleted rows are marked beside files, or files are written again without them.
    """

    partition_by: tuple[Partition, ...] = ()
    sort_by: tuple[SortField, ...] = ()
    properties: tuple[tuple[str, str], ...] = ()
    format_version: FormatVersion = 3
    write_mode: WriteMode = "merge_on_read"

    @property
    def in_key_order(self) -> bool:
        """Whether files have no partitions and are in the order of the primary key."""
        return not self.partition_by and not self.sort_by

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of partitions and sort order."""
        return (*(one.column for one in self.partition_by), *(one.column for one in self.sort_by))

    def to_json(self) -> str:
        """Return the text of the table property."""
        plain = {
            "partition_by": list(map(str, self.partition_by)),
            "sort_by": list(map(str, self.sort_by)),
            "properties": dict(self.properties),
            "format_version": self.format_version,
            "write_mode": self.write_mode,
        }
        return json.dumps(plain, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | None) -> Layout:
        """Parse the text of the table property; None is the default layout.

        Raises:
            ValueError: the text is not valid.
        """
        if text is None:
            return cls()
        try:
            plain = json.loads(text)
            return cls(
                tuple(map(partition_of, plain["partition_by"])),
                tuple(map(sort_field_of, plain["sort_by"])),
                tuple(sorted(plain["properties"].items())),
                plain["format_version"],
                plain["write_mode"],
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"not a layout: {error!r}") from None


DEFAULT_LAYOUT = Layout()
"""In the order of the primary key, without partitions, in Iceberg's newest format."""


def partition_of(text: str) -> Partition:
    """Parse a transform, such as ``day(created)``, ``bucket(16, id)`` or ``country``.

    Raises:
        ValueError: it is not a transform.
    """
    if name := _NAME.fullmatch(text.strip()):
        return Partition("identity", _plain(name["column"]))
    match = _TRANSFORM.fullmatch(text.strip())
    word = match["kind"].lower() if match else ""
    kind = next((one for one in get_args(TransformKind) if word in (one, f"{one}s" if one in TIMES else one)), None)
    if match is None or kind is None:
        raise ValueError(
            "a transform is column, identity(column), bucket(n, column), truncate(n, column), year(column), "
            "month(column), day(column) or hour(column)"
        )
    size = int(match["size"] or 0)
    if (kind in _SIZED) != (match["size"] is not None) or (kind in _SIZED and not 0 < size <= _MOST):
        takes = f"a number from 1: {kind}(16, {match['column']})" if kind in _SIZED else "a column and no number"
        raise ValueError(f"{kind} takes {takes}")
    return Partition(kind, _plain(match["column"]), size)


def sort_field_of(text: str) -> SortField:
    """Parse a sort field, such as ``created DESC NULLS LAST``.

    Without a direction it is ``ASC``. Nulls come first in ascending order and last in descending order, as in Spark.

    Raises:
        ValueError: it is not a sort field.
    """
    match = _SORT.fullmatch(text.strip())
    if match is None:
        raise ValueError("a sort field is column, with ASC or DESC, and NULLS FIRST or NULLS LAST")
    descending = (match["direction"] or "ASC").upper() == "DESC"
    nulls = (match["nulls"] or ("LAST" if descending else "FIRST")).upper()
    return SortField(_plain(match["column"]), descending, nulls == "FIRST")


def _plain(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name
