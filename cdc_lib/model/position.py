"""Where something is in the binlog, and the total order of changes.

Positions compare by the number of their file and then by offset, never as text: ``binlog.1000000`` comes after
``binlog.999999``. An order key adds the epoch in front (it counts failovers and rewinds) and the row after, so that any two
changes of one source are distinct and ordered: epoch, file number, offset, row, compared as numbers.

A row of the binlog has the offset at which its event starts and its index in that event. All rows of a compressed
transaction have the offset of the one event that holds it, and as row the offset of their own event in there plus the
index: unique and increasing, however large the transaction is. A snapshot row has the low watermark that was read before its
SELECT and row -1: it comes after every event before the watermark and before every event at or after it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from cdc_lib.errors import ConfigError

FIRST_EVENT_OFFSET = 4
"""Bytes of the magic number at the start of every binlog file; its first event starts after them."""

_FILE_NAME = re.compile(r"^(?P<base>.+)\.(?P<number>\d{1,10})$")


@dataclass(frozen=True, slots=True)
class Position:
    """A binlog file and a byte offset in it, between two events.

    Args:
        file: name as the server gives it, for example ``binlog.000012``.
        offset: bytes from the beginning of the file, at least 4.

    Raises:
        ConfigError: the name has no number at its end, the offset lies before the first event, or it has more than 63 bits.
    """

    file: str
    offset: int

    def __post_init__(self) -> None:
        """Refuse what cannot be a position."""
        if not _FILE_NAME.match(self.file):
            raise ConfigError(f"{self.file!r} is not the name of a binlog file", hint="It looks like binlog.000012.")
        if not FIRST_EVENT_OFFSET <= self.offset < 1 << 63:
            raise ConfigError(f"{self.offset} is not an offset in a binlog file", hint="The first event starts at 4.")

    @property
    def file_number(self) -> int:
        """The number at the end of the file's name."""
        return file_number(self.file)

    @property
    def sortable(self) -> str:
        """``000012.000000000004``: a text that sorts as the binlog of one server does."""
        return f"{self.file_number:06d}.{self.offset:012d}"

    def _key(self) -> tuple[int, int]:
        return self.file_number, self.offset

    def __lt__(self, other: Position) -> bool:
        """Earlier in the binlog of one server."""
        return self._key() < other._key()

    def __le__(self, other: Position) -> bool:
        """Not later in the binlog of one server."""
        return self._key() <= other._key()

    def __str__(self) -> str:
        """``file:offset``, as ``cdc`` prints and reads it."""
        return f"{self.file}:{self.offset}"

    @classmethod
    def parse(cls, text: str) -> Position:
        """Read ``file:offset``."""
        file, _, offset = text.rpartition(":")
        if not file or not offset.isdigit():
            raise ConfigError(f"{text!r} is not a position", hint="Write it as binlog.000012:4.")
        return cls(file, int(offset))


def file_number(file: str) -> int:
    """Return the number at the end of a binlog file's name."""
    match = _FILE_NAME.match(file)
    if match is None:
        raise ConfigError(f"{file!r} is not the name of a binlog file", hint="It looks like binlog.000012.")
    return int(match["number"])


SNAPSHOT_ROW = -1
"""The index of a row that was read by SELECT, in its order key."""


class Point(NamedTuple):
    """An epoch and a position in it; compares as numbers, and with the order keys of changes."""

    epoch: int
    file: int
    offset: int

    @classmethod
    def at(cls, epoch: int, position: Position) -> Point:
        """Return the point of a position."""
        return cls(epoch, position.file_number, position.offset)

    @property
    def sortable(self) -> str:
        """``000001-000012.000000000004``: a text that sorts as the stream does."""
        return f"{self.epoch:06d}-{self.file:06d}.{self.offset:012d}"

    def just_after(self) -> Point:
        """Return a point after the event that starts here."""
        return self._replace(offset=self.offset + 1)
