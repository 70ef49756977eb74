"""A consumer's subscription: the requested changes and the lease."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Interest:
    """Which changes a consumer wants.

    Args:
        tables: patterns of ``database.table``; all captured tables if empty.
        exclude: patterns of excluded tables.
        columns: patterns of columns; all if empty. Change columns are always included.
    """

    tables: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Lease:
    """Who may take batches of a subscription, one at a time.

    Args:
        holder: a name for people: process, user, host.
        token: random text of the subscription object; distinguishes two processes of one name.
        expires_at: wall clock (UTC) at which another process may take over. The clock only decides who may try; writes are
            fenced by the cursor's generation.
    """

    holder: str
    token: str
    expires_at: datetime

    def is_over(self, now: datetime) -> bool:
        """Whether another process may take over."""
        return self.expires_at <= now
