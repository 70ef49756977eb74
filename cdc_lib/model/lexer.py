"""What the text of an SQL statement consists of: the one place that knows its strings, names, comments, numbers and words. Pure.

A statement in the binlog is what a client typed, in any vendor's syntax and SQL mode. So nothing is refused here: every character
belongs to exactly one token, and a quote or a comment without an end takes the rest. The time is linear in the length.

What a backslash, double quotes and some comments mean depends on the server and the session, see :class:`Quoting`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal, NamedTuple

WordKind = Literal["name", "string", "number", "word", "sign", "unended"]

_LETTER = r"[^\x00-#%-/:-@\[-^`{-\x7f\ufffd]"
"""What a name without quotes consists of: digits, letters, $, _ and all that is not ASCII, such as the vowel signs of Thai and, in
UTF-8, spaces beyond ASCII. U+FFFD is a byte that could not be decoded.
"""
_TOKENS = r"""
      (?P<space>{space}++)
    | {first}
    | (?P<word>{letter}++)
    | (?P<name>`[^`]*+(?:``[^`]*+)*+`)
    | (?P<string>{string})
    | (?P<quoted>{quoted})
    | {comments}
    | (?P<unended>(?:[`'"]|/\*).*+)
    | (?P<sign><=>|<>|[<>!:]=|.)
    """
_NUMBERS = r"""(?=[0-9.])(?P<number>
        (?:(?<!{letter})(?<![.`"])\.[0-9]++|(?<!\.)[0-9]++\.[0-9]*+)(?:[eE][+-]?[0-9]++)?+
      | (?:[0-9]++(?:[eE][+-]?[0-9]++)?+|0x[0-9A-Fa-f]++|0b[01]++)(?!{letter})
      )"""
"""After a name a point begins no number, and digits with letters after them are a word: shop.1st is a table."""


class Quoting(NamedTuple):
    """How a server reads the statements of a session.

    Args:
        ansi: text in double quotes is a name, in which a backslash is a character like others (ANSI_QUOTES); else it is a string.
        escapes: a backslash in a string is an escape (no NO_BACKSLASH_ESCAPES).
        mariadb: the server is MariaDB; to others, a comment that only MariaDB executes is a comment, and a character beyond U+FFFF in a
            name is a question mark; MariaDB refuses it.
        spaces: characters beyond ASCII that are spaces: the no-break space in some character sets of one byte, in others a letter.
    """

    ansi: bool = False
    escapes: bool = True
    mariadb: bool = True
    spaces: str = ""


DEFAULT_QUOTING = Quoting()
QUOTINGS = (DEFAULT_QUOTING, Quoting(ansi=True), Quoting(escapes=False), Quoting(ansi=True, escapes=False))
"""Those of all SQL modes. They cut a text without a backslash at the same places."""


def _in_quotes(quote: str, *, escapes: bool) -> str:
    """Return the pattern of a text in quotes, in which two of them stand for one."""
    if escapes:
        return rf"{quote}[^{quote}\\]*+(?:(?:{quote * 2}|\\.)[^{quote}\\]*+)*+{quote}"
    return f"{quote}[^{quote}]*+(?:{quote * 2}[^{quote}]*+)*+{quote}"


@lru_cache(maxsize=32)
def _mysql(quoting: Quoting) -> re.Pattern[str]:
    space, letter = rf"[ \t-\r{quoting.spaces}]", f"{_LETTER[:-1]}{quoting.spaces}]"
    first = rf"(?P<introducer>(?:[xXbBnN]|_\w++{space}*+)(?=['\"])) | {_NUMBERS.format(letter=letter)}"
    # MariaDB takes five or six digits for a version, MySQL a sixth one only with a space after it.
    executed, version = ("M?!", "[0-9]{5}[0-9]?") if quoting.mariadb else ("!", r"[0-9]{5}(?:[0-9](?=\s))?")
    comments = (
        rf"(?P<comment>--(?=[\x00-\x20\x7f{quoting.spaces}]|\Z)[^\n]* | \#[^\n]* | /\*(?!{executed}).*?\*/)"
        rf" | (?P<mark>/\*{executed}(?P<version>(?:{version})?)|\*/(?!\*))"
    )
    string = _in_quotes("'", escapes=quoting.escapes)
    quoted = _in_quotes('"', escapes=quoting.escapes and not quoting.ansi)
    pattern = _TOKENS.format(space=space, letter=letter, first=first, comments=comments, string=string, quoted=quoted)
    return re.compile(pattern, re.VERBOSE | re.DOTALL)


_SPARK = re.compile(
    _TOKENS.format(
        space=r"\s",
        letter=_LETTER.replace("]", r"\s]"),
        first=r"(?P<raw>[rR](?:'[^']*'|\"[^\"]*\"))",
        comments=r"(?P<comment>--[^\n]* | /\*.*?\*/)",
        string=_in_quotes("'", escapes=True),
        quoted=_in_quotes('"', escapes=True),
    ),
    re.VERBOSE | re.DOTALL,
)
_IN_NO_NAME = re.compile("[\U00010000-\U0010ffff]")
"""What MySQL makes a question mark in names: it keeps them in three bytes of UTF-8."""
_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


class Word(NamedTuple):
    """A word: its text without quotes, what it is, and in upper case when it can be a keyword or a sign (else empty)."""

    text: str
    kind: WordKind
    key: str


def tokens(text: str, quoting: Quoting = DEFAULT_QUOTING) -> Iterator[re.Match[str]]:
    """Yield the tokens of a statement of MySQL or MariaDB; joined they are the text.

    Kinds (``lastgroup``): space, comment, mark (the ends of a comment that servers execute, with its ``version``), introducer (the
    character set of the string after it, or X, B, N), number, word, name (in backticks), string, quoted (in double quotes), unended
    (a quote or comment without an end, with the rest) and sign.

    Args:
        text: the statement.
        quoting: of the session that gave it.
    """
    return _mysql(quoting).finditer(text)


def is_quoted_name(token: re.Match[str], quoting: Quoting) -> bool:
    """Whether a token of :func:`tokens` is a name in quotes."""
    return token.lastgroup == "name" or (token.lastgroup == "quoted" and quoting.ansi)


def spark_tokens(text: str) -> Iterator[re.Match[str]]:
    """Yield the tokens of Spark SQL: the same without mark, introducer and number, and with raw, a string without escapes."""
    return _SPARK.finditer(text)


def words(text: str, quoting: Quoting = DEFAULT_QUOTING) -> Iterator[Word]:
    """Yield the words, names, strings, numbers and signs of a statement, also of comments that servers execute.

    A quote without an end is the last word, of the kind unended. After a point every word is a name: ``shop.table``, ``shop.1``.

    Args:
        text: the statement.
        quoting: of the session that gave it.
    """
    found = ""
    for token in tokens(text, quoting):
        kind = token.lastgroup
        if kind in ("space", "comment", "mark"):
            continue
        before, found = found, token[0]
        is_name = kind == "word" or is_quoted_name(token, quoting)
        if is_name and not quoting.mariadb and not found.isascii():
            found = _IN_NO_NAME.sub("?", found)
        if before == "." and kind in ("word", "number"):
            yield Word(found, "name", "")
        elif kind == "word":
            yield Word(found, "word", found.upper())
        elif kind == "sign":
            yield Word(found, "sign", found)
        elif is_name:
            yield Word(found[1:-1].replace(found[0] * 2, found[0]), "name", "")
        elif kind == "number":
            yield Word(found, "number", found.upper())
        elif kind in ("string", "quoted"):
            yield Word(_unescaped(found, escapes=quoting.escapes), "string", "")
        elif kind == "introducer":
            yield Word(found.rstrip(), "word", found.rstrip().upper())
        elif kind == "unended" and found[0] != "/":
            yield Word(found[1:], "unended", "")


@lru_cache(maxsize=128)
def all_words(text: str, quoting: Quoting = DEFAULT_QUOTING) -> tuple[Word, ...]:
    """Return what :func:`words` yields. The last texts are kept: what a statement names, adds and renames is read one after the other."""
    return tuple(words(text, quoting))


def quoted(name: str) -> str:
    """Return a name in backticks, for MySQL, MariaDB and Spark SQL."""
    return "`" + name.replace("`", "``") + "`"


def uncommented(text: str, quoting: Quoting = DEFAULT_QUOTING) -> str:
    """Return a statement with a space for each comment; what servers execute stays."""
    return "".join(" " if token.lastgroup in ("comment", "mark") else token[0] for token in tokens(text, quoting))


def _unescaped(string: str, *, escapes: bool) -> str:
    quote = string[0]
    plain = string[1:-1].replace(quote * 2, quote)
    if not escapes or "\\" not in plain:
        return plain
    return _ESCAPE.sub(lambda found: _ESCAPED.get(found[1], found[1]), plain)
