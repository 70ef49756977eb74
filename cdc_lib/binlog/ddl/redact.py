"""Statements without the values in them, for sources whose columns have masks.

A statement may carry a value of a masked column: as a default, as a bound of a partition, in a comment. Texts and numbers
become question marks and comments go; names, keywords and the sizes of types stay, so that it can still be read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from cdc_lib.model.lexer import tokens

_NAMES = (
    "tinyint smallint mediumint int integer bigint decimal dec numeric fixed float double precision bit year time datetime "
    "timestamp current_timestamp now char character varchar varying nchar nvarchar binary varbinary text blob vector"
)
_TYPES = frozenset(_NAMES.split())
_SIZE = re.compile(r"\s*\(\s*\d+\s*(?:,\s*\d+\s*)?\)")


def concealed(statement: str) -> str:
    """Return a statement with a question mark for every value."""
    return "".join(_shown(statement))


def _shown(statement: str) -> Iterator[str]:
    sized = 0  # where the size of a type ends
    for token in tokens(statement):
        text = token[0]
        match token.lastgroup:
            case _ if token.start() < sized:
                yield text
            case "string" | "quoted":
                yield "'?'"
            case "unended" if text[0] in "'\"":
                yield "'?'"
            case "comment" | "unended" if text[0] != "`":
                yield " "
            case "mark" if token["version"]:
                yield text.removesuffix(token["version"]) + "?"
            case "number":
                yield "?"
            case "word" if text[0].isdecimal():
                yield "?"
            case "introducer":
                pass
            case kind:
                if kind == "word" and text.lower() in _TYPES and (size := _SIZE.match(statement, token.end())):
                    sized = size.end()
                yield text
