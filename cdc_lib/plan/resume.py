"""Where to continue with a cursor at the connected server: a pure decision that covers every case.

The server may be the cursor's, or another one at the same address. It may have been restored from a backup, or its binlog reset:
that is another binlog under the same name. It may have purged what is needed. With GTIDs the position is known exactly;
without them it is found by time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Literal

from cdc_lib.binlog.framing.damaged_file import continue_in
from cdc_lib.errors import (
    PositionNotFound,
    PositionPurged,
    ReplicatedChangesNotLogged,
    ServerChanged,
    SourceError,
    TransactionsMissing,
)
from cdc_lib.model.commit import Commit
from cdc_lib.model.cursor import Cursor
from cdc_lib.model.gtid import GtidSet
from cdc_lib.model.missing_transactions import MissingTransactions
from cdc_lib.model.pace import duration
from cdc_lib.model.position import file_number
from cdc_lib.model.server_facts import ServerState

OnMissingTransactions = Literal["fail", "ignore", "ask"]


@dataclass(frozen=True, slots=True)
class Initial:
    """There is no cursor: start as the source file says."""


@dataclass(frozen=True, slots=True)
class Resume:
    """Continue at the cursor's position."""


@dataclass(frozen=True, slots=True)
class ByGtid:
    """A new epoch that starts at the first transaction outside the GTID set.

    Args:
        gtids: the set.
        why: the reason, for messages.
        last: as in :class:`Fallback`, where transactions without GTIDs are found near that transaction; None if unknown.
    """

    gtids: GtidSet
    why: str
    last: Commit | None = None


@dataclass(frozen=True, slots=True)
class Fallback:
    """A new epoch that starts before everything unread.

    Args:
        last: the last commit read minus the fallback interval, by the clock of the server that committed it.
        gtids: those of the cursor that the new server has; None if GTIDs do not show what was read.
        why: the reason, for messages.
    """

    last: Commit
    gtids: GtidSet | None
    why: str


@dataclass(frozen=True, slots=True)
class Refuse:
    """The cursor cannot continue at this server."""

    error: SourceError


Decision = Initial | Resume | ByGtid | Fallback | Refuse


@dataclass(frozen=True, slots=True)
class FailoverRules:
    """The failover settings of the source file.

    Args:
        fallback: how far to go back if GTIDs do not give the position.
        on_missing_transactions: what to do if the new server never had some of the transactions that were read.
        accepted: those with which a person decided to continue; None if nobody was asked.
    """

    fallback: timedelta
    on_missing_transactions: OnMissingTransactions
    accepted: MissingTransactions | None = None

    def accept(self, server: ServerState, missing: GtidSet) -> bool:
        """Whether to continue at a server that never had some transactions."""
        if self.on_missing_transactions == "ignore":
            return True
        return self.accepted is not None and self.accepted.cover(server.identity, missing)


def decide(cursor: Cursor | None, server: ServerState, rules: FailoverRules) -> Decision:
    """Decide where to continue.

    Args:
        cursor: the drain cursor; None before the first plan.
        server: the connected server.
        rules: of the source file.
    """
    if cursor is None:
        return Initial()
    if cursor.identity.flavor != server.identity.flavor:
        return Refuse(_another(cursor, server, "Positions, GTIDs and row images of MySQL and MariaDB differ."))
    if not cursor.identity.is_same_server(server.identity):
        return _at_another_server(cursor, server, rules)
    fault = _another_binlog(cursor, server)
    if fault:
        return _at_another_binlog(cursor, server, fault)
    if cursor.position.file not in dict(server.files):
        return _after_a_purge(cursor, server, rules)
    return Resume()


def _after_a_purge(cursor: Cursor, server: ServerState, rules: FailoverRules) -> Decision:
    """Go on if the purged files hold the transactions that were read, and no others: a server that was reset has other ones."""
    what, flavor = "the server no longer has the cursor's binlog file", cursor.identity.flavor
    gtids = GtidSet.parse(flavor, cursor.gtid_set)
    known = cursor.gtids_known and server.all_have_gtids
    if not (known and gtids and gtids == GtidSet.parse(flavor, server.gtid_purged)):
        return Refuse(_purged(cursor, server, what))
    return ByGtid(gtids, f"{what}, and all that was purged had been read", _last_less(cursor, rules.fallback))


def _another_binlog(cursor: Cursor, server: ServerState) -> str:
    """Return the evidence that the server's binlog is not the cursor's; empty if there is none."""
    at = cursor.position
    sizes = dict(server.files)
    numbers = [file_number(name) for name, _ in server.files]
    if at.file not in sizes:
        if at.file_number in numbers or not numbers:
            return f"its files are called otherwise than {at.file}" if numbers else "it has no files"
        return f"it ends at {server.files[-1][0]}, before {at.file}" if at.file_number > max(numbers) else ""
    if at.offset > sizes[at.file]:
        return f"{at.file} has only {sizes[at.file]} bytes"
    made = cursor.file_times.get(at.file)
    if made is not None and server.file_time is not None and made != server.file_time:
        return f"{at.file} was made at {server.file_time:%Y-%m-%d %H:%M:%S}, not at {made:%Y-%m-%d %H:%M:%S} UTC"
    return server.other_past


