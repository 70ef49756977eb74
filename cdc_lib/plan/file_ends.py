"""Binlog files that end without a ROTATE or STOP: the server crashed there, or transactions are missing.

A server that crashes leaves its file without an end event. At restart it truncates the file after the last whole transaction and
begins a new one. A file that lost its end looks the same. The header of the next file distinguishes the two: whether a
server start created it, and which GTIDs precede it.
"""

from __future__ import annotations

from collections.abc import Sequence

from cdc_lib.binlog.framing.boundary_scan import BoundaryScan
from cdc_lib.binlog.framing.file_header import FileHeader, read_file_header
from cdc_lib.config import Credentials, ServerConfig
from cdc_lib.errors import BinlogIncomplete
from cdc_lib.model.gtid import GtidSet
from cdc_lib.model.position import FIRST_EVENT_OFFSET, Position
from cdc_lib.model.unclosed import Unclosed
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
        with binlog_dump(server, credentials, facts.identity, follower, "ends") as stream:
            header = read_file_header(stream, facts.identity.flavor, file.follower)
        first = Position(file.end.file, FIRST_EVENT_OFFSET)
        scan = BoundaryScan(source, facts.identity.flavor, first.file, file.end, file.end, checksum=facts.checksum)
        with binlog_dump(server, credentials, facts.identity, first, "ends") as stream:
            before = scan.run(stream).gtids
        fault = fault_of(before, header, all_have_gtids=facts.gtids_on)
        if fault:
            raise BinlogIncomplete(
                f"{file.end.file} ends without a ROTATE or STOP event, and {fault}",
                hint="Put the whole file back at the server from a backup and restart it; or cdc cursor failover to a standby. If "
                f"nobody has it: cdc cursor rewind {source} --position {file.follower}:4, then cdc snapshot {source} '*.*'.",
                source=source,
                file=file.end.file,
                offset=file.end.offset,
            )


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
