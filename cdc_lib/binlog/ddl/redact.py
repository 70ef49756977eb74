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


_INSTEAD = {
    "comment": " ",
    "introducer": "",
    "string": "'?'",
    "quoted": "'?'",
    "number": "?",
    "/": " ",
    "'": "'?'",
    '"': "'?'",
}
"""By the kind of a token; of one without an end by its first sign."""


def concealed(statement: str) -> str:
    """Return a statement with a question mark for every value."""
    return "".join(_shown(statement))


def _shown(statement: str) -> Iterator[str]:
    sized = 0  # where the size of a type ends
    for token in tokens(statement):
        kind, text = str(token.lastgroup), token[0]
        if kind == "word" and text.lower() in _TYPES and (size := _SIZE.match(statement, token.end())):
            sized = size.end()
        if token.start() < sized:
            yield text
        elif token["version"] or text[0].isdecimal():
            yield text.removesuffix(token["version"]) + "?" if kind == "mark" else "?"
        else:
            yield _INSTEAD.get(text[0] if kind == "unended" else kind, text)
