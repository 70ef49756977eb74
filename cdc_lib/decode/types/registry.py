"""Which codec reads which type; a new type family is entered here."""

from __future__ import annotations

from cdc_lib.decode.types.codec import Codec
from cdc_lib.decode.types.decimal import DecimalCodec
from cdc_lib.decode.types.enumset import MemberCodec
from cdc_lib.decode.types.floating import FloatCodec
from cdc_lib.decode.types.integer import IntegerCodec
from cdc_lib.decode.types.jsonb import JsonCodec
from cdc_lib.decode.types.temporal import DateTimeCodec, TimeCodec
from cdc_lib.decode.types.text import READABLE, TextCodec
from cdc_lib.model.schema import MAX_DECIMAL_DIGITS, SourceType


def unreadable(source_type: SourceType) -> str:
    """Return why columns of a type cannot be read, or an empty text when they can."""
    if source_type.kind == "unsupported":
        return f"the type {source_type.text or '?'} is not read yet"
    if source_type.kind == "decimal" and source_type.precision > MAX_DECIMAL_DIGITS:
        return f"DECIMAL of more than {MAX_DECIMAL_DIGITS} digits is not read yet"
    if source_type.kind in ("string", "enum", "set") and source_type.charset not in READABLE:
        return f"the character set {source_type.charset} is not read yet"
    return ""


def codec_for(source_type: SourceType, *, from_text: bool, zero_is_null: bool, fill: int = 0) -> Codec:
    """Return a new codec.

    Args:
        source_type: a type for which :func:`unreadable` has nothing to say.
        from_text: cells come from a text result set, not from row images.
        zero_is_null: dates with a zero part become NULL; else they are a fault.
        fill: BINARY(n) in row images: n.
    """
    match source_type.kind:
        case "int" | "bit" | "year":
            return IntegerCodec(source_type, from_text=from_text)
        case "float" | "double":
            return FloatCodec(source_type, from_text=from_text)
        case "decimal":
            return DecimalCodec(source_type, from_text=from_text)
        case "date" | "datetime" | "timestamp":
            return DateTimeCodec(source_type, from_text=from_text, zero_is_null=zero_is_null)
        case "time" if not from_text:
            return TimeCodec(source_type)
        case "enum" | "set" if not from_text:
            return MemberCodec(source_type)
        case "json" if not from_text:
            return JsonCodec(source_type)
        case _:
            return TextCodec(source_type, from_text=from_text, fill=fill)
