"""Statements without the values in them, for sources whose columns have masks.

A statement may carry a value of a masked column: as a default, as a bound of a partition, in a comment. Texts and numbers
become question marks and comments go; names, keywords and the sizes of types stay, so that it can still be read.

Where a string ends depends on the SQL mode of the session. What is shown is right in every mode that may have been in force.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

from cdc_lib.model.lexer import QUOTINGS, Quoting, quoted, tokens

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


_CUT = "..."
"""Stands for the rest of a statement from the first place on that is a value in one SQL mode and not in another."""


def concealed(statement: str, quotings: Sequence[Quoting] = QUOTINGS) -> str:
    """Return a statement with a question mark for every value.

    Args:
        statement: its text.
        quotings: those that its session may have had. Where they read it differently, only what is before that is shown. A name in
            double quotes is shown in backticks.
    """
    if "\\" not in statement:
        return "".join(_shown(statement, quotings[0]))
    readings = list(dict.fromkeys("".join(_shown(statement, quoting)) for quoting in quotings))
    if len(readings) == 1:
        return readings[0]
    same = takewhile(lambda signs: len(set(signs)) == 1, zip(*readings, strict=False))
    return "".join(signs[0] for signs in same) + _CUT


def _shown(statement: str, quoting: Quoting) -> Iterator[str]:
    sized = 0  # where the size of a type ends
    for token in tokens(statement, quoting):
        kind, text = str(token.lastgroup), token[0]
        if kind == "word" and text.lower() in _TYPES and (size := _SIZE.match(statement, token.end())):
            sized = size.end()
        if token.start() < sized:
            yield text
        elif kind == "quoted" and quoting.ansi:
            yield quoted(text[1:-1].replace('""', '"'))
        elif token["version"] or text[0].isdecimal():
            yield text.removesuffix(token["version"]) + "?" if kind == "mark" else "?"
        else:
            yield _INSTEAD.get(text[0] if kind == "unended" else kind, text)
