"""The server's clock against this machine's: searches by time use the server's clock."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta

import pymysql

from cdc_lib.config import Credentials, ServerConfig
from cdc_lib.model.finding import Finding
from cdc_lib.mysql.connection import connect, translated
from cdc_lib.mysql.statements import rows_of

TOLERATED = timedelta(seconds=30)


def clock_of(server: ServerConfig, credentials: Credentials) -> datetime:
    """Return the time of a server (UTC).

    Raises:
        SourceError: the server cannot be reached, or refuses.
    """
    with closing(connect(server, credentials)) as connection:
        try:
            found: datetime = rows_of(connection, "SELECT UTC_TIMESTAMP(6)")[0][0]
        except pymysql.MySQLError as error:
            raise translated(error, connection) from error
        return found.replace(tzinfo=UTC)


def judge_clock(clock: datetime, now: datetime, name: str = "the server") -> Finding:
    """Compare a server's clock with this machine's.

    Args:
        clock: time of the server (UTC), just read.
        now: by this machine's clock (UTC).
        name: of the server, for the message.
    """
    apart = clock - now
    seconds = abs(apart.total_seconds())
    if abs(apart) <= TOLERATED:
        return Finding("ok", f"{name}'s clock and this machine's agree")
    side = "ahead of" if apart > timedelta() else "slower than"
    return Finding(
        "warning",
        f"{name}'s clock is {seconds:.0f} seconds {side} this machine's",
        "Set both by NTP. Until then, times for cdc cursor locate, cdc cursor rewind and start: are by the server's clock.",
    )