def _at_another_binlog(cursor: Cursor, server: ServerState, fault: str) -> Refuse:
    """Refuse the same server with another binlog: not even GTIDs help, because it may have assigned them twice."""
    return Refuse(
        PositionNotFound(
            f"the server's binlog is not the one that the cursor is in: {fault}",
            hint="The server was reverted to an earlier state, or its binlog was reset, and changes may be missing on either side. "
            f"{_continue(cursor, server)}. If you know that none are missing, the rewind is enough.",
            **_context(cursor, server),
        )
    )


def _at_another_server(cursor: Cursor, server: ServerState, rules: FailoverRules) -> Decision:
    what = f"{server.identity} answers instead of {cursor.identity}"
    if not server.logs_replicated:
        return Refuse(
            ReplicatedChangesNotLogged(
                f"{what}, and its binlog lacks the changes that it replicated",
                hint="It ran with log_replica_updates=OFF (log_slave_updates). Fail over to a server with ON; or set it to ON here, "
                f"restart the server, and read all tables again. {_continue(cursor, server)}.",
                **_context(cursor, server),
            )
        )
    lost = _lost_transactions(cursor, server)
    if isinstance(lost, Refuse):
        return lost
    if lost is not None and not lost:
        return ByGtid(GtidSet.parse(server.identity.flavor, cursor.gtid_set), what, _last_less(cursor, rules.fallback))
    if lost is not None and not rules.accept(server, lost):
        return Refuse(_missing(cursor, server, lost, what, rules))
    last = _last_less(cursor, rules.fallback)
    if last is None:
        return Refuse(_another(cursor, server, "It is unknown when the last transaction before the cursor committed."))
    why = what if lost is None else f"{what}; accepted that it never had {str(lost)[:200]}"
    gtids = (
        None
        if lost is None
        else GtidSet.parse(server.identity.flavor, cursor.gtid_set).common(
            GtidSet.parse(server.identity.flavor, server.gtid_set)
        )
    )
    return Fallback(last, gtids, why)


def _missing(
    cursor: Cursor, server: ServerState, lost: GtidSet, what: str, rules: FailoverRules
) -> TransactionsMissing:
    identity = server.identity
    if rules.on_missing_transactions == "ask":
        way_out = (
            f"Else approve it in Airflow, where the plan of {cursor.source} asks; or run cdc cursor failover {cursor.source} "
            f"--to {identity.host}:{identity.port} --accept-missing with these transactions"
        )
    else:
        way_out = "Else set failover.on_missing_transactions: ignore in the source file"
    return TransactionsMissing(
        f"{what}, and it never had transactions that were read: {str(lost)[:200]}",
        hint=f"A standby that still catches up gets them, and the next plan continues. {way_out}: "
        "the lake may hold rows of them that no server has any more. After the next plan, "
        f"cdc snapshot {cursor.source} '*.*' replaces those rows.",
        **_context(cursor, server),
        server=str(identity),
        missing=str(lost),
    )


def _last_less(cursor: Cursor, fallback: timedelta) -> Commit | None:
    """Return the last commit that was read, minus the fallback interval; None if its time is unknown."""
    if cursor.event_time is None:
        return None
    # A cursor that has read no transaction has the time when its file was created, by its server's clock.
    last = cursor.last or Commit(cursor.identity.server_id, cursor.event_time)
    return replace(last, time=last.time - fallback)


def _lost_transactions(cursor: Cursor, server: ServerState) -> GtidSet | Refuse | None:
    """Return the cursor's GTIDs that the server never had; None if GTIDs are unknown.

    With an empty set the position is known exactly.
    """
    if not (cursor.gtids_known and cursor.gtid_set and server.gtids_on):
        return None
    flavor = server.identity.flavor
    mine, executed = GtidSet.parse(flavor, cursor.gtid_set), GtidSet.parse(flavor, server.gtid_set)
    lost = executed.lacks(mine)
    if lost:
        return lost
    missing = mine.lacks(GtidSet.parse(flavor, server.gtid_purged))
    if missing:
        what = f"transactions after the cursor are in no binlog file of {server.identity}: {str(missing)[:200]}"
        return Refuse(_purged(cursor, server, what))
    return lost


def _purged(cursor: Cursor, server: ServerState, what: str) -> PositionPurged:
    oldest = server.files[0][0] if server.files else "none"
    missed = ""
    if server.oldest_time is not None and cursor.event_time is not None:
        seconds = (server.oldest_time - cursor.event_time).total_seconds()
        missed = f", made {duration(seconds)} after the last change that was read" if seconds > 0 else ""
    return PositionPurged(
        f"{what}; its oldest is {oldest}{missed}",
        hint=f"The changes in between are lost. {_continue(cursor, server)}. And raise the server's retention "
        "(binlog_expire_logs_seconds).",
        **_context(cursor, server),
    )


def _continue(cursor: Cursor, server: ServerState) -> str:
    """Return the commands that continue at the oldest file of the server."""
    oldest = server.files[0][0] if server.files else "FILE"
    return f"Continue at its oldest file, with new snapshots of all tables: {continue_in(cursor.source, oldest)}"


def _another(cursor: Cursor, server: ServerState, why: str) -> ServerChanged:
    return ServerChanged(
        f"the cursor belongs to {cursor.identity}, but {server.identity} answers",
        hint=f"{why} Point the source file at the former server, start a new source with a snapshot, or cdc cursor rewind.",
        **_context(cursor, server),
    )


def _context(cursor: Cursor, server: ServerState) -> dict[str, str | None]:
    return {
        "source": cursor.source,
        "position": str(cursor.position),
        "last_change": cursor.event_time.isoformat() if cursor.event_time else None,
        "oldest": server.files[0][0] if server.files else None,
    }
