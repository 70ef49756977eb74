"""Tables and columns as the source declares them and as the lake holds them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Literal

from cdc_lib.model.column_types import FAMILIES, Family, Kind
from cdc_lib.model.table_name import TableName

AsBoolean = Literal["error", "as_true"]
"""What a value other than 0 and 1 is in a column that the lake holds as a boolean."""

BOOLEAN = "boolean"
"""The lake's type of such a column."""

MAX_DECIMAL_DIGITS = 38
"""Digits that the lake's decimal type holds; longer ones are kept as exact text."""


@dataclass(frozen=True, slots=True)
class SourceType:
    """A column's type, with all that is needed to read its bytes.

    Args:
        kind: family of the type; each family has one file under ``cdc_lib/binlog/types``.
        width: integers: bytes (1, 2, 3, 4, 8); bit: bits; string and bytes: declared length in bytes; else 0.
        unsigned: integers only.
        precision: decimal: digits in all.
        scale: decimal: digits after the point; time, datetime and timestamp: fractional digits (0 to 6).
        charset: string, enum and set: MySQL's name of the character set, for example ``latin1``.
        members: enum and set: the labels in their declared order.
        text: the type as the server writes it, for people; may be empty if only the binlog describes the column.
        form: how the value is written, where its kind alone does not say it: ``old`` (time, datetime and timestamp before
            MySQL 5.6), ``compressed`` (a compressed column of MariaDB), ``inet4``, ``inet6``, ``uuid``; else empty.
        as_text: date, datetime and timestamp: the lake holds the text that SELECT shows.
        as_boolean: integers of one byte: the lake holds a boolean; what other values than 0 and 1 are. None for a number.
    """

    kind: Kind
    width: int = 0
    unsigned: bool = False
    precision: int = 0
    scale: int = 0
    charset: str = ""
    members: tuple[str, ...] = ()
    text: str = ""
    form: str = ""
    as_text: bool = False
    as_boolean: AsBoolean | None = None

    @property
    def family(self) -> Family:
        """What it has in common with the other types of its kind."""
        return FAMILIES[self.kind]

    def literal(self, text: str, charset: str = "") -> str:
        """Return a key's value as SQL.

        Args:
            text: as :func:`cdc_lib.snapshot.chunks.key_text` has it.
            charset: of a text; empty for the column's own.
        """
        before, after = self.signs(charset)
        return f"{before}{text}{after}"

    def signs(self, charset: str = "") -> tuple[str, str]:
        """Return what :meth:`literal` has before and after the text."""
        before, after = self.family.signs
        return before.format(charset or self.charset), after

    @property
    def is_short_year(self) -> bool:
        """Whether SELECT shows two digits of a year: MariaDB's YEAR(2), of which the binlog has all four."""
        return self.kind == "year" and self.text.lower().replace(" ", "").startswith("year(2)")

    @property
    def has_digits(self) -> bool:
        """Whether it is FLOAT(M,D) or DOUBLE(M,D): the server rounds what it looks up in an index, but not every value that it stores."""
        return self.family.is_float and "(" in self.text

    @property
    def may_be_boolean(self) -> bool:
        """Whether it is TINYINT, also BOOL and BOOLEAN. The binlog does not have the display width of TINYINT(1)."""
        return self.kind == "int" and self.width == 1

    @property
    def lake_type(self) -> str:
        """The lake's name of the type that holds every value of this one exactly.

        One of ``boolean``, ``int``, ``bigint``, ``decimal(p,s)``, ``float``, ``double``, ``string``, ``binary``, ``date``,
        ``timestamp_ntz`` (no time zone: DATETIME) and ``timestamp`` (an instant: TIMESTAMP), as Spark SQL spells them.
        """
        if self.as_text:
            return "string"
        if self.as_boolean is not None:
            return BOOLEAN
        match self.kind:
            case "int":
                return _integer(self.width, unsigned=self.unsigned)
            case "bit":
                return "bigint" if self.width < 64 else "decimal(20,0)"  # bits of a bigint
            case "decimal" if self.precision <= MAX_DECIMAL_DIGITS:
                return f"decimal({self.precision},{self.scale})"
            case _:
                return self.family.lake_type


def _integer(width: int, *, unsigned: bool) -> str:
    if width < 4:  # up to MEDIUMINT both signs fit
        return "int"
    if width == 4:
        return "bigint" if unsigned else "int"
    return "decimal(20,0)" if unsigned else "bigint"


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Args:
        name: as the source spells it.
        type: its type at the source.
        nullable: whether the source allows NULL.
    """

    name: str
    type: SourceType
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class TableSchema:
    """One version of a table's columns.

    Args:
        database: schema at the source.
        table: name at the source.
        columns: in the order of the source.
        primary_key: names of the key's columns in key order; empty when the table has none.
    """

    database: str
    table: str
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...] = ()

    @property
    def name(self) -> TableName:
        """The table."""
        return TableName(self.database, self.table)

    @property
    def id(self) -> str:
        """Twelve hex digits that change when a column changes; nullability and declared text are ignored."""
        facts = [(c.name, c.type.kind, c.type.lake_type, c.type.scale) for c in self.columns]
        text = json.dumps([self.database, self.table, facts, self.primary_key])
        return hashlib.sha256(text.encode()).hexdigest()[:12]
