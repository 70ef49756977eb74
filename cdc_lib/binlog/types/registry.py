"""The registry of codecs by type; a new type family is registered here."""

from __future__ import annotations

from dataclasses import replace

from cdc_lib.binlog.charsets.registry import READABLE
from cdc_lib.binlog.types.codec import Codec
from cdc_lib.binlog.types.compressed import CompressedCodec
from cdc_lib.binlog.types.date_text import DateTextCodec
from cdc_lib.binlog.types.decimal import DecimalCodec
from cdc_lib.binlog.types.enumset import KeyMemberCodec, MemberCodec
from cdc_lib.binlog.types.floating import float_codec
from cdc_lib.binlog.types.integer import BooleanCodec, IntegerCodec
from cdc_lib.binlog.types.jsonb import JsonCodec
from cdc_lib.binlog.types.long_decimal import LongDecimalCodec
from cdc_lib.binlog.types.temporal import DateTimeCodec
from cdc_lib.binlog.types.text import BytesCodec, TextCodec
from cdc_lib.binlog.types.time import TimeCodec
from cdc_lib.model.column_types import MAX_DECIMAL_DIGITS
from cdc_lib.model.members import shared_texts
from cdc_lib.model.schema import SourceType
from cdc_lib.model.value_policy import ValuePolicy


def unreadable(source_type: SourceType) -> str:
    """Return why columns of a type cannot be read, or an empty text when they can."""
    if source_type.kind == "unsupported":
        return f"the type {source_type.text or '?'} is not read yet"
    if source_type.family.has_charset and source_type.charset not in READABLE:
        return f"the character set {source_type.charset or '?'} is not read yet"
    return ""


def codec_for(source_type: SourceType, values: ValuePolicy, *, from_text: bool, fill: int = 0) -> Codec:
    """Return a new codec.

    Args:
        source_type: a type for which :func:`unreadable` has nothing to say.
        values: what becomes of values that the lake cannot hold as they are.
        from_text: cells come from a text result set, not from row images.
        fill: BINARY(n) in row images: n.
    """
    if source_type.form == "compressed" and not from_text:
        return CompressedCodec(_plain(replace(source_type, form=""), values, from_text=False, fill=fill))
    return _plain(source_type, values, from_text=from_text, fill=fill)


def _plain(source_type: SourceType, values: ValuePolicy, *, from_text: bool, fill: int) -> Codec:
    match source_type.kind:
        case "int" if source_type.as_boolean is not None:
            return BooleanCodec(source_type, from_text=from_text)
        case "int" | "bit" | "year":
            return IntegerCodec(source_type, from_text=from_text)
        case "float" | "double":
            return float_codec(source_type, from_text=from_text)
        case "decimal" if source_type.precision > MAX_DECIMAL_DIGITS:
            return LongDecimalCodec(source_type, from_text=from_text)
        case "decimal":
            return DecimalCodec(source_type, from_text=from_text)
        case "bytes":
            return BytesCodec(fill=fill)
        case "date" | "datetime" | "timestamp" if not source_type.as_text:
            return DateTimeCodec(source_type, from_text=from_text, values=values)
        case _:
            return _text(source_type, values, from_text=from_text)


def _text(source_type: SourceType, values: ValuePolicy, *, from_text: bool) -> Codec:
    """Return the codec of a type that the lake holds as text."""
    match source_type.kind:
        case "date" | "datetime" | "timestamp" if not from_text:
            return DateTextCodec(source_type)
        case "time" if not from_text:
            return TimeCodec(source_type)
        case "enum" | "set" if values.in_key and (shared := shared_texts(source_type)):
            plain = _text(source_type, replace(values, in_key=False), from_text=from_text)
            return KeyMemberCodec(plain, shared, from_text=from_text)
        case "enum" | "set" if not from_text:
            return MemberCodec(source_type)
        case "json" if not from_text:
            return JsonCodec()
        case "string" | "enum" | "set":
            return TextCodec(source_type.charset, values)
        case _:
            return TextCodec("utf8mb4", values)


USUAL = (
    SourceType("int", width=4),
    SourceType("int", width=8),
    SourceType("int", width=2, unsigned=True),
    SourceType("int", width=4, unsigned=True),
    SourceType("int", width=8, unsigned=True),
    SourceType("bit", width=1),
    SourceType("bit", width=64),
    SourceType("year"),
    SourceType("float"),
    SourceType("double"),
    SourceType("decimal", precision=10, scale=2),
    SourceType("decimal", precision=65, scale=30),
    SourceType("date"),
    SourceType("datetime", scale=6),
    SourceType("timestamp"),
    SourceType("time"),
    SourceType("enum", charset="utf8mb4", members=("a",)),
    SourceType("set", charset="utf8mb4", members=("a",)),
    SourceType("json"),
    SourceType("string", width=100, charset="utf8mb4"),
    SourceType("string", width=100, charset="latin1"),
    SourceType("bytes", width=100, charset="binary"),
)
"""Common column types, whose kernels are compiled before they are used."""
