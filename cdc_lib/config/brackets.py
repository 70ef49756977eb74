"""A cheap syntax check of Spark SQL predicates, run at each load of a source file: brackets, quotes, semicolons, comments."""

from __future__ import annotations

from cdc_lib.model.lexer import spark_tokens

_CLOSES = {")": "(", "]": "[", "}": "{"}
_OPEN_ENDS = frozenset(
    ("AND", "OR", "NOT", "LIKE", "RLIKE", "ILIKE", "IN", "IS", "BETWEEN", "=", "<", ">", "+", "*", "/", ",")
)


def unended(predicate: str) -> str:
    """Return what is wrong with a predicate's brackets, quotes, semicolons or comments; empty if it is fine."""
    waiting: list[str] = []
    last = ""
    for token in spark_tokens(predicate):
        sign = token["sign"]
        if token["comment"] or (token["unended"] or "").startswith("/*"):
            return "it holds a comment, after which nothing would count"
        if token["unended"]:
            return f"the quotation mark {token[0][0]} at character {token.start() + 1} has no end"
        if sign == ";":
            return "it continues after a semicolon"
        if sign in _CLOSES.values():
            waiting.append(sign)
        elif sign in _CLOSES and (not waiting or waiting.pop() != _CLOSES[sign]):
            return f"the bracket {sign} at character {token.start() + 1} closes none"
        last = last if token["space"] else sign[-1] if sign else token[0]
    if waiting:
        return f"the bracket {waiting[-1]} has no end"
    return f"nothing is after {last}" if last.upper() in _OPEN_ENDS else ""
