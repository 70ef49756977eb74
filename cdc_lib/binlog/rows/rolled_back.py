"""Rows in the binlog whose transaction, or a part of it, was rolled back.

Servers mostly do not log them. But if a transaction created or dropped a temporary table (MariaDB, also in ROW mode), or wrote a
non-transactional table, it is logged completely and ends in ROLLBACK, or contains a ROLLBACK TO a savepoint (MariaDB
``sql/log.cc``, trans_cannot_safely_rollback). Replicas execute these statements; here the rows are left out. Rows are decoded in
portions, so some may already be in a row group when the ROLLBACK is read. Then the window is read again with this knowledge,
and its files do not depend on the portions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cdc_lib.binlog.framing import packets
from cdc_lib.binlog.framing.damaged_file import hint_of_damage
from cdc_lib.binlog.framing.scan_progress import ScanProgress
from cdc_lib.errors import DecodeError, RowsRolledBack
from cdc_lib.model import lexer
from cdc_lib.model.lexer import DEFAULT_QUOTING, Quoting


class _RowPlace(NamedTuple):
    """Position of rows: file number, offset, and the offset inside a compressed transaction, else 0."""

    file: int
    offset: int
    inside: int


class RolledBackRows:
    """The rolled-back ranges of a window; one object for all readings of it."""

    def __init__(self) -> None:
        """Start without ranges."""
        self._ranges: set[tuple[_RowPlace, _RowPlace]] = set()
        self._savepoints: dict[str, _RowPlace] = {}
        self._group = _RowPlace(0, 0, 0)  # the transaction that the savepoints are of
        self._decoded = _RowPlace(0, 0, 0)
        self._too_late = False

    def begin(self) -> None:
        """Begin a reading of the window; known ranges are kept."""
        self._savepoints.clear()
        self._decoded = _RowPlace(0, 0, 0)
        self._too_late = False

    def statement(self, text: str, progress: ScanProgress, inside: int, quoting: Quoting = DEFAULT_QUOTING) -> None:
        """Handle SAVEPOINT, RELEASE SAVEPOINT, ROLLBACK or ROLLBACK TO.

        Args:
            text: of the statement.
            progress: positioned at the statement.
            inside: the statement's offset in a compressed transaction, else 0.
            quoting: of its session.

        Raises:
            DecodeError: the savepoint was not set.
        """
        state = progress.state
        number = int(state[packets.FILE_NUMBER])
        here = _RowPlace(number, int(state[packets.OFFSET]), inside)
        group = _RowPlace(number, int(state[packets.GROUP]), 0)
        if group != self._group:
            self._group, self._savepoints = group, {}
        if not state[packets.IN_TRANSACTION]:
            return
        words = list(lexer.words(text, quoting))
        verb, name = words[0].key, words[-1].text.casefold()
        if verb == "SAVEPOINT":
            self._savepoints.pop(name, None)  # replaces one of the same name, and becomes the newest
            self._savepoints[name] = here
        elif verb == "ROLLBACK" and any(word.key == "TO" for word in words[:3]):
            self._exclude(self._back_to(name, progress), here)
        elif verb == "ROLLBACK":
            self._exclude(group, here)

    def _back_to(self, name: str, progress: ScanProgress) -> _RowPlace:
        """Return where a savepoint was set, and delete all later ones."""
        if name not in self._savepoints:
            context = progress.error_context()
            raise DecodeError(
                f"a ROLLBACK TO of the savepoint {name}, which its transaction did not set",
                hint=hint_of_damage(context),
                **context,
            )
        names = list(self._savepoints)
        for later in names[names.index(name) + 1 :]:
            del self._savepoints[later]
        return self._savepoints[name]

    def _exclude(self, first: _RowPlace, last: _RowPlace) -> None:
        rows = (first, last)
        if rows not in self._ranges:
            self._ranges.add(rows)
            self._too_late = self._too_late or self._decoded >= first

    def kept(self, records: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_] | None:
        """Return which row events to decode; None for all. Decoded rows cannot be removed any more.

        Args:
            records: of frame.scan, in the order of the stream.
        """
        first, last = (_RowPlace(*records[i, [packets.FILE, packets.START, packets.ROW]].tolist()) for i in (0, -1))
        self._decoded = last
        near = [(low, high) for low, high in self._ranges if low <= last and first <= high]
        if not near:
            return None
        keep = np.ones(records.shape[0], np.bool_)
        file, offset, inside = (records[:, i] for i in (packets.FILE, packets.START, packets.ROW))
        for low, high in near:
            after = (offset > low.offset) | ((offset == low.offset) & (inside >= low.inside))
            before = (offset < high.offset) | ((offset == high.offset) & (inside <= high.inside))
            keep &= ~((file == low.file) & after & before)
        return keep

    def check(self, progress: ScanProgress) -> None:
        """Check at the window's end that no rolled-back rows were decoded.

        Raises:
            RowsRolledBack: some were; the window must be read again.
        """
        if self._too_late:
            raise RowsRolledBack(
                "rows were decoded before the statement that rolls them back",
                hint="The window is read again.",
                **progress.error_context(),
            )
