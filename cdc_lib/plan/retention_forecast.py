"""When a server may purge the cursor's binlog file: a pure forecast from server facts.

By age: MySQL and MariaDB purge, oldest first, at start-up and whenever the binlog is rotated or flushed, each file that was
last written longer ago than the retention, never the one that is being written (MySQL reference manual,
``binlog_expire_logs_seconds`` and ``binlog_expire_logs_auto_purge``; MariaDB, ``binlog_expire_logs_seconds`` and
``expire_logs_days``; both compare the modification time of the file, ``purge_logs_before_date`` in ``sql/binlog.cc`` and
``sql/log.cc``). So the end of a file counts.

By size: MariaDB 11.4 and Percona Server drop the oldest files while all of them together are larger than
``max_binlog_total_size`` or ``binlog_space_limit``, also before their retention ends.

Approximations: a file is assumed to end when the next one was created, which is later if the server was down in between.
The server purges at the next rotation after ``expires_at``, and waits for connected replicas (MariaDB also for
``slave_connections_needed_for_purge`` of them): both leave more time than forecast here. PURGE BINARY LOGS by hand, or by the
rules of a managed service, is not forecast.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from cdc_lib.model.position import Position, file_number
from cdc_lib.model.retention_forecast import BinlogExpiry, FileTimes, RetentionForecast
from cdc_lib.plan.windows import bytes_between


def retention_forecast(
    position: Position,
    files: Sequence[tuple[str, int]],
    binlog_end: Position,
    expiry: BinlogExpiry,
    times: FileTimes,
    *,
    rate: float | None,
) -> RetentionForecast:
    """Return how long the server still keeps the binlog after a position.

    Args:
        position: of the cursor.
        files: binlog files and their sizes, oldest first.
        binlog_end: end of the binlog.
        expiry: the server's retention settings.
        times: of the cursor's file.
        rate: bytes per second at which a backlog is drained; None if unknown.
    """
    backlog = bytes_between(position, files, binlog_end)
    catch_up = backlog / rate if rate else None
    if position.file not in dict(files):
        return RetentionForecast(
            position, backlog, expiry.seconds, None, 0.0, False, rate, catch_up, None, None, purged=True
        )
    last = files[-1][0] == position.file
    expires_at = seconds_left = None
    end = times.now if last else times.ended
    if expiry.seconds is not None and end is not None and not expiry.unknown:
        expires_at = end + timedelta(seconds=expiry.seconds)
        seconds_left = max(0.0, (expires_at - times.now).total_seconds())
    room, room_seconds = _room(position, files, expiry, times)
    return RetentionForecast(
        position, backlog, expiry.seconds, expires_at, seconds_left, last, rate, catch_up, room, room_seconds,
        unknown=expiry.unknown,
    )  # fmt: skip


def _room(
    position: Position, files: Sequence[tuple[str, int]], expiry: BinlogExpiry, times: FileTimes
) -> tuple[int | None, float | None]:
    """Return how many bytes may be written before the size limit purges the cursor's file, and how long that takes."""
    if expiry.total_bytes is None:
        return None, None
    from_here = sum(size for name, size in files if file_number(name) >= position.file_number)
    room = max(0, expiry.total_bytes - from_here)
    seconds = (times.now - times.made).total_seconds() if times.made is not None else 0.0
    if room == 0:
        return 0, 0.0
    return room, room * seconds / from_here if seconds > 0 and from_here > 0 else None
