"""What a run may say, and what is a fault."""

from __future__ import annotations

import re
from dataclasses import dataclass

ALLOWED_QUARANTINE = (
    # invalid_text: error is the default: bytes that the column's character set does not have.
    ("unsupported_value", r"not valid (in|for|text)|is not valid|invalid text"),
    # Two keys would be one row.
    ("unsupported_value", r"looks like another one, in a key"),
    ("unsupported_value", r"is YEAR\(2\): years of two centuries look like one key"),
    # The lake cannot have the column, and only the source or the file can give it another name.
    ("unsupported_value", r"has a name that is reserved in the lake|have names that Spark takes for one"),
    ("incompatible_schema", r"has a name that is reserved in the lake|have names that Spark takes for one"),
    # The same of a table that a RENAME gave its name: its snapshot cannot begin.
    # A date of a table that another one replaced since, which the lake cannot have.
    ("unsupported_value", r"in the key, of which the lake holds dates"),
    # The server itself cannot show the rows: a virtual column has no value that its type holds.
    ("table_unreadable", r"value is out of range"),
    ("config_error", r"has a name that is reserved in the lake|have names that Spark takes for one"),
)
"""Codes and messages for which one table may be quarantined."""


@dataclass(frozen=True)
class Failure:
    """What is wrong with a run of a program.

    Args:
        kind: ``error``, ``quarantined``, ``late``, ``rows`` or another kind of difference.
        what: without names and values: equal for equal faults.
        detail: for people.
        part: number of the part after which it was seen.
        table: the table's name at the source, if one is known.
    """

    kind: str
    what: str
    detail: tuple[str, ...] = ()
    part: int = 0
    table: str = ""

    @property
    def signature(self) -> str:
        """Text by which failures are the same."""
        return f"{self.kind}: {self.what}"


_NAMES = re.compile(r"`(?:[^`]|``)*`|'(?:[^']|'')*'|\"[^\"]*\"")
_PLACES = re.compile(r"\[[^\]]*=[^\]]*\]")
_DATABASES = re.compile(r"fz\w+?[ms]\b(\.(`(?:[^`]|``)*`|[^\s,:;]+))?")
_DETAILS = (
    (r"\([^()]*\)", "()"),
    (r"column \S+", "column C"),
    (r"\bis \S+ in the lake and \S+ at the source", "is of one type in the lake and of another at the source"),
)
"""What differs between equal faults: columns of keys, names and types."""


def without_names(text: str, most: int = 160) -> str:
    """Return a message without what differs between equal faults."""
    text = _PLACES.sub("", text.splitlines()[0] if text else "")
    text = _DATABASES.sub("T", text)
    for pattern, instead in _DETAILS:
        text = re.sub(pattern, instead, text)
    text = re.sub(r"\d+", "N", _NAMES.sub("X", text))
    return re.sub(r"\s+", " ", text).strip()[:most]


def is_allowed(code: str, reason: str) -> bool:
    """Whether a table may be quarantined for this."""
    return any(code == known and re.search(pattern, reason) for known, pattern in ALLOWED_QUARANTINE)


def are_taken_for_one(names: list[str]) -> bool:
    """Whether Spark may take two of these names for one; no table of the lake has both."""
    return len({name.upper().casefold() for name in names}) < len(names)
