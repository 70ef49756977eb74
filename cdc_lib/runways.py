"""How long the server still keeps what the drain cursor needs next: asks for what the decision in ``window/runway.py`` rests on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from uuid import uuid4

from cdc_lib.config import Credentials, SourceConfig
from cdc_lib.decode.file_head import read_file_head
from cdc_lib.errors import DecodeError, SourceError
from cdc_lib.model.cursor import Cursor
from cdc_lib.model.position import FIRST_EVENT_OFFSET, Position
from cdc_lib.model.runway import Runway
from cdc_lib.source.facts import ServerFacts
from cdc_lib.source.keeping import keeping_of
from cdc_lib.source.preflight import Finding
from cdc_lib.source.runway import judge_runway
from cdc_lib.source.stream import binlog_dump
from cdc_lib.window.drain_rate import drain_rate
from cdc_lib.window.runway import runway


@dataclass(frozen=True, slots=True)
class Outlook:
    """A runway and what there is to say of it."""

    runway: Runway
    finding: Finding

    @property
    def warning(self) -> str:
        """What is to be told even to those who did not ask; empty when all is well."""
        return "" if self.finding.level == "ok" else f"{self.finding.what}. {self.finding.mend}"


def look_ahead(
    config: SourceConfig, credentials: Credentials, facts: ServerFacts, cursor: Cursor | None
) -> Outlook | None:
    """Return the runway of the drain cursor; None before the first plan, and at a server that it does not stand on.

    A server that does not let its files be read leaves the runway unknown; it is no error here.
    """
    if cursor is None or facts.head is None or not facts.identity.is_same_server(cursor.identity):
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
    found = runway(
        at, facts.files, facts.head, keeping,
        made=cursor.file_times.get(at.file), ended=ended, now=facts.clock, rate=drain_rate(cursor.moves, facts.files),
    )  # fmt: skip
    return Outlook(found, judge_runway(facts, keeping, found, config.runway_warning))


def _made(config: SourceConfig, credentials: Credentials, facts: ServerFacts, file: str) -> datetime:
    """Return when a file was made. Others may look at the same moment: each looks as a replica of its own."""
    start = Position(file, FIRST_EVENT_OFFSET)
    with binlog_dump(config.server, credentials, facts.identity, start, f"runway {uuid4().hex}") as stream:
        return read_file_head(stream, facts.identity.flavor, file).time
