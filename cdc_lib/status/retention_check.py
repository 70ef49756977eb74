"""The finding about the time until the server purges what the drain needs next."""

from __future__ import annotations

from datetime import timedelta

from cdc_lib.model.finding import Finding
from cdc_lib.model.pace import counted
from cdc_lib.model.retention_forecast import BinlogExpiry, RetentionForecast
from cdc_lib.mysql.binlog_retention import enlarge, lengthen
from cdc_lib.mysql.server_facts import ServerFacts

_DRAIN = "Let the source drain. And on the server: "


def judge_retention(
    facts: ServerFacts, keeping: BinlogExpiry, forecast: RetentionForecast, warning: timedelta
) -> Finding:
    """Return a finding: a warning if little time is left or it is unknown, an error if the file is purged.

    Args:
        facts: facts of the server.
        keeping: its purge limits.
        forecast: forecast for the drain cursor.
        warning: warn below this time, and below three times the catch-up time.
    """
    file = f"{forecast.position.file}, where the drain cursor is"
    if forecast.purged:
        return Finding(
            "error", f"the server no longer has {file}", "Plan: it goes on if all of that file had been read, else its error names the ways out. " + _statement(facts, keeping, forecast)
        )  # fmt: skip
    if forecast.is_short(warning):
        return Finding(
            "warning",
            f"{_time_left(forecast)} {file}; {_backlog(forecast)}",
            _DRAIN + _statement(facts, keeping, forecast),
        )
    if forecast.unknown:
        hidden = "Ask who runs the server how long it keeps binlog files."
        hint = (
            hidden
            if keeping.seconds is None
            else "Look at the user's grants: REPLICATION SLAVE lets it read binlog files."
        )
        return Finding("warning", f"it is unknown when the server purges {file}: {forecast.unknown}", hint)
    if forecast.shortest is None:
        return Finding(
            "ok", f"the server does not purge {file} automatically, as far as it shows; {_backlog(forecast)}"
        )
    return Finding("ok", f"{_time_left(forecast)} {file}; {_backlog(forecast)}")


def _time_left(forecast: RetentionForecast) -> str:
    seconds = forecast.shortest or 0.0
    if forecast.room_seconds is not None and seconds == forecast.room_seconds:
        return f"by its size limit the server may purge in {_duration(seconds)}, at the pace at which it writes now,"
    if seconds == 0:
        return "with its next rotation the server may purge"
    return f"in {_duration(seconds)}{' at the earliest' if forecast.still_written else ''} the server may purge"


def _backlog(forecast: RetentionForecast) -> str:
    text = f"{forecast.pending_bytes / 2**20:.1f} MiB are not drained"
    if forecast.catch_up_seconds is None:
        return text
    return f"{text}, {_duration(forecast.catch_up_seconds)} of work at the rate of the last backlog"


def _statement(facts: ServerFacts, keeping: BinlogExpiry, forecast: RetentionForecast) -> str:
    by_size = forecast.room_seconds is not None and forecast.shortest == forecast.room_seconds
    if by_size or (keeping.seconds is None and keeping.size_variable):
        return enlarge(keeping)
    return lengthen(facts, keeping.seconds or 0.0)


def _duration(seconds: float) -> str:
    if seconds < 7200:
        return counted(round(seconds / 60), "minute")
    return f"{seconds / 3600:.1f} hours" if seconds < 172_800 else f"{seconds / 86_400:.1f} days"
