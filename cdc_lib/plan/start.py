"""Where a source starts, and where it continues when another server answers."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from cdc_lib.binlog.framing.damaged_file import continue_in
from cdc_lib.binlog.framing.file_header import FileHeader
from cdc_lib.binlog.framing.last_transaction import other_past
from cdc_lib.config.start import StartAt
from cdc_lib.errors import (
    AnonymousNotSent,
    ConfigError,
    DecodeError,
    PositionNotFound,
    PositionPurged,
    ServerChanged,
    SourceError,
)
from cdc_lib.model.binlog_checkpoint import BinlogCheckpoint
from cdc_lib.model.commit import Commit
from cdc_lib.model.cursor import DRAIN, Cursor, Move
from cdc_lib.model.gtid import GtidSet
from cdc_lib.model.missing_transactions import MissingTransactions
from cdc_lib.model.position import Position
from cdc_lib.model.results import LocatedPosition
from cdc_lib.model.server_facts import ServerState
from cdc_lib.mysql.binlog_stream import binlog_dump
from cdc_lib.mysql.planned_server import refuse_unlogged
from cdc_lib.mysql.server_facts import ServerFacts
from cdc_lib.plan.locate import BinlogSearch, shortened
from cdc_lib.plan.resume import ByGtid, FailoverRules, Fallback, Refuse, Resume, decide
from cdc_lib.plan.windows import bytes_between, is_kept
from cdc_lib.source import Source


@dataclass(frozen=True, slots=True)
class Starter:
    """Decides where a source starts or continues, and finds that position.

    Args:
        source: the source.
        facts: of the connected server.
    """

    source: Source
    facts: ServerFacts
    _headers: dict[str, FileHeader] = field(default_factory=dict)

    @classmethod
    def of(cls, source: Source) -> Starter:
        """Ask the server of a source for its facts.

        Raises:
            SourceError: it cannot be reached.
        """
        return cls(source, source.facts())

    @property
    def search(self) -> BinlogSearch:
        """The search in the server's binlog."""
        return BinlogSearch(
            self.source.name, self.source.config.server, self.source.credentials, self.facts, self._headers
        )

    def begin(self, by: str) -> Cursor:
        """Return a new drain cursor for a source without one.

        Raises:
            SourceError: the server does not have the position that the source file names.
        """
        checkpoint = self._first_checkpoint()
        move = Move(datetime.now(UTC), "start", None, checkpoint.position, by, f"start: {self.source.config.start}")
        source_uuid = secrets.token_hex(8)
        cursor = Cursor(
            self.source.name,
            DRAIN,
            0,
            1,
            checkpoint.identity,
            checkpoint.position,
            moves=(move,),
            source_uuid=source_uuid,
        )
        return cursor.at_checkpoint(checkpoint)

    def _first_checkpoint(self) -> BinlogCheckpoint:
        search, start = self.search, self.source.config.start
        if isinstance(start, StartAt):
            return self.find(start)
        return search.first() if start == "earliest" else search.at(search.end)

    def find(self, start: StartAt) -> BinlogCheckpoint:
        """Return the position that a user named.

        Raises:
            SourceError: the server does not have it.
            ConfigError: it is not a GTID set of this server's flavor.
        """
        if start.timestamp is not None:
            return self.search.by_time(start.timestamp)
        if start.gtid is not None:
            return self.search.by_gtid(GtidSet.parse(self.facts.identity.flavor, start.gtid))
        return self.search.at(Position.parse(start.position or ""))

    def locate(self, start: StartAt, cursor: Cursor | None) -> LocatedPosition:
        """Return the position that a user named, and its distances to the cursor and to the end of the binlog."""
        checkpoint, files, binlog_end = self.find(start), self.facts.files, self.search.end
        if cursor is None or not cursor.identity.is_same_server(checkpoint.identity):
            return LocatedPosition(
                checkpoint, binlog_end, bytes_between(checkpoint.position, files, binlog_end), None, None
            )
        here = cursor.position
        back = None
        if is_kept(here, files):
            back = bytes_between(checkpoint.position, files, here) - bytes_between(here, files, checkpoint.position)
        return LocatedPosition(
            checkpoint, binlog_end, bytes_between(checkpoint.position, files, binlog_end), here, back
        )

    def previous_position(self, cursor: Cursor) -> StartAt:
        """Return the cursor's position before its last epoch change.

        Raises:
            ConfigError: there was none, it is on another server, or only half of the changes before it were read again.
        """
        last = cursor.epoch_changes[-1] if cursor.epoch_changes else None
        previous = last.previous_end if last else None
        if last is None or previous is None or not previous.identity.is_same_server(self.facts.identity):
            raise ConfigError(
                f"the cursor's previous position is on another server, {previous.identity}"
                if previous
                else "the cursor was never moved by hand",
                hint="Name a position: --time, --gtid or --position; cdc cursor show lists all moves.",
                source=cursor.source,
            )
        if (
            last.new_start.identity.is_same_server(previous.identity)
            and last.new_start.position < cursor.position < previous.position
        ):
            raise ConfigError(
                f"changes up to {previous.position} must be read again, and only those up to {cursor.position} have been read",
                hint="Rows that changed on both sides of that would stay as the first half left them. Let the runs continue: "
                "they reach that position without help.",
                source=cursor.source,
            )
        return StartAt(position=str(previous.position))

    def continued(
        self,
        cursor: Cursor,
        acknowledged: Callable[[Cursor], Cursor],
        by: str,
        accepted: MissingTransactions | None = None,
    ) -> Cursor:
        """Return the cursor that continues at this server: the same one, or one in a new epoch.

        Args:
            cursor: the drain cursor.
            acknowledged: moves it over the durable windows in flight; called before an epoch ends.
            by: who requests it.
            accepted: transactions that the server may lack, because a person decided so.

        Raises:
            TransactionsMissing: another server answers, and it never had transactions that were read.
            ServerChanged: another server answers, and the cursor cannot continue there.
            PositionPurged: the server no longer has what comes next.
            PositionNotFound: its binlog is not the one that the cursor is in.
            ReplicatedChangesNotLogged: its binlog lacks changes that it replicates.
        """
        refuse_unlogged(self.facts, cursor.source)
        rules, state = replace(self._rules, accepted=accepted), self._state(cursor)
        if not isinstance(decide(cursor, state, rules), Resume):
            cursor = acknowledged(cursor)
        match decide(cursor, state, rules):
            case Refuse(error):
                raise error
            case ByGtid(gtids, why, last):
                checkpoint, how = self._by_gtids(cursor, gtids, last)
            case Fallback(last, gtids, why):
                checkpoint, how = self._fallback(cursor, last, gtids)
            case _:
                return self._completed(replace(cursor, identity=self.facts.identity))
        return cursor.with_new_epoch(checkpoint, "failover", at=datetime.now(UTC), by=by, why=f"{why}; {how}")

    def check_resumable(self, cursor: Cursor) -> None:
        """Refuse a cursor that cannot continue in its epoch.

        Raises:
            ServerChanged: another server answers.
            PositionPurged: the server no longer has what comes next.
            PositionNotFound: its binlog is not the one that the cursor is in.
            ReplicatedChangesNotLogged: its binlog lacks changes that it replicates.
        """
        refuse_unlogged(self.facts, cursor.source)
        decision = decide(cursor, self._state(cursor), self._rules)
        if isinstance(decision, Refuse):
            raise decision.error
        if isinstance(decision, ByGtid | Fallback):
            raise ServerChanged(
                f"the cursor continues in a new epoch: {decision.why}",
                hint=f"Run cdc step plan {cursor.source} first: it begins the epoch.",
                source=cursor.source,
            )

    def refusal(self, cursor: Cursor) -> SourceError | None:
        """Return why a cursor cannot continue at this server, not even in a new epoch; None if it can."""
        decision = decide(cursor, self._state(cursor), self._rules)
        return decision.error if isinstance(decision, Refuse) else None

    @property
    def _rules(self) -> FailoverRules:
        failover = self.source.config.failover
        return FailoverRules(failover.fallback_interval, failover.on_missing_transactions)

    def _by_gtids(self, cursor: Cursor, gtids: GtidSet, last: Commit | None) -> tuple[BinlogCheckpoint, str]:
        """Return the first transaction outside a GTID set, and how it was found.

        Where transactions without GTIDs are found near it, GTIDs do not show which of them were read: the time counts as well.
        """
        search = self.search
        boundary = search.boundary_of(gtids)
        purged = search.may_lack_anonymous(gtids)
        if last is not None and (boundary.anonymous or purged):
            return self._fallback(cursor, last, None if purged else gtids)
        checkpoint = search.checkpoint(boundary)
        return checkpoint, "found by GTIDs" + _read_again(checkpoint, gtids)

    def _fallback(self, cursor: Cursor, last: Commit, gtids: GtidSet | None) -> tuple[BinlogCheckpoint, str]:
        """Return a position before everything unread, and how it was found.

        GTIDs give the position if known; going back further only repairs rows that lost transactions changed.
        """
        exact = self.search.by_gtid(gtids) if gtids is not None else None
        clock = f"before {last.time:%Y-%m-%d %H:%M:%S} UTC by the clock of server {last.server_id}"
        try:
            checkpoint = self.search.by_commit(last)
        except PositionNotFound as error:
            if exact is not None:
                return exact, "found by GTIDs"
            raise PositionPurged(
                f"another server answers, and its binlog does not go back to the cursor: {error.message}",
                hint="Continue at its oldest file, with new snapshots of all tables: "
                f"{continue_in(cursor.source, self.facts.files[0][0])}.",
                source=cursor.source,
                position=str(cursor.position),
            ) from error
        if exact is not None and exact.position < checkpoint.position:
            return exact, "found by GTIDs"
        return checkpoint, f"found by commit times, {clock}"

    def _completed(self, cursor: Cursor) -> Cursor:
        """Return the cursor with the file times and GTIDs of its position, if it lacks them."""
        if cursor.in_flight or (cursor.file_times.get(cursor.position.file) and not self._gtids_may_be_known(cursor)):
            return cursor
        try:
            checkpoint = self.search.at(cursor.position)
        except AnonymousNotSent:  # before the cursor: those after it are refused when they are read
            return cursor
        if checkpoint.position != cursor.position:
            return cursor
        known = cursor.at_checkpoint(checkpoint)
        known = replace(known, last_transaction=cursor.last_transaction)
        return known if cursor.event_time is None else replace(known, event_time=cursor.event_time)

    def _gtids_may_be_known(self, cursor: Cursor) -> bool:
        """Whether a scan up to the cursor's position may show its GTIDs, which are unknown.

        A file that begins with a transaction without a GTID is not scanned at each plan while more of them may be replicated.
        """
        if cursor.gtids_known or not self.facts.gtids_on:
            return False
        first = None if self.facts.all_have_gtids else self.search.header_of(cursor.position.file).first
        return first is None or not first.anonymous

    def with_file_times(self, cursor: Cursor, files: Iterable[str]) -> Cursor:
        """Return the cursor with the creation times of files, by which a reset binlog is detected."""
        times = {file: self.search.header_of(file).time for file in files if file not in cursor.file_times}
        return cursor.with_file_times(times) if times else cursor

    def _state(self, cursor: Cursor) -> ServerState:
        search, facts = self.search, self.facts
        names = search.files
        same = facts.identity.is_same_server(cursor.identity)
        has_file = same and cursor.position.file in names
        purged = facts.gtid_purged
        if facts.identity.flavor == "mariadb" and names and not has_file:
            purged = str(search.before(names[0]))
        return ServerState(
            facts.identity,
            facts.files,
            self.facts.gtids_on,
            facts.gtid_set,
            purged,
            search.header_of(cursor.position.file).time if has_file else None,
            None if has_file or not names else search.header_of(names[0]).time,
            facts.logs_replicated,
            self._other_past(cursor) if has_file else "",
            facts.all_have_gtids,
        )

    def _other_past(self, cursor: Cursor) -> str:
        """Return the evidence that the server has another transaction before the cursor; empty if none is seen, or it was purged."""
        last, facts = cursor.last_transaction, self.facts
        if last is None or last.before != cursor.position or last.position.file not in self.search.files:
            return ""
        source = self.source
        with binlog_dump(source.config.server, source.credentials, facts.identity, last.position) as stream:
            try:
                return other_past(stream, facts.identity.flavor, last)
            except AnonymousNotSent:
                return ""
            except (PositionNotFound, DecodeError) as error:
                return error.message


def _read_again(checkpoint: BinlogCheckpoint, gtids: GtidSet) -> str:
    """Return why transactions of a GTID set come after the place that was found for it; empty if none do."""
    before = GtidSet.parse(gtids.flavor, checkpoint.gtid_set)
    again = before.lacks(gtids)
    if not again:
        return ""
    return f", before transactions that only this server has, so that these are read again: {shortened(again)}"
