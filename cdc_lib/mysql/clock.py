"""The server's clock against this machine's: searches by time use the server's clock."""

from __future__ import annotations

from datetime import datetime, timedelta

from cdc_lib.model.finding import Finding
from cdc_lib.mysql.server_facts import ServerFacts

TOLERATED = timedelta(seconds=30)


def judge_clock(facts: ServerFacts, now: datetime) -> Finding:
    """Compare the server's clock with this machine's.

    Args:
        facts: of the server, just read.
        now: by this machine's clock (UTC).
    """
    apart = facts.clock - now
    seconds = abs(apart.total_seconds())
    if abs(apart) <= TOLERATED:
        return Finding("ok", "the server's clock and this machine's agree")
    side = "ahead of" if apart > timedelta() else "slower than"
    return Finding(
        "warning",
        f"the server's clock is {seconds:.0f} seconds {side} this machine's",
        "Set both by NTP. Until then, times for cdc cursor locate, cdc cursor rewind and start: are by the server's clock.",
    )
