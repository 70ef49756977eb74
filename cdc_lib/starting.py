"""Where a source begins, and where it goes on when the server is not what its cursor remembers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from cdc_lib.config import Credentials, SourceConfig
from cdc_lib.config.start import StartAt
from cdc_lib.decode.file_head import FileHead
from cdc_lib.errors import ConfigError, PositionNotFound, PositionPurged, ServerSwitched
from cdc_lib.model.cursor import DRAIN, Cursor, Move
from cdc_lib.model.gtid import GtidSet
from cdc_lib.model.place import Place
from cdc_lib.model.position import Position
from cdc_lib.model.results import Found
from cdc_lib.model.server import ServerState
from cdc_lib.seeking import Seeker
from cdc_lib.source.connect import can_be_reached
from cdc_lib.source.facts import ServerFacts
from cdc_lib.window.plan import bytes_between
from cdc_lib.window.start import ByGtid, Fallback, Refuse, Resume, SwitchRules, decide


@dataclass(frozen=True, slots=True)
class Starter:
    """Decides, and finds the place that was decided for.

    Args:
        config: of the source.
        credentials: log-in.
        facts: of the server that answers.
    """

    config: SourceConfig
    credentials: Credentials
    facts: ServerFacts
    _heads: dict[str, FileHead] = field(default_factory=dict)

    @property
    def seeker(self) -> Seeker:
        """What finds places on the server."""
        return Seeker(self.config.source, self.config.server, self.credentials, self.facts, self._heads)

    def begin(self, by: str) -> Cursor:
        """Return the drain cursor of a source that has none.

        Raises:
            SourceError: the server does not have the place that the source file names.
        """
        place = self._first_place()
        move = Move(datetime.now(UTC), "start", None, place.position, by, f"start: {self.config.start}")
        cursor = Cursor(self.config.source, DRAIN, 0, 1, place.identity, place.position, moves=(move,))
        return cursor.standing_at(place)

    def _first_place(self) -> Place:
        seeker, start = self.seeker, self.config.start
        if isinstance(start, StartAt):
            return self.find(start)
        return seeker.first() if start == "earliest" else seeker.at(seeker.end)

    def find(self, start: StartAt) -> Place:
        """Return the place that somebody named.

        Raises:
            SourceError: the server does not have it.
            ConfigError: it is no set of GTIDs of this server.
        """
        if start.timestamp is not None:
            return self.seeker.by_time(start.timestamp)
        if start.gtid is not None:
            return self.seeker.by_gtid(GtidSet.parse(self.facts.identity.flavor, start.gtid))
        return self.seeker.at(Position.parse(start.position or ""))

    def found(self, start: StartAt, cursor: Cursor | None) -> Found:
        """Return the place that somebody named, and how far it is from the cursor and from the end of the binlog."""
        place, files, head = self.find(start), self.facts.files, self.seeker.end
        if cursor is None or not cursor.identity.is_same_server(place.identity):
            return Found(place, head, bytes_between(place.position, files, head), None, None)
        here = cursor.position
        back = bytes_between(place.position, files, here) - bytes_between(here, files, place.position)
        return Found(place, head, bytes_between(place.position, files, head), here, back)

    def left_by(self, cursor: Cursor) -> StartAt:
        """Return the place that a cursor left at its last switch.

        Raises:
            ConfigError: there was none, or it lies on another server, or half of what lies before it was read again.
        """
        last = cursor.switches[-1] if cursor.switches else None
        left = last.left if last else None
        if last is None or left is None or not left.identity.is_same_server(self.facts.identity):
            raise ConfigError(
                f"the cursor left its last place on {left.identity}" if left else "the cursor was never moved by hand",
                hint="Name a place: --time, --gtid or --position; cdc cursor show tells all moves.",
                source=cursor.source,
            )
        if last.began.identity.is_same_server(left.identity) and last.began.position < cursor.position < left.position:
            raise ConfigError(
                f"the changes up to {left.position} are read again, and so far only those up to {cursor.position} were",
                hint="Rows that changed on both sides of that would stay as the first half left them. Let the runs go on: "
                "they come to that place by themselves.",
                source=cursor.source,
            )
        return StartAt(position=str(left.position))

    def go_on(self, cursor: Cursor, acknowledged: Callable[[Cursor], Cursor], by: str) -> Cursor:
        """Return the cursor as it goes on at this server: itself, or in a new epoch.

        Args:
            cursor: the drain cursor.
            acknowledged: moves it over what is durable of what it has in flight; called before an epoch ends.
            by: who asks.

        Raises:
            ServerSwitched: another server answers, and the cursor cannot go on there.
            PositionPurged: the server no longer has what comes next.
            PositionNotFound: its binlog is not the one that the cursor stands in.
        """
        rules, state = self._rules, self._state(cursor)
        if not isinstance(decide(cursor, state, rules), Resume):
            cursor = acknowledged(cursor)
        match decide(cursor, state, rules):
            case Refuse(error):
                raise error
            case ByGtid(gtids, why):
                place, how = self.seeker.by_gtid(gtids), "found by GTIDs"
            case Fallback(time, why):
                place, how = (
                    self._fallback(cursor, time),
                    f"found by time, strictly before {time:%Y-%m-%d %H:%M:%S} UTC",
                )
            case _:
                return self._known(replace(cursor, identity=self.facts.identity))
        return cursor.switched(place, "switch", at=datetime.now(UTC), by=by, why=f"{why}; {how}")

    def check_resumable(self, cursor: Cursor) -> None:
        """Refuse a cursor that cannot go on where it stands, in its epoch.

        Raises:
            ServerSwitched: another server answers.
            PositionPurged: the server no longer has what comes next.
            PositionNotFound: its binlog is not the one that the cursor stands in.
        """
        decision = decide(cursor, self._state(cursor), self._rules)
        if isinstance(decision, Refuse):
            raise decision.error
        if not isinstance(decision, Resume):
            raise ServerSwitched(
                f"the cursor belongs to {cursor.identity}, but {self.facts.identity} answers",
                hint="The next plan goes over to it; try again after that.",
                source=cursor.source,
            )

    @property
    def _rules(self) -> SwitchRules:
        switch = self.config.switch
        return SwitchRules(timedelta(seconds=switch.fallback_interval), switch.lost_transactions)

    def _fallback(self, cursor: Cursor, time: datetime) -> Place:
        try:
            return self.seeker.by_time(time)
        except PositionNotFound as error:
            raise PositionPurged(
                f"another server answers, and its binlog does not go back to the cursor: {error.message}",
                hint=f"Take a new snapshot: a new source; or leave changes out knowingly: cdc rewind {cursor.source}.",
                source=cursor.source,
                position=str(cursor.position),
            ) from error

    def _known(self, cursor: Cursor) -> Cursor:
        """Fill in what the cursor does not know of its place: documents of older releases, and transactions without GTIDs."""
        on = self._gtids_on
        if cursor.in_flight or (cursor.file_times.get(cursor.position.file) and (cursor.gtids_known or not on)):
            return cursor
        place = self.seeker.at(cursor.position)
        if place.position != cursor.position:
            return cursor
        known = cursor.standing_at(place)
        return known if cursor.event_time is None else _with_time(known, cursor.event_time)

    def with_file_times(self, cursor: Cursor, files: Iterable[str]) -> Cursor:
        """Note when files were made, so that a reset binlog is known by it."""
        times = {file: self.seeker.head_of(file).time for file in files if file not in cursor.file_times}
        return cursor.with_file_times(times) if times else cursor

    @property
    def _gtids_on(self) -> bool:
        return self.facts.identity.flavor == "mariadb" or self.facts.variables.get("gtid_mode", "OFF").upper() == "ON"

    def _state(self, cursor: Cursor) -> ServerState:
        seeker, facts = self.seeker, self.facts
        names = seeker.files
        same = facts.identity.is_same_server(cursor.identity)
        has_file = same and cursor.position.file in names
        purged = facts.gtid_purged
        if facts.identity.flavor == "mariadb" and names and not same:
            purged = str(seeker.before(names[0]))
        return ServerState(
            facts.identity,
            facts.files,
            self._gtids_on,
            facts.gtid_set,
            purged,
            seeker.head_of(cursor.position.file).time if has_file else None,
            None if has_file or not names else seeker.head_of(names[0]).time,
        )


def _with_time(cursor: Cursor, time: datetime) -> Cursor:
    return cursor.standing_at(cursor.place.at_time(time))


def address_of(config: SourceConfig, cursor: Cursor | None) -> tuple[str, int]:
    """Return where the cursor's server is, if the source file still names it, else the first one there."""
    known = (cursor.identity.host, cursor.identity.port) if cursor else None
    return known if known is not None and known in config.addresses else config.addresses[0]


def reachable(config: SourceConfig, credentials: Credentials, address: tuple[str, int]) -> tuple[str, int]:
    """Return the first server that can be reached, from one on; never one before it.

    A server that was given up may have changes of its own: going back to it is for a person to say.
    """
    candidates = config.addresses[config.addresses.index(address) :]
    for candidate in candidates[:-1]:
        if can_be_reached(config.at(*candidate).server, credentials, config.switch):
            return candidate
    return candidates[-1]
