"""Which prepared XA transactions the windows of a merge commit, and which stay open after it.

A commit finds its rows by the id of its transaction: at the last XA PREPARE of that id, in the same window or in one that was
merged long ago. An id can be used again after its decision, but never by two open transactions at once. If an epoch goes back
in the same binlog, or by GTIDs in that of another server, transactions that were prepared after its start are read again, and are not
open until then.

A rollback may be followed by a commit of the same transaction: InnoDB does not flush a rollback, so a server that crashed may have the
transaction open again although its binlog says XA ROLLBACK (seen with MariaDB 11.4, often). The last decision is what happened.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from cdc_lib.errors import MergeError
from cdc_lib.model.cursor import EpochChange
from cdc_lib.model.manifest import Manifest
from cdc_lib.model.position import Point, Position
from cdc_lib.model.xa import Decision, OpenTransaction, Prepared, is_from


@dataclass(frozen=True, slots=True)
class XaCommit:
    """An XA COMMIT and the location of its transaction's rows.

    Args:
        decision: the XA COMMIT.
        epoch: epoch of its window.
        prepared: the transaction.
        manifest: key of the manifest of the batch that holds the rows.
    """

    decision: Decision
    epoch: int
    prepared: Prepared
    manifest: str

    @property
    def point(self) -> Point:
        """Point of the rows in the order of changes."""
        return Point.at(self.epoch, self.decision.position)


@dataclass(frozen=True, slots=True)
class Settlement:
    """The decisions on prepared transactions in a run of windows.

    Args:
        commits: by key of the window's manifest, the transactions that it commits, in order.
        open: transactions that are prepared and not decided at the end, by xid.
        unknown: commits, with their epoch, of transactions without a known XA PREPARE.
    """

    commits: Mapping[str, tuple[XaCommit, ...]]
    open: tuple[OpenTransaction, ...]
    unknown: tuple[tuple[int, Decision], ...]


def settle(before: Iterable[OpenTransaction], windows: Iterable[tuple[str, Manifest]]) -> Settlement:
    """Match the decisions of windows with prepared transactions.

    Args:
        before: transactions that are open at the start of the first window.
        windows: key and manifest of each window, in the stream's order.
    """
    opened = {transaction.prepared.xid: transaction for transaction in before}
    rolled_back: dict[str, OpenTransaction] = {}
    commits: dict[str, tuple[XaCommit, ...]] = {}
    unknown: list[tuple[int, Decision]] = []
    for key, manifest in windows:
        found: list[XaCommit] = []
        opened = {xid: one for xid, one in opened.items() if not _is_read_again(one, manifest)}
        rolled_back = {xid: one for xid, one in rolled_back.items() if not _is_read_again(one, manifest)}
        for event in _in_order(manifest):
            if isinstance(event, Prepared):
                opened[event.xid] = OpenTransaction(key, event, manifest.epoch, manifest.identity)
                rolled_back.pop(event.xid, None)
                continue
            transaction = opened.pop(event.xid, None) or rolled_back.pop(event.xid, None)
            if not event.committed:
                if transaction is not None:
                    rolled_back[event.xid] = transaction
                continue
            if transaction is None:
                unknown.append((manifest.epoch, event))
            elif transaction.prepared.tables:
                found.append(XaCommit(event, manifest.epoch, transaction.prepared, transaction.manifest))
        if found:
            commits[key] = tuple(found)
    return Settlement(commits, tuple(opened[xid] for xid in sorted(opened)), tuple(unknown))


def not_replayed(
    unknown: Sequence[tuple[int, Decision]], epoch_changes: Iterable[EpochChange]
) -> tuple[tuple[int, Decision], ...]:
    """Leave out commits that were merged in an earlier epoch.

    An epoch begins before the end of the previous one, so a merged XA COMMIT is read again; its XA PREPARE may be before the
    epoch's start. The commit is recognized by its GTID, or without one by its time.

    Args:
        unknown: unknown commits of a :class:`Settlement`.
        epoch_changes: epoch changes of the drain cursor.
    """
    ends = [(epoch_change.epoch, epoch_change.previous_end) for epoch_change in epoch_changes]
    return tuple(
        (epoch, decision)
        for epoch, decision in unknown
        if not any(began <= epoch and end.has(decision.gtid, decision.time) for began, end in ends)
    )


def check_in_snapshots(unknown: Sequence[tuple[int, Decision]], first_reads: Sequence[Point], source: str) -> None:
    """Refuse a commit whose rows are neither in a batch nor in a snapshot.

    The rows of a transaction that was prepared before the source began are in no batch. They are in the lake anyway if the
    newest snapshot of every table began to read after the commit.

    Args:
        unknown: commits of transactions that no batch holds, each with its epoch.
        first_reads: for each table a position before its newest snapshot; empty without snapshots.
        source: name of the source.

    Raises:
        MergeError: a commit is after the start of a snapshot, or there is no snapshot.
    """
    for epoch, decision in unknown:
        if not first_reads or Point.at(epoch, decision.position) >= min(first_reads):
            raise MergeError(
                f"the XA transaction {decision.xid} is committed, but its rows are in no batch: it was prepared before this "
                "source began, or its batch was removed",
                hint=f"Take new snapshots of all tables: cdc snapshot {source} '*.*'. If the source file has another start than "
                "snapshot, start the source again with `start: snapshot` instead.",
                source=source,
                xid=decision.xid,
                file=decision.position.file,
                offset=decision.position.offset,
            )


def _in_order(manifest: Manifest) -> Iterator[Prepared | Decision]:
    """Yield prepares and decisions in the stream's order; a one-phase commit is both at one position."""
    events: list[tuple[Position, int, Prepared | Decision]] = [(p.position, 0, p) for p in manifest.prepared]
    events += [(d.position, 1, d) for d in manifest.xa_decisions]
    for _, _, event in sorted(events, key=lambda event: event[:2]):
        yield event


