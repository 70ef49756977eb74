"""Binlog files that end without a ROTATE or STOP: the server crashed there, or transactions are missing.

A server that crashes leaves its file without an end; it cuts the file at its last whole transaction when it starts again, and
begins a new one. The same shape comes from a file that lost its end. What the next file says tells them apart: whether the
server's start made it, and which GTIDs come before it.
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
    """Look whether files that end without saying so are whole.

    Without GTIDs a file whose follower was made by a start of the server is taken for one that a crash ended.

    Args:
        source: name of the source, for messages.
        server: that has the files.
        credentials: log-in.
        facts: of the server.
        files: to look at, as far as they were read.

    Raises:
        BinlogIncomplete: transactions are missing from one.
        SourceError: the server refuses.
    """
    for one in files:
        follower = Position(one.follower, FIRST_EVENT_OFFSET)
        with binlog_dump(server, credentials, facts.identity, follower, "ends") as stream:
            header = read_file_header(stream, facts.identity.flavor, one.follower)
        first = Position(one.end.file, FIRST_EVENT_OFFSET)
        scan = BoundaryScan(source, facts.identity.flavor, first.file, one.end, one.end, checksum=facts.checksum)
        with binlog_dump(server, credentials, facts.identity, first, "ends") as stream:
            before = scan.run(stream).gtids
        fault = fault_of(before, header, every_one=facts.gtids_on)
        if fault:
            raise BinlogIncomplete(
                f"{one.end.file} ends without a ROTATE or STOP event, and {fault}",
                hint="Put the whole file back at the server from a backup and restart it; or cdc cursor failover to a standby. If "
                f"nobody has it: cdc cursor rewind {source} --position {one.follower}:4, then cdc snapshot {source} '*.*'.",
                source=source,
                file=one.end.file,
                offset=one.end.offset,
            )


def fault_of(before: GtidSet, follower: FileHeader, *, every_one: bool) -> str:
    """Return what shows that a file without an end lost transactions; empty when nothing does.

    Args:
        before: GTIDs of all transactions up to the end of what there is of it.
        follower: header of the next file.
        every_one: whether every transaction has a GTID.
    """
    told = follower.gtids or GtidSet(before.flavor, {})
    missing = before.lacks(told)
    if missing:
        return f"transactions that the next file names before it are missing: {_shown(missing, before)}"
    if follower.at_start or (every_one and told):
        return ""
    return "no start of the server made the next file: its end is missing"


def _shown(missing: GtidSet, before: GtidSet) -> str:
    if missing.flavor == "mysql":
        return str(missing)[:200]
    upto = {source.partition("-")[0]: runs[-1][1] for source, runs in before.last_of_domains().runs.items()}
    runs = ((source, upto.get(source.partition("-")[0], 0), found[-1][1]) for source, found in missing.runs.items())
    return ", ".join(f"those after number {after} up to {source}-{last}" for source, after, last in runs)[:200]
