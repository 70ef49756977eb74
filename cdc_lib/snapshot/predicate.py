"""A condition on the rows of one table that a person wrote, checked word by word and written again: pure.

Columns, constants, comparisons and AND, OR, NOT: nothing that reads another table, calls a function or ends the statement.
Nothing of the text goes to the server as it was typed: names are quoted, texts are written as hex digits.
"""

from __future__ import annotations

import string
from collections.abc import Mapping
from typing import NamedTuple

from cdc_lib.errors import ConfigError
from cdc_lib.model.lexer import tokens
from cdc_lib.snapshot.chunks import quoted

_COMPARISONS = {"=", "<=>", "<", "<=", ">", ">=", "<>", "!="}
_CONSTANTS = {"TRUE", "FALSE", "NULL"}
_KEYWORDS = {"AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "IS", *_CONSTANTS}
_READ = {"name", "string", "number", "0x", "introducer", "word", "sign"}
_DEEPEST = 50
"""Brackets in brackets."""


class _Token(NamedTuple):
    kind: str
    text: str

    @property
    def key(self) -> str:
        return self.text.upper() if self.kind in ("word", "sign") else ""


def predicate(text: str, columns: Mapping[str, str]) -> str:
    """Return a condition as it may stand in a SELECT.

    Args:
        text: what was written.
        columns: the names that may be used, in lower case, and how the table spells them.

    Raises:
        ConfigError: it is not one condition on these columns.
    """
    return _Parser(text, columns).whole()


class _Parser:
    def __init__(self, text: str, columns: Mapping[str, str]) -> None:
        self._text = text
        self._columns = columns
        self._tokens = self._cut()
        self._at = 0
        self._depth = 0

    def whole(self) -> str:
        found = self._any()
        if self._at < len(self._tokens):
            raise self._refused(f"there is more after the condition: {self._tokens[self._at].text!r}")
        return found

    def _cut(self) -> list[_Token]:
        found: list[_Token] = []
        for token in tokens(self._text):
            kind, text = str(token.lastgroup), token[0]
            if kind == "number" and text[:2] in ("0x", "0b"):
                kind = text[:2]
            if kind in _READ and not (kind == "string" and "\\" in text):
                found.append(_Token(kind, text))
            elif kind != "space":
                raise self._refused(f"{text[:10]!r} is not understood here")
        return found

    def _any(self) -> str:
        """Conditions with OR between them."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._refused("it has too many brackets in brackets")
        terms = [self._all()]
        while self._accept("OR"):
            terms.append(self._all())
        self._depth -= 1
        return " OR ".join(terms)

    def _all(self) -> str:
        """Conditions with AND between them."""
        terms = [self._one()]
        while self._accept("AND"):
            terms.append(self._one())
        return " AND ".join(terms)

    def _one(self) -> str:
        nots = 0
        while self._accept("NOT"):
            nots += 1
        if self._accept("("):
            found = f"({self._any()})"
            self._expect(")")
        else:
            found = self._compared()
        return f"NOT ({found})" if nots % 2 else found

    def _compared(self) -> str:
        left = self._operand()
        if (sign := self._next().key) in _COMPARISONS:
            self._at += 1
            return f"{left} {sign} {self._operand()}"
        if self._accept("IS"):
            word = "IS NOT" if self._accept("NOT") else "IS"
            for constant in sorted(_CONSTANTS):
                if self._accept(constant):
                    return f"{left} {word} {constant}"
            raise self._refused(f"{word} is used without NULL, TRUE or FALSE")
        word = "NOT " if self._accept("NOT") else ""
        if self._accept("IN"):
            self._expect("(")
            values = [self._operand()]
            while self._accept(","):
                values.append(self._operand())
            self._expect(")")
            return f"{left} {word}IN ({', '.join(values)})"
        if self._accept("BETWEEN"):
            low = self._operand()
            self._expect("AND")
            return f"{left} {word}BETWEEN {low} AND {self._operand()}"
        if self._accept("LIKE"):
            return f"{left} {word}LIKE {self._operand()}"
        raise self._refused("a comparison is missing after " + left)

    def _operand(self) -> str:
        token = self._next()
        self._at += 1
        if token.key in ("-", "+") and self._next().kind == "number":
            return f"{token.text}{self._operand()}"
        match token.kind:
            case "number":
                found = token.text
            case "0x":
                found = self._bytes(token.text[2:])
            case "introducer" if token.text in ("x", "X"):
                self._at += 1
                found = self._bytes(self._tokens[self._at - 1].text[1:-1])
            case "string":
                found = f"_utf8mb4 X'{token.text[1:-1].replace(chr(39) * 2, chr(39)).encode().hex()}'"
            case "name":
                found = self._column(token.text[1:-1].replace("``", "`"))
            case "word" if token.key in _CONSTANTS:
                found = token.key
            case "word" if token.key not in _KEYWORDS:
                found = self._column(token.text)
            case _:
                what = f"a column or a constant is missing before {token.text!r}" if token.text else "it ends too early"
                raise self._refused(what)
        return found

    def _bytes(self, digits: str) -> str:
        if not set(digits) <= set(string.hexdigits):
            raise self._refused(f"{digits!r} are not hex digits")
        return f"X'{'0' * (len(digits) % 2)}{digits}'"

    def _column(self, name: str) -> str:
        own = self._columns.get(name.lower())
        if own is None or self._next().key == "(":
            raise self._refused(f"{name!r} is no column that may be used")
        return quoted(own)

    def _next(self) -> _Token:
        return self._tokens[self._at] if self._at < len(self._tokens) else _Token("", "")

    def _accept(self, key: str) -> bool:
        if self._next().key != key:
            return False
        self._at += 1
        return True

    def _expect(self, key: str) -> None:
        if not self._accept(key):
            raise self._refused(
                f"{key} is missing before {self._next().text!r}" if self._next().text else f"{key} is missing"
            )

    def _refused(self, why: str) -> ConfigError:
        return ConfigError(
            f"the condition {self._text!r} cannot be used: {why}",
            hint="Columns of the table, constants ('text' without a backslash, numbers, X'hex'), = <=> <> < <= > >=, IN, BETWEEN, "
            f"LIKE, IS NULL, AND, OR, NOT and brackets. Columns: {', '.join(self._columns.values())}.",
        )