def _is_read_again(one: OpenTransaction, manifest: Manifest) -> bool:
    window = manifest.window
    if window is None:
        return False
    return one.is_read_again(manifest.epoch, manifest.identity, window.start, manifest.gtid_first)


def _at_start_of(first: Manifest, manifest: Manifest, epoch_changes: Sequence[EpochChange]) -> Manifest:
    """Return an earlier manifest without the transactions that are not before the epoch of a window.

    The epoch reads them again from its start on, or its server never had them. GTIDs decide it; without them the place of the
    window does, and transactions that the server never had are not known.
    """
    if first.window is None or manifest.epoch == first.epoch:
        return manifest
    start = manifest.identity.is_same_server(first.identity), first.window.start, first.gtid_first
    starts = [one.new_start for one in epoch_changes if manifest.epoch < one.epoch <= first.epoch]

    def is_before(event: Prepared | Decision) -> bool:
        before = {start.has_gtid(event.gtid) for start in starts}
        if False in before:
            return False
        return before == {True} or not is_from(event, *start)

    return replace(
        manifest,
        prepared=tuple(filter(is_before, manifest.prepared)),
        xa_decisions=tuple(filter(is_before, manifest.xa_decisions)),
    )


def opened_before(
    newest_first: Iterable[tuple[str, Manifest]],
    xids: Collection[str],
    first: Manifest,
    epoch_changes: Sequence[EpochChange] = (),
) -> tuple[OpenTransaction, ...]:
    """Search earlier windows for transactions that a run of windows commits without an XA PREPARE of its own.

    Args:
        newest_first: key and manifest of earlier windows; only as many are read as needed.
        xids: ids of the transactions.
        first: the first window of the run.
        epoch_changes: epoch changes of the drain cursor.

    Returns:
        The open ones, and those whose rollback the server forgot in a crash. The latter only if the windows up to the run have no
        gap: in a gap, the id may have been prepared again.
    """
    found: dict[str, OpenTransaction] = {}
    rolled_back: set[str] = set()
    missing, until = set(xids), first.window.start if first.window is not None else None
    for key, manifest in newest_first if xids else ():
        window = manifest.window
        if window is None or (manifest.epoch, window.stop) != (first.epoch, until):
            missing -= rolled_back
            until = None
        else:
            until = window.start
        for event in reversed([*_in_order(_at_start_of(first, manifest, epoch_changes))]):
            if event.xid not in missing:
                continue
            if isinstance(event, Decision) and not event.committed and until is not None:
                rolled_back.add(event.xid)
                continue
            missing.remove(event.xid)
            if isinstance(event, Prepared):
                found[event.xid] = OpenTransaction(key, event, manifest.epoch, manifest.identity)
        if not missing:
            break
    return tuple(one for _, one in sorted(found.items()))
