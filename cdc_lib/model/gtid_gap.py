"""Transactions that a binlog file names as earlier ones, and that the files before it do not have."""

from __future__ import annotations

from dataclasses import dataclass

from cdc_lib.model.gtid import GtidSet


@dataclass(frozen=True, slots=True)
class GtidGap:
    """GTIDs that a file names before it and that were not read.

    Args:
        file: the file before it.
        follower: the file that names them.
        read: GTIDs of all transactions that are known to be before it.
        missing: those that are not among them.
    """

    file: str
    follower: str
    read: GtidSet
    missing: GtidSet


@dataclass(frozen=True, slots=True)
class GtidsRead:
    """What is known when a reading enters a file.

    Args:
        file: the file before it.
        gtids: of all transactions before it.
    """

    file: str
    gtids: GtidSet

    def gap(self, follower: str, named: GtidSet) -> GtidGap | None:
        """Return the gap before a file; None if there is none.

        On MariaDB each source counts with its last number, also where another server wrote later into the domain.

        Args:
            follower: the file that was entered.
            named: the GTIDs that it names before it.
        """
        missing = named.minus(self.gtids)
        return GtidGap(self.file, follower, self.gtids, missing) if missing else None
