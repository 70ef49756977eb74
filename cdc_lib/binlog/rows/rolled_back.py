"""Rows that stand in the binlog and were taken back: their transaction, or a part of it, was rolled back.

Servers leave such rows out, but not always: where a temporary table was made or dropped in the transaction (MariaDB, also in
ROW mode), or where a statement wrote a table without transactions, it is logged whole and ends in ROLLBACK, or goes back to a
savepoint by ROLLBACK TO (MariaDB ``sql/log.cc``, trans_cannot_safely_rollback). Replicas run these statements; here the rows
are left out. Rows are decoded in portions, so that some may be in a row group when the statement comes: then the window is read
again to know of it beforehand, and its files are the same however it was cut.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cdc_lib.binlog.framing import packets
from cdc_lib.binlog.framing.progress import Progress
from cdc_lib.errors import DecodeError, RowsRolledBack
from cdc_lib.model import lexer


class _RowPlace(NamedTuple):
    """Where rows stand: number of the file, offset, and the offset inside a compressed transaction, else 0."""

    file: int
    offset: int
    inside: int


class RolledBackRows:
    """The stretches of a window whose rows were taken back; one for all readings of it."""

    def __init__(self) -> None:
        """Know of none."""
        self._stretches: set[tuple[_RowPlace, _RowPlace]] = set()
        self._savepoints: dict[str, _RowPlace] = {}
        self._group = _RowPlace(0, 0, 0)  # the transaction that the savepoints are of
        self._decoded = _RowPlace(0, 0, 0)
        self._too_late = False

    def begin(self) -> None:
        """Begin a reading of the window with what is known of it."""
        self._savepoints.clear()
        self._decoded = _RowPlace(0, 0, 0)
        self._too_late = False

    def statement(self, text: str, progress: Progress, inside: int) -> None:
        """Take SAVEPOINT, RELEASE SAVEPOINT, ROLLBACK or ROLLBACK TO.

        Args:
            text: of the statement.
            progress: is at it.
            inside: its offset in a compressed transaction, else 0.

        Raises:
            DecodeError: it goes back to a savepoint that was not set.
        """
        state = progress.state
        number = int(state[packets.FILE_NUMBER])
        here = _RowPlace(number, int(state[packets.OFFSET]), inside)
        group = _RowPlace(number, int(state[packets.GROUP]), 0)
        if group != self._group:
            self._group, self._savepoints = group, {}
        if not state[packets.IN_TRANSACTION]:
            return
        words = list(lexer.words(text))
        head, name = words[0].key, words[-1].text.casefold()
        if head == "SAVEPOINT":
            self._savepoints.pop(name, None)  # one of the same name goes, and this is the newest
            self._savepoints[name] = here
        elif head == "ROLLBACK" and any(word.key == "TO" for word in words[:3]):
            self._take_back(self._back_to(name, progress), here)
        elif head == "ROLLBACK":
            self._take_back(group, here)

    def _back_to(self, name: str, progress: Progress) -> _RowPlace:
        """Return where a savepoint was set; those after it are gone."""
        if name not in self._savepoints:
            raise DecodeError(
                f"a ROLLBACK TO of the savepoint {name}, which its transaction did not set",
                hint="Check the file at the source: mysqlbinlog reads it?",
                **progress.place(),
            )
        names = list(self._savepoints)
        for later in names[names.index(name) + 1 :]:
            del self._savepoints[later]
        return self._savepoints[name]

    def _take_back(self, first: _RowPlace, last: _RowPlace) -> None:
        stretch = (first, last)
        if stretch not in self._stretches:
            self._stretches.add(stretch)
            self._too_late = self._too_late or self._decoded >= first

    def kept(self, records: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_] | None:
        """Return which row events to decode, None where that is all of them; what is decoded now cannot be taken back.

        Args:
            records: of frame.scan, in the order of the stream.
        """
        first, last = (_RowPlace(*records[i, [packets.FILE, packets.START, packets.ROW]].tolist()) for i in (0, -1))
        self._decoded = last
        near = [(low, high) for low, high in self._stretches if low <= last and first <= high]
        if not near:
            return None
        keep = np.ones(records.shape[0], np.bool_)
        file, offset, inside = (records[:, i] for i in (packets.FILE, packets.START, packets.ROW))
        for low, high in near:
            behind = (offset > low.offset) | ((offset == low.offset) & (inside >= low.inside))
            before = (offset < high.offset) | ((offset == high.offset) & (inside <= high.inside))
            keep &= ~((file == low.file) & behind & before)
        return keep

    def check(self, progress: Progress) -> None:
        """Look at the window's end whether rows were decoded before they were known to be taken back.

        Raises:
            RowsRolledBack: some were; the window is to be read again.
        """
        if self._too_late:
            raise RowsRolledBack(
                "rows were decoded before the statement that rolls them back",
                hint="The window is read again.",
                **progress.place(),
            )
