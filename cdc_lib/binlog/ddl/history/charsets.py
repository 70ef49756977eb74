"""Character sets in DDL, with their names in information_schema."""

from __future__ import annotations

from collections.abc import Iterable

from cdc_lib.binlog.ddl.history.words import CannotFollow, WordReader
from cdc_lib.model.charset import charset_name, charset_of_collation

LONGEST = {
    "utf8mb4": 4, "utf8mb3": 3, "ucs2": 2, "utf16": 4, "utf16le": 4, "utf32": 4, "gbk": 2, "gb2312": 2, "gb18030": 4,
    "big5": 2, "sjis": 2, "cp932": 2, "ujis": 3, "eucjpms": 3, "euckr": 2,
    **dict.fromkeys((
        "armscii8", "ascii", "binary", "cp1250", "cp1251", "cp1256", "cp1257", "cp850", "cp852", "cp866", "dec8", "geostd8",
        "greek", "hebrew", "hp8", "keybcs2", "koi8r", "koi8u", "latin1", "latin2", "latin5", "latin7", "macce", "macroman",
        "swe7", "tis620",
    ), 1),
}  # fmt: skip
"""Most bytes of a character (information_schema.CHARACTER_SETS, MAXLEN)."""

WHOLE = {"utf8mb4", "utf16", "utf16le", "utf32"}
"""Character sets that have every character."""
_WITHOUT_ASCII = {"ucs2", "utf16", "utf16le", "utf32", "swe7"}
"""Character sets in which bytes of ASCII are other characters."""
_WITHIN_PLANE_0 = LONGEST.keys() - WHOLE - {"gb18030"}


def holds(charset: str, other: str) -> bool:
    """Whether a character set certainly has all characters of another one; an unknown one has none."""
    if charset in WHOLE or (charset and charset == other):
        return True
    return charset in LONGEST and (other == "ascii" or (charset in ("utf8mb3", "ucs2") and other in _WITHIN_PLANE_0))


def keeps_labels(labels: Iterable[str], old: str, new: str) -> bool:
    """Whether labels of ENUM or SET have the same bytes in another character set.

    Args:
        labels: of the type.
        old: its character set; empty if it is not known.
        new: the other one; empty if it is not known.
    """
    if old == new or {old, new} == {"utf8mb3", "utf8mb4"}:
        return bool(new)
    extends = LONGEST.keys() - _WITHOUT_ASCII
    return new in extends and (not old or old in extends) and all(label.isascii() for label in labels)


def longest(charset: str) -> int:
    """Return the most bytes that a character takes.

    Raises:
        CannotFollow: the character set is not known.
    """
    if not charset:
        raise CannotFollow("it names no character set, and that of the table's database is not known")
    if charset not in LONGEST:
        raise CannotFollow(f"the character set {charset} is not known")
    return LONGEST[charset]


def accept_charset(read: WordReader, inherited: str) -> str | None:
    """Step over ``CHARACTER SET x`` or ``COLLATE x``; returns the character set, or None if neither is there.

    Args:
        read: the words.
        inherited: what ``DEFAULT`` stands for, and what a collation that fits several leaves.
    """
    if read.accept("CHARACTER", "SET") or read.accept("CHAR", "SET") or read.accept("CHARSET"):
        read.accept("=")
        word = read.take()
        return inherited if word.key == "DEFAULT" else charset_name(word.text)
    if read.accept("COLLATE"):
        read.accept("=")
        word = read.take()
        return inherited if word.key == "DEFAULT" else charset_of_collation(word.text) or inherited
    return None
