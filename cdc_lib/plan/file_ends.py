"""Binlog files from which transactions are missing.

A server that crashes leaves its file without an end event. At restart it truncates the file after the last whole transaction and
begins a new one. A file that lost its end looks the same. The header of the next file distinguishes the two: whether a
server start created it, and which GTIDs precede it.

Where there are GTIDs, each file names those of all transactions before it. So what a closed file lacks is found as well: all of it on
MySQL. MariaDB numbers its transactions and allows gaps, and a file names only the last number of each source. So there it is found
if the last transaction of a source in a file is missing.
"""

from __future__ import annotations

from collections.abc import Sequence

from cdc_lib.binlog.framing.boundary_scan import BoundaryScan
from cdc_lib.binlog.framing.damaged_file import restore_or_continue
from cdc_lib.binlog.framing.file_header import FileHeader, read_file_header
from cdc_lib.config import Credentials, ServerConfig
from cdc_lib.errors import BinlogIncomplete
from cdc_lib.model.gtid import GtidSet
from cdc_lib.model.gtid_gap import GtidGap, GtidsRead
from cdc_lib.model.position import FIRST_EVENT_OFFSET, Position, file_number
from cdc_lib.model.unclosed import Unclosed
from cdc_lib.model.window import Window
from cdc_lib.mysql.binlog_stream import binlog_dump
from cdc_lib.mysql.server_facts import ServerFacts


def check_ends(
    source: str, server: ServerConfig, credentials: Credentials, facts: ServerFacts, files: Sequence[Unclosed]
) -> None:
    """Check that files without an end event are complete.

    Without GTIDs, a file counts as ended by a crash if a server start created the next file.

    Args:
        source: name of the source, for messages.
        server: which has the files.
        credentials: log-in.
        facts: of the server.
        files: the files to check, as far as they were read.

    Raises:
        BinlogIncomplete: a file lacks transactions.
        SourceError: the server refuses.
    """
    for file in files:
        follower = Position(file.follower, FIRST_EVENT_OFFSET)
        with binlog_dump(server, credentials, facts.identity, follower) as stream:
            header = read_file_header(stream, facts.identity.flavor, file.follower)
        first = Position(file.end.file, FIRST_EVENT_OFFSET)
        scan = BoundaryScan(source, facts.identity.flavor, first.file, file.end, file.end, checksum=facts.checksum)
        with binlog_dump(server, credentials, facts.identity, first) as stream:
            read = scan.run(stream)
        with_gtids = facts.all_have_gtids and not read.anonymous and not (header.first and header.first.anonymous)
        fault = fault_of(read.gtids, header, all_have_gtids=with_gtids)
        if fault:
            raise BinlogIncomplete(
                f"{file.end.file} ends without a ROTATE or STOP event, and {fault}",
                hint=restore_or_continue(source, file.follower),
                source=source,
                file=file.end.file,
                offset=file.end.offset,
            )


def check_gtids(
    server: ServerConfig,
    credentials: Credentials,
    facts: ServerFacts,
    window: Window,
    gaps: Sequence[GtidGap],
    read: GtidsRead | None,
) -> None:
    """Check that the transactions which a file names before it were read in the files before it.

    The header of the file after a window is read for it if the window ends with a file.

    Args:
        server: which has the files.
        credentials: log-in.
        facts: of the server.
        window: what was read.
        gaps: those that were found between its files.
        read: what the file at its end must name at most; None if unknown.

    Raises:
        BinlogIncomplete: transactions are missing.
        SourceError: the server refuses.
    """

    def header_of(file: str) -> FileHeader:
        with binlog_dump(server, credentials, facts.identity, Position(file, FIRST_EVENT_OFFSET)) as stream:
            return read_file_header(stream, facts.identity.flavor, file)

    stop = window.stop
    ends_with_file = stop.offset == FIRST_EVENT_OFFSET and stop != window.start
    if ends_with_file and read is not None and (read.gtids or facts.gtids_on):
        named = header_of(stop.file).gtids
        gap = read.gap(stop.file, named) if named is not None else None
        gaps = (*gaps, gap) if gap is not None else gaps
    if not gaps:
        return
    earlier = _gtids_before(header_of(window.start.file), server, credentials, facts, window)
    for gap in gaps:
        if missing := gap.missing.minus(earlier):
            shown = _shown(missing, gap.read)
            raise BinlogIncomplete(
                f"transactions are missing from {gap.file} that {gap.follower} names before it: {shown}",
                hint=restore_or_continue(window.source, gap.follower),
                source=window.source,
                file=gap.file,
            )


def _gtids_before(
    header: FileHeader, server: ServerConfig, credentials: Credentials, facts: ServerFacts, window: Window
) -> GtidSet:
    """Return the GTIDs before a window's first file: those that it names, and those in the file before it.

    MySQL may begin a file while a transaction in the former one is not yet in its set of executed ones
    (``binlog_order_commits=OFF``); then only the file after the next one names it.
    """
    flavor, first = facts.identity.flavor, Position(window.start.file, FIRST_EVENT_OFFSET)
    named = header.gtids or GtidSet(flavor, {})
    before = [name for name, _ in facts.files if file_number(name) < first.file_number]
    if not before:
        return named
    scan = BoundaryScan(window.source, flavor, before[-1], first, first, checksum=facts.checksum)
    start = Position(before[-1], FIRST_EVENT_OFFSET)
    with binlog_dump(server, credentials, facts.identity, start) as stream:
        return named.union(scan.run(stream).gtids)


def fault_of(before: GtidSet, follower: FileHeader, *, all_have_gtids: bool) -> str:
    """Return the evidence that a file without an end event lost transactions; empty if there is none.

    Args:
        before: GTIDs of all transactions up to the file's present end.
        follower: header of the next file.
        all_have_gtids: whether every transaction has a GTID.
    """
    expected = follower.gtids or GtidSet(before.flavor, {})
    missing = before.lacks(expected)
    if missing:
        return f"transactions that the next file names before it are missing: {_shown(missing, before)}"
    if follower.at_start or (all_have_gtids and expected):
        return ""
    return "no start of the server made the next file: its end is missing"


def _shown(missing: GtidSet, before: GtidSet) -> str:
    if missing.flavor == "mysql":
        return str(missing)[:200]
    upto = {source.partition("-")[0]: runs[-1][1] for source, runs in before.last_of_domains().runs.items()}
    runs = ((source, upto.get(source.partition("-")[0], 0), lost[-1][1]) for source, lost in missing.runs.items())
    return ", ".join(f"those after number {after} up to {source}-{last}" for source, after, last in runs)[:200]
