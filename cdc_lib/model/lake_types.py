"""The types of lake columns, one row each: what Iceberg calls them, what they hold, and by what a table may be partitioned."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cdc_lib.model.layout import TransformKind

_DAY = r"\d{4}-\d\d-\d\d"
_NUMBER = r"-?0*(\d+?)(?:\.(\d*?)0*)?"
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
_KEPT: tuple[TransformKind, ...] = ("identity", "bucket")
_CUT: tuple[TransformKind, ...] = (*_KEPT, "truncate")
_DAYS: tuple[TransformKind, ...] = (*_KEPT, "year", "month", "day")


@dataclass(frozen=True, slots=True)
class LakeType:
    """A type under Spark's name; a decimal without its digits.

    Args:
        iceberg: Iceberg's name.
        text: pattern of the text of a value; empty where statements do not show values.
        bits: of an integer.
        wider: types that hold each of its values. Iceberg promotes a column to the first without rewriting files.
        transforms: by which a table is partitioned. Readers compare some values differently: minus zero with zero, a float with a
            double.
        identifies: whether a column of a key that has it is an identifier field of Iceberg's: no floating point number, and no date,
            as dates of keys were null in lake tables of earlier versions.
    """

    iceberg: str
    text: str = ""
    bits: int = 0
    wider: tuple[str, ...] = ()
    transforms: tuple[TransformKind, ...] = _KEPT
    identifies: bool = True


LAKE_TYPES = {
    "boolean": LakeType("boolean", "[01]", transforms=("identity",)),
    "int": LakeType("int", _NUMBER, bits=32, wider=("bigint", "double"), transforms=_CUT),
    "bigint": LakeType("long", _NUMBER, bits=64, transforms=_CUT),
    "decimal": LakeType("decimal", _NUMBER, transforms=_CUT),
    "float": LakeType("float", _NUMBER, wider=("double",), transforms=(), identifies=False),
    "double": LakeType("double", _NUMBER, transforms=(), identifies=False),
    "string": LakeType("string", "(?s).*", transforms=_CUT),
    "binary": LakeType("binary", transforms=_CUT),
    "date": LakeType("date", _DAY, transforms=_DAYS, identifies=False),
    "timestamp_ntz": LakeType("timestamp", f"{_DAY} .*", transforms=(*_DAYS, "hour"), identifies=False),
    "timestamp": LakeType("timestamptz", f"{_DAY} .*", transforms=(*_DAYS, "hour"), identifies=False),
}
"""By Spark's names. Other programs may add columns of types that are not here."""

_SPARK = {of.iceberg: name for name, of in LAKE_TYPES.items()} | {"uuid": "string"}


def lake_type_of(name: str) -> LakeType:
    """Return what is known of a type; of one that no column of a source has, what all have."""
    return LAKE_TYPES.get(name.partition("(")[0], LakeType(name))


def decimal_of(name: str) -> tuple[int, int] | None:
    """Return precision and scale; None if it is no decimal."""
    match = _DECIMAL.fullmatch(name)
    return (int(match[1]), int(match[2])) if match else None


def digits_of(name: str) -> tuple[int, int] | None:
    """Return precision and scale of an exact number; None for other types."""
    bits = lake_type_of(name).bits
    return (len(str(1 << bits - 1)), 0) if bits else decimal_of(name)


def holds(lake: str, rows: str) -> bool:
    """Whether a column of type ``lake`` holds every value of type ``rows`` exactly."""
    if lake == rows or lake in lake_type_of(rows).wider:
        return True
    outer, inner = decimal_of(lake), digits_of(rows)
    if outer is None or inner is None:
        return False
    return outer[0] - outer[1] >= inner[0] - inner[1] and outer[1] >= inner[1]


def widens(old: str, new: str) -> bool:
    """Whether Iceberg can promote a column of type ``old`` to ``new`` without rewriting files."""
    before, after = decimal_of(old), decimal_of(new)
    if before is None or after is None:
        return new in lake_type_of(old).wider[:1]
    return before[1] == after[1] and before[0] < after[0]


def fits(name: str, text: str) -> bool:
    """Whether a column of a type holds the value that SELECT shows as this text."""
    of, digits = lake_type_of(name), digits_of(name)
    match = re.fullmatch(of.text, text) if of.text else None
    if match is None or digits is None:
        return match is not None
    whole, fraction = match[1], match[2] or ""
    is_short = len(whole) <= digits[0] - digits[1] and len(fraction) <= digits[1]
    return is_short and (not of.bits or abs(float(text)) < 1 << of.bits - 1)


def spark_name(iceberg: str) -> str:
    """Return Spark's name of a type that has no parts."""
    if iceberg.startswith("fixed["):
        return "binary"
    return _SPARK.get(iceberg, iceberg.replace(" ", "") if iceberg.startswith("decimal") else iceberg)


def iceberg_name(spark: str) -> str:
    """Return Iceberg's name of a type that has no parts."""
    name, *digits = spark.partition("(")
    return LAKE_TYPES[name].iceberg + "".join(digits)
