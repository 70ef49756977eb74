"""When a server may purge the file that a cursor is in: a pure decision over what it says of itself.

By age: MySQL and MariaDB purge, oldest first, at start-up and whenever the binlog is rotated or flushed, each file that was
last written longer ago than the retention, never the one that is being written (MySQL reference manual,
``binlog_expire_logs_seconds`` and ``binlog_expire_logs_auto_purge``; MariaDB, ``binlog_expire_logs_seconds`` and
``expire_logs_days``; both compare the modification time of the file, ``purge_logs_before_date`` in ``sql/binlog.cc`` and
``sql/log.cc``). So it is the end of a file that counts.

By size: MariaDB 11.4 and Percona Server drop the oldest files while all of them together are larger than
``max_binlog_total_size`` or ``binlog_space_limit``, also in the middle of a retention.

What is approximate: a file is taken to end when the next one was made, which is later where the server was down in between.
The server purges at the next rotation after ``expires_at``, and waits for connected replicas (MariaDB also for
``slave_connections_needed_for_purge`` of them): both leave more time than is told here. PURGE BINARY LOGS by hand, or by the
rules of a service that hosts the server, is not foreseen.
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
    keeping: BinlogExpiry,
    times: FileTimes,
    *,
    rate: float | None,
) -> RetentionForecast:
    """Tell how long the server still keeps what comes next.

    Args:
        position: of the cursor.
        files: binlog files and their sizes, oldest first.
        binlog_end: end of the binlog.
        keeping: what makes the server purge files.
        times: of the cursor's file.
        rate: bytes per second at which a backlog is drained; None when nothing tells.
    """
    behind = bytes_between(position, files, binlog_end)
    catch_up = behind / rate if rate else None
    if position.file not in dict(files):
        return RetentionForecast(
            position, behind, keeping.seconds, None, 0.0, False, rate, catch_up, None, None, purged=True
        )
    last = files[-1][0] == position.file
    expires_at = left = None
    end = times.now if last else times.ended
    if keeping.seconds is not None and end is not None and not keeping.unknown:
        expires_at = end + timedelta(seconds=keeping.seconds)
        left = max(0.0, (expires_at - times.now).total_seconds())
    room, room_seconds = _room(position, files, keeping, times)
    return RetentionForecast(
        position, behind, keeping.seconds, expires_at, left, last, rate, catch_up, room, room_seconds,
        unknown=keeping.unknown,
    )  # fmt: skip


def _room(
    position: Position, files: Sequence[tuple[str, int]], keeping: BinlogExpiry, times: FileTimes
) -> tuple[int | None, float | None]:
    """Return what may still be written before the size limit takes the cursor's file, and how long that takes."""
    if keeping.total_bytes is None:
        return None, None
    from_here = sum(size for name, size in files if file_number(name) >= position.file_number)
    room = max(0, keeping.total_bytes - from_here)
    seconds = (times.now - times.made).total_seconds() if times.made is not None else 0.0
    if room == 0:
        return 0, 0.0
    return room, room * seconds / from_here if seconds > 0 and from_here > 0 else None
