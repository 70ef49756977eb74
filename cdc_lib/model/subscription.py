"""What a consumer of the batches asked for, who holds its subscription, and how its cursor moves."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Interest:
    """Which changes a consumer wants.

    Args:
        tables: patterns of ``database.table``; all captured tables without any.
        exclude: patterns of tables that it does not want.
        columns: patterns of columns; all without any. Change columns always come along.
    """

    tables: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Lease:
    """Who may take batches of a subscription, one at a time.

    Args:
        holder: a name for people: process, user, host.
        token: random text of the one subscription object; tells two processes of one name apart.
        expires_at: wall clock (UTC) at which another may take over. The clock decides only whether somebody else may try: what is
            written is fenced by the cursor's generation.
    """

    holder: str
    token: str
    expires_at: datetime

    def is_over(self, now: datetime) -> bool:
        """Whether another may take over."""
        return self.expires_at <= now
