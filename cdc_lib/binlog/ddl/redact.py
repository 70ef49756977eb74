"""Statements without the values in them, for sources whose columns have masks.

A statement may carry a value of a masked column: as a default, as a bound of a partition, in a comment. Texts and numbers
become question marks and comments go; names, keywords and the sizes of types stay, so that it can still be read.
"""

from __future__ import annotations

import re

_TYPES = (
    "tinyint|smallint|mediumint|int|integer|bigint|decimal|dec|numeric|fixed|float|double|precision|bit|year|time|datetime"
    "|timestamp|current_timestamp|now|char|character|varchar|varying|nchar|nvarchar|binary|varbinary|text|blob|vector"
)
_PIECE = re.compile(
    rf"""
      (?P<comment> --(?=\s|\Z)[^\n]* | \#[^\n]* | /\*(?!M?!).*?(?:\*/|\Z) )
    | (?P<name> `(?:[^`]|``)*+(?:`|\Z) )
    | (?P<text> (?:\b[xXbBnN]|\b_\w+\s*+)? (?: '(?:[^'\\]|''|\\.)*+(?:'|\\?\Z) | "(?:[^"\\]|""|\\.)*+(?:"|\\?\Z) ) )
    | (?P<size> \b(?:{_TYPES})\s*\(\s*\d+\s*(?:,\s*\d+\s*)?\) )
    | (?P<word> [^\W\d][\w$]* )
    | (?P<number> \.?\d[\w.]* )
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)


def concealed(statement: str) -> str:
    """Return a statement with a question mark for every value."""
    return _PIECE.sub(_piece, statement)


def _piece(match: re.Match[str]) -> str:
    match match.lastgroup:
        case "comment":
            return " "
        case "text":
            return "'?'"
        case "number":
            return "?"
    return match[0]
