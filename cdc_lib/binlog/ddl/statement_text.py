"""The bytes of a statement as text: pure.

Servers log a statement as the client sent it, in the character set of its session, and write those that they make themselves in it
too (DROP TABLE). But for some: a CREATE TABLE made of a SELECT or of a temporary table, and the TRUNCATE of a MEMORY table that a
restart of MariaDB emptied, are in UTF-8, also where the event names another character set.

What is not sure becomes U+FFFD, one for each byte or character, and never a quote, a backslash or another sign of the grammar: so
words are cut where the server cuts them.
"""

from __future__ import annotations

import re

from cdc_lib.model.lexer import Quoting, is_quoted_name, tokens

UNKNOWN = "\ufffd"
"""Stands for what is not read."""

_UTF8 = frozenset({"utf8", "utf8mb3", "utf8mb4", "binary"})
"""In a session with ``SET NAMES binary`` servers take names for UTF-8."""
_TWO, _THREE, _FOUR = 0xC2, 0xE0, 0xF0
"""From which byte on MySQL takes a character in UTF-8 for one of so many bytes."""
_UNCERTAIN_CHARACTERS = {"swe7": re.compile(r"[@\[\]^{|}~]")}
"""Sets in which bytes of ASCII are other characters, but those of the grammar. A backslash is one of both."""
_LIKE_SIGNS = {"armscii8", "sjis", "ujis"}
"""Sets with other bytes for signs of ASCII: servers do not take these for signs of the grammar."""
_SPACED = "armscii8 cp1250 cp852 cp866 dec8 geostd8 greek hebrew keybcs2 latin1 latin2 latin5 latin7"
NO_BREAK_SPACES = frozenset(_SPACED.split())
"""Sets in which servers take the no-break space for a space. In UTF-8 it is part of a name."""
_OF_SERVER = re.compile(
    rb'CREATE (?:OR REPLACE )?TABLE (?:IF NOT EXISTS )?[`"][^\n]*[`"] \(\n'
    rb'|(?:TRUNCATE TABLE|DELETE FROM) [`"][^\n]*[`"]\.[`"][^\n]*[`"]\Z'
)
"""How servers write the statements that they make in UTF-8; people may write the same."""


def text_of(raw: bytes, charset: str, *, with_rows: bool = False) -> tuple[str, bool]:
    """Return a statement, and whether every character of it is known.

    Args:
        raw: its bytes.
        charset: of its session, as servers name it; empty when it is not known.
        with_rows: whether it is in one transaction with rows, as no CREATE TABLE is that somebody typed.
    """
    if raw.isascii() and charset not in _UNCERTAIN_CHARACTERS:
        return raw.decode("ascii"), True
    if charset not in _UTF8 and _OF_SERVER.match(raw) and (made := _utf8(raw))[1]:
        is_made = raw.startswith(b"CREATE") and (with_rows or raw.endswith(b" START TRANSACTION"))
        return made if is_made else _ascii(raw)
    if charset in _UTF8:
        return _utf8(raw)
    if not _is_readable(charset):
        return _ascii(raw)
    if charset in _UNCERTAIN_CHARACTERS:
        text, known = _ascii(raw)
        text, others = _UNCERTAIN_CHARACTERS[charset].subn(UNKNOWN, text)
        return text, known and not others and "\\" not in text
    return _decoded(raw, charset)


def readings_of(raw: bytes, charset: str) -> tuple[str, ...]:
    """Return the two texts of a statement that :func:`text_of` does not read, because people and servers may have written it; else none."""
    if charset in _UTF8 or not _OF_SERVER.match(raw) or not _is_readable(charset):
        return ()
    found = (_utf8(raw), _decoded(raw, charset))
    return tuple(text for text, _ in found) if all(known for _, known in found) else ()


def has_halves(raw: bytes, charset: str) -> bool:
    """Whether a statement is in UTF-8 but for halves of surrogate pairs."""
    if charset not in _UTF8 or _utf8(raw)[1]:
        return False
    try:
        raw.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    return True


def with_kept_names(raw: bytes, quoting: Quoting) -> str:
    """Return a statement of a MySQL session in utf8mb4 with its names in quotes as the server keeps them.

    Outside of quotes the server takes no byte that is not UTF-8 into a name, and in utf8mb3 and binary it refuses the statement.

    Args:
        raw: the statement, which is not all UTF-8.
        quoting: of the session.
    """
    escaped = tokens(raw.decode("utf-8", "surrogateescape"), quoting)
    return "".join(_kept(token[0], is_name=is_quoted_name(token, quoting)) for token in escaped)


def _kept(token: str, *, is_name: bool) -> str:
    if token.isascii():
        return token
    raw = token.encode("utf-8", "surrogateescape")
    if not is_name:
        return raw.decode("utf-8", "replace")
    quote = token[0]
    name = kept_name(raw[1:-1].replace(raw[:1] * 2, raw[:1]))
    return quote + name.replace(quote, quote * 2) + quote


def kept_name(raw: bytes) -> str:
    """Return the name that MySQL makes of bytes in a session in utf8mb4.

    A byte that begins no character of three bytes at most becomes a question mark, and so does a longer character. Where fewer bytes are
    left than the first of them asks for, the name ends (``copy_and_convert`` in MySQL's ``sql-common/sql_string.cc``).
    """
    name, at = "", 0
    while at < len(raw) and at + (size := _size(raw[at])) <= len(raw):
        try:
            character = raw[at : at + size].decode()
        except UnicodeDecodeError:
            character, size = "?", 1
        name += character if character <= "\uffff" else "?"
        at += size
    return name


def _size(first: int) -> int:
    """Return how many bytes MySQL takes for a character that begins with a byte."""
    if first < _TWO:  # also of one that begins none
        return 1
    return 2 if first < _THREE else 3 if first < _FOUR else 4


def _utf8(raw: bytes) -> tuple[str, bool]:
    try:
        return raw.decode("utf-8"), True
    except UnicodeDecodeError:
        return raw.decode("utf-8", "replace"), False


def _ascii(raw: bytes) -> tuple[str, bool]:
    return raw.decode("ascii", "replace"), raw.isascii()


def _is_readable(charset: str) -> bool:
    from cdc_lib.binlog.charsets.registry import READABLE

    return charset in READABLE


def _decoded(raw: bytes, charset: str) -> tuple[str, bool]:
    from cdc_lib.binlog.charsets.registry import decoded

    if charset == "sjis":
        # The servers' own table gives a backslash for one pair of bytes; this codec tells the two apart.
        text = raw.decode("shift_jis", "replace").replace("\N{FULLWIDTH REVERSE SOLIDUS}", UNKNOWN)
        return text, UNKNOWN not in text
    try:
        (text,) = decoded((raw,), charset)
        known = True
    except UnicodeError:
        (text,) = decoded((raw,), charset, replace=True)
        known = False
    if charset in _LIKE_SIGNS and sum(map(str.isascii, text)) > sum(byte < 0x80 for byte in raw):
        return _ascii(raw)
    return text, known
