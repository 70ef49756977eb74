"""A third opinion about a window: mysqlbinlog prints it, and what it prints is compared with the batch."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from cdc_lib.model.batch_check import PrintedCheck, WindowCheck
from cdc_lib.model.window import Window
from cdc_lib.mysql.packets import payloads
from cdc_lib.mysql.printed_binlog import PrintingProgram, decode, write_files
from cdc_lib.ports import BinlogStream
from cdc_lib.verify.batches.compare import WindowComparison


def with_printed(
    check: WindowCheck, program: PrintingProgram, stream: BinlogStream, window: Window, comparison: WindowComparison
) -> WindowCheck:
    """Return a check with what the program says, and with the changes that only it finds different.

    Args:
        check: by the second decoder.
        program: which prints the window.
        stream: the events of the window.
        window: the window.
        comparison: of the batch with what the program prints; nothing is compared yet.

    Raises:
        SourceError: the connection broke.
        CorruptBatch: the archive or a file of the batch is damaged.
    """
    with tempfile.TemporaryDirectory(prefix="cdc-binlog-") as folder:
        for event in decode(program, write_files(payloads(stream), window, Path(folder))):
            comparison.take(event)
    if comparison.failed:
        return replace(check, printed=PrintedCheck(program.version, failed=comparison.failed))
    comparison.finish()
    printed = PrintedCheck(program.version, comparison.equal, comparison.differing, comparison.uncomparable)
    known = {(one.table, one.file, one.offset, one.row) for one in check.differences}
    found = [
        replace(one, decoder=program.version)
        for one in comparison.differences
        if (one.table, one.file, one.offset, one.row) not in known
    ]
    return replace(
        check, differing=check.differing + len(found), differences=(*check.differences, *found), printed=printed
    )
