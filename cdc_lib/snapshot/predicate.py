"""Parses a user's condition on the rows of one table, and writes it as safe SQL: pure.

It allows columns, constants, comparisons, AND, OR and NOT: nothing that reads another table, calls a function or ends the
statement. The user's text never goes to the server unchanged: names are quoted, and strings become hex digits.
"""

from __future__ import annotations

import string
from collections.abc import Mapping
from typing import NamedTuple

from cdc_lib.errors import ConfigError
from cdc_lib.model.lexer import quoted, tokens

_COMPARISONS = {"=", "<=>", "<", "<=", ">", ">=", "<>", "!="}
_CONSTANTS = {"TRUE", "FALSE", "NULL"}
_KEYWORDS = {"AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "IS", *_CONSTANTS}
_READ = {"name", "string", "number", "0x", "introducer", "word", "sign"}
_DEEPEST = 50
"""Maximum nesting of brackets."""


class _Token(NamedTuple):
    kind: str
    text: str

    @property
    def key(self) -> str:
        return self.text.upper() if self.kind in ("word", "sign") else ""


def predicate(text: str, columns: Mapping[str, str]) -> str:
    """Return a condition as safe SQL for a WHERE clause.

    Args:
        text: the user's text.
        columns: the names that may be used: lower case to the table's spelling.

    Raises:
        ConfigError: it is not a valid condition on these columns.
    """
    return _Parser(text, columns).whole()


class _Parser:
    def __init__(self, text: str, columns: Mapping[str, str]) -> None:
        self._text = text
        self._columns = columns
        self._tokens = self._tokenize()
        self._at = 0
        self._depth = 0

    def whole(self) -> str:
        condition = self._any()
        if self._at < len(self._tokens):
            raise self._refused(f"there is more after the condition: {self._tokens[self._at].text!r}")
        return condition

    def _tokenize(self) -> list[_Token]:
        result: list[_Token] = []
        for token in tokens(self._text):
            kind, text = str(token.lastgroup), token[0]
            if kind == "number" and text[:2] in ("0x", "0b"):
                kind = text[:2]
            if kind in _READ and not (kind == "string" and "\\" in text):
                result.append(_Token(kind, text))
            elif kind != "space":
                raise self._refused(f"{text[:10]!r} is not understood here")
        return result

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
            condition = f"({self._any()})"
            self._expect(")")
        else:
            condition = self._compared()
        return f"NOT ({condition})" if nots % 2 else condition

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
                operand = token.text
            case "0x":
                operand = self._bytes(token.text[2:])
            case "introducer" if token.text in ("x", "X"):
                self._at += 1
                operand = self._bytes(self._tokens[self._at - 1].text[1:-1])
            case "string":
                operand = f"_utf8mb4 X'{token.text[1:-1].replace(chr(39) * 2, chr(39)).encode().hex()}'"
            case "name":
                operand = self._column(token.text[1:-1].replace("``", "`"))
            case "word" if token.key in _CONSTANTS:
                operand = token.key
            case "word" if token.key not in _KEYWORDS:
                operand = self._column(token.text)
            case _:
                what = f"a column or a constant is missing before {token.text!r}" if token.text else "it ends too early"
                raise self._refused(what)
        return operand

    def _bytes(self, digits: str) -> str:
        if not set(digits) <= set(string.hexdigits):
            raise self._refused(f"{digits!r} are not hex digits")
        return f"X'{'0' * (len(digits) % 2)}{digits}'"

    def _column(self, name: str) -> str:
        column = self._columns.get(name.lower())
        if column is None or self._next().key == "(":
            raise self._refused(f"{name!r} is not a column that may be used")
        return quoted(column)

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
