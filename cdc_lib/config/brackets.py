"""Whether a predicate of Spark SQL ends what it begins: cheap enough to be looked at whenever a source file is read."""

from __future__ import annotations

import re

_PIECE = re.compile(
    r"""
      (?P<raw>[rR](?:'[^']*'|"[^"]*"))
    | (?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    | (?P<name>`(?:[^`]|``)*`)
    | (?P<comment>--|/\*)
    | (?P<word>\w+)
    | (?P<sign>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_CLOSES = {")": "(", "]": "[", "}": "{"}
_OPEN_ENDS = frozenset(
    ("AND", "OR", "NOT", "LIKE", "RLIKE", "ILIKE", "IN", "IS", "BETWEEN", "=", "<", ">", "+", "*", "/", ",")
)


def unended(predicate: str) -> str:
    """Say what a predicate begins and does not end, or how it continues after its end; empty when all is well."""
    waiting: list[str] = []
    last = ""
    for piece in _PIECE.finditer(predicate):
        sign = piece["sign"]
        if sign in ("'", '"', "`"):
            return f"the quotation mark {sign} at character {piece.start() + 1} has no end"
        if sign == ";":
            return "it continues after a semicolon"
        if piece["comment"]:
            return "it holds a comment, after which nothing would count"
        if sign in _CLOSES.values():
            waiting.append(sign)
        elif sign in _CLOSES and (not waiting or waiting.pop() != _CLOSES[sign]):
            return f"the bracket {sign} at character {piece.start() + 1} closes none"
        last = piece[0] if piece[0].strip() else last
    if waiting:
        return f"the bracket {waiting[-1]} has no end"
    return f"nothing is after {last}" if last.upper() in _OPEN_ENDS else ""
