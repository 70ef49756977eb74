"""How long the server still keeps what the drain cursor needs next; ``cdc_lib/plan/retention_forecast.py`` decides."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from uuid import uuid4

from cdc_lib.binlog.framing.file_header import read_file_header
from cdc_lib.config import Credentials, SourceConfig
from cdc_lib.errors import DecodeError, SourceError
from cdc_lib.model.cursor import Cursor
from cdc_lib.model.finding import Finding
from cdc_lib.model.position import FIRST_EVENT_OFFSET, Position
from cdc_lib.model.retention_forecast import FileTimes, RetentionForecast
from cdc_lib.mysql.binlog_retention import keeping_of
from cdc_lib.mysql.binlog_stream import binlog_dump
from cdc_lib.mysql.server_facts import ServerFacts
from cdc_lib.plan.drain_rate import drain_rate
from cdc_lib.plan.retention_forecast import retention_forecast
from cdc_lib.status.retention_check import judge_retention


@dataclass(frozen=True, slots=True)
class Outlook:
    """A forecast and what there is to say of it."""

    forecast: RetentionForecast
    finding: Finding

    @property
    def warning(self) -> str:
        """What is to be told even to those who did not ask; empty when all is well."""
        return "" if self.finding.level == "ok" else f"{self.finding.what}. {self.finding.hint}"


def look_ahead(
    config: SourceConfig, credentials: Credentials, facts: ServerFacts, cursor: Cursor | None
) -> Outlook | None:
    """Return the forecast of the drain cursor; None before the first plan, and at a server that it does not stand on.

    A server that does not let its files be read leaves the forecast unknown; it is no error here.
    """
    if cursor is None or facts.binlog_end is None or not facts.identity.is_same_server(cursor.identity):
        return None
    keeping, at = keeping_of(facts), cursor.position
    names = [name for name, _ in facts.files]
    follower = names[names.index(at.file) + 1] if at.file in names[:-1] else ""
    ended = cursor.file_times.get(follower)
    if follower and ended is None and keeping.seconds is not None:
        try:
            ended = _made(config, credentials, facts, follower)
        except (SourceError, DecodeError) as error:
            keeping = replace(keeping, unknown=f"{follower} cannot be read: {error.message}")
    times, rate = FileTimes(cursor.file_times.get(at.file), ended, facts.clock), drain_rate(cursor.moves, facts.files)
    found = retention_forecast(at, facts.files, facts.binlog_end, keeping, times, rate=rate)
    return Outlook(found, judge_retention(facts, keeping, found, config.retention_warning))


def _made(config: SourceConfig, credentials: Credentials, facts: ServerFacts, file: str) -> datetime:
    """Return when a file was made. Others may look at the same moment: each looks as a replica of its own."""
    start = Position(file, FIRST_EVENT_OFFSET)
    with binlog_dump(config.server, credentials, facts.identity, start, f"forecast {uuid4().hex}") as stream:
        return read_file_header(stream, facts.identity.flavor, file).time
