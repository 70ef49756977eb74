"""How long the server still keeps the binlog that the drain needs next; ``cdc_lib/plan/retention_forecast.py`` decides."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from cdc_lib.binlog.framing.file_header import read_file_header
from cdc_lib.config import Credentials, SourceConfig
from cdc_lib.errors import DecodeError, SourceError
from cdc_lib.model.cursor import Cursor
from cdc_lib.model.finding import Finding
from cdc_lib.model.position import FIRST_EVENT_OFFSET, Position
from cdc_lib.model.retention_forecast import FileTimes, RetentionForecast
from cdc_lib.mysql.binlog_retention import binlog_expiry
from cdc_lib.mysql.binlog_stream import binlog_dump
from cdc_lib.mysql.server_facts import ServerFacts
from cdc_lib.plan.drain_rate import drain_rate
from cdc_lib.plan.retention_forecast import retention_forecast
from cdc_lib.status.retention_check import judge_retention


@dataclass(frozen=True, slots=True)
class Outlook:
    """A forecast and its finding."""

    forecast: RetentionForecast
    finding: Finding

    @property
    def warning(self) -> str:
        """The warning that other commands also print; empty if retention is long enough."""
        return "" if self.finding.level == "ok" else f"{self.finding.what}. {self.finding.hint}"


def look_ahead(
    config: SourceConfig, credentials: Credentials, facts: ServerFacts, cursor: Cursor | None
) -> Outlook | None:
    """Return the forecast for the drain cursor; None before the first plan, and at a server other than the cursor's.

    If the server does not allow reading its files, the forecast is unknown; that is no error here.
    """
    if cursor is None or facts.binlog_end is None or not facts.identity.is_same_server(cursor.identity):
        return None
    keeping, at = binlog_expiry(facts), cursor.position
    names = [name for name, _ in facts.files]
    follower = names[names.index(at.file) + 1] if at.file in names[:-1] else ""
    ended = cursor.file_times.get(follower)
    if follower and ended is None and keeping.seconds is not None:
        try:
            ended = _made(config, credentials, facts, follower)
        except (SourceError, DecodeError) as error:
            keeping = replace(keeping, unknown=f"{follower} cannot be read: {error.message}")
    times, rate = FileTimes(cursor.file_times.get(at.file), ended, facts.clock), drain_rate(cursor.moves, facts.files)
    forecast = retention_forecast(at, facts.files, facts.binlog_end, keeping, times, rate=rate)
    return Outlook(forecast, judge_retention(facts, keeping, forecast, config.retention_warning))


def _made(config: SourceConfig, credentials: Credentials, facts: ServerFacts, file: str) -> datetime:
    """Return when a file was created. Each reader is a separate replica, because others may read at the same time."""
    start = Position(file, FIRST_EVENT_OFFSET)
    with binlog_dump(config.server, credentials, facts.identity, start) as stream:
        return read_file_header(stream, facts.identity.flavor, file).time
