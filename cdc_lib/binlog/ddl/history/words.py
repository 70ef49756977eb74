"""Reads the words of a DDL statement, from the left to the right; what is not understood is refused."""

from __future__ import annotations

from collections.abc import Sequence

from cdc_lib.binlog.ddl.statement import NO_BACKSLASH_ESCAPES, ORACLE, Statement
from cdc_lib.model import lexer
from cdc_lib.model.lexer import Word

_NEWEST = 90000
"""Versioned comments from this version on are not executed by every server."""
_DIGITS = 6
"""Of a version at most."""


class CannotFollow(Exception):
    """What a statement does to a definition is not certain; the text says why."""


def words(statement: Statement) -> Sequence[Word]:
    """Return the words of a statement.

    Raises:
        CannotFollow: it is written in a way that is not read.
    """
    if not statement.exact:
        raise CannotFollow("its character set is not read")
    if statement.sql_mode & (ORACLE | NO_BACKSLASH_ESCAPES) & ~(0 if "\\" in statement.text else NO_BACKSLASH_ESCAPES):
        raise CannotFollow("it was given in an SQL mode that is not read")
    quoting, *others = statement.quotings
    if others:
        raise CannotFollow("it was given in an SQL mode that is not known")
    found = lexer.all_words(statement.text, quoting)
    for token in lexer.tokens(statement.text, quoting) if "/*" in statement.text else ():
        if int((token["version"] or "0")[:_DIGITS]) >= _NEWEST:
            raise CannotFollow("it has a comment that only some versions execute")
        if token["unended"]:
            raise CannotFollow("a comment has no end")
    if found and found[-1].kind == "unended":
        raise CannotFollow("a quote has no end")
    return found


class WordReader:
    """Words from the left to the right.

    Args:
        found: the words.
    """

    def __init__(self, found: Sequence[Word]) -> None:
        """Start before the first word."""
        self._words = found
        self._at = 0

    @property
    def more(self) -> bool:
        """Whether there is another word."""
        return self._at < len(self._words)

    def key(self, offset: int = 0) -> str:
        """Return the keyword that is next, or so many words ahead; empty for none."""
        at, words = self._at + offset, self._words
        return words[at].key if at < len(words) else ""

    def take(self) -> Word:
        """Return the next word and step over it."""
        if not self.more:
            raise CannotFollow("it ends too early")
        self._at += 1
        return self._words[self._at - 1]

    def accept(self, *keys: str) -> bool:
        """Skip these keywords if all of them are next."""
        words, at = self._words, self._at
        if at + len(keys) > len(words):
            return False
        for key in keys:
            if words[at].key != key:
                return False
            at += 1
        self._at = at
        return True

    def accept_any(self, *keys: str) -> str:
        """Step over the next word if it is one of these keywords; returns which, or an empty text."""
        return self.take().key if self.key() in keys else ""

    def name(self) -> str:
        """Return the next word as a name."""
        word = self.take()
        if word.kind not in ("name", "word"):
            raise CannotFollow(f"a name is expected at {word.text!r}")
        return word.text

    def table(self, database: str) -> tuple[str, str]:
        """Return the next words as the name of a table."""
        *given, name = self._parts(2)
        if self.key() == ".":
            raise CannotFollow(f"a point is not expected after {name!r}")
        return (given[0] if given else database), name

    def column(self) -> str:
        """Return the next words as the name of a column, before which MariaDB takes that of its table."""
        return self._parts(3)[-1]

    def _parts(self, most: int) -> list[str]:
        """Return names with points between them; MariaDB takes a point before a name without others."""
        alone = self.accept(".")
        found = [self.name()]
        while not alone and len(found) < most and self.accept("."):
            found.append(self.name())
        return found

    def wait(self) -> None:
        """Step over MariaDB's WAIT and NOWAIT."""
        if self.accept("WAIT"):
            self.take()
        self.accept("NOWAIT")

    def end(self) -> None:
        """Raise CannotFollow if something is left."""
        self.accept(";")
        if self.more:
            raise CannotFollow(f"the word {self.take().text!r} is not expected here")

    def string(self) -> str:
        """Return the next word as a string."""
        word = self.take()
        if word.kind != "string":
            raise CannotFollow(f"a string is expected at {word.text!r}")
        return word.text

    def number(self) -> int:
        """Return the next word as a number without a sign."""
        word = self.take()
        if not word.text.isdecimal():
            raise CannotFollow(f"a number is expected at {word.text!r}")
        return int(word.text)

    def inner(self) -> Sequence[Word]:
        """Step over a pair of parentheses and return what is between them."""
        if not self.accept("("):
            raise CannotFollow("a parenthesis is missing")
        begin, depth = self._at, 1
        while depth:
            key = self.take().key
            depth += (key == "(") - (key == ")")
        return self._words[begin : self._at - 1]

    def left(self) -> Sequence[Word]:
        """Return the remaining words without moving."""
        return self._words[self._at :]

    def rest(self) -> Sequence[Word]:
        """Return the remaining words and move to the end."""
        begin, self._at = self._at, len(self._words)
        return self._words[begin:]


def parted(found: Sequence[Word]) -> list[list[Word]]:
    """Split words at top-level commas."""
    parts: list[list[Word]] = [[]]
    depth = 0
    for word in found:
        depth += (word.key == "(") - (word.key == ")")
        if word.key == "," and depth == 0:
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def clauses(read: WordReader) -> list[WordReader]:
    """Return the clauses of an ALTER TABLE, from its first word on."""
    while read.more and not read.accept_any("TABLE", "TABLES"):
        read.take()
    read.accept("IF", "EXISTS")
    read.table("")
    read.wait()
    return [WordReader(part) for part in parted(read.rest()) if part]
