"""Transactions that a new server never had, with which a person may decide to continue."""

from __future__ import annotations

from dataclasses import dataclass

from cdc_lib.model.gtid import GtidSet
from cdc_lib.model.server_identity import ServerIdentity


@dataclass(frozen=True, slots=True)
class MissingTransactions:
    """What a person was shown and accepted.

    Args:
        server: the new server, as messages name it.
        gtid_set: the transactions that were read and that it never had.
    """

    server: str
    gtid_set: str

    def cover(self, server: ServerIdentity, missing: GtidSet) -> bool:
        """Whether the server is the one that was shown, and lacks no other transaction.

        Args:
            server: the connected server.
            missing: what it lacks now; a standby that catches up lacks less than it did.
        """
        if self.server != str(server):
            return False
        return not GtidSet.parse(server.flavor, self.gtid_set).lacks(missing)
