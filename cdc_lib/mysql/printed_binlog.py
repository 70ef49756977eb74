"""The events of a window as mysqlbinlog prints them: a third decoder, by the makers of the server.

It also reads what mysql-replication does not, such as compressed transactions, and checks the checksum of each event. The window is written to
files on this machine, so the program needs no access to the server.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from io import TextIOWrapper
from pathlib import Path
from typing import BinaryIO

from cdc_lib.errors import SourceUnavailable
from cdc_lib.model.decoded_event import DecodedEvent, DecodedImage
from cdc_lib.model.position import Position, file_number
from cdc_lib.model.server_identity import Flavor
from cdc_lib.model.table_name import TableName
from cdc_lib.model.window import Window

PROGRAMS: dict[Flavor, tuple[str, ...]] = {"mysql": ("mysqlbinlog",), "mariadb": ("mariadb-binlog", "mysqlbinlog")}

_FIRST_OF_MYSQL = 8
_MAGIC = b"\xfebin"
_HEADER = 19
_ROTATE, _FORMAT, _HEARTBEATS = 4, 15, (27, 41)
_ARTIFICIAL = 0x20
"""Flag of an event that the server made for the stream; no binlog file has it."""

_ROW = re.compile(r"### (INSERT INTO|UPDATE|DELETE FROM) `(.*)`\.`(.*)`$")
_CELL = re.compile(r"###   (@\d+)=(.*)$", re.DOTALL)
_UNKNOWN = "!! Don't know how to handle column type"
_UNREAD = "mysqlbinlog does not print the type of a column"
_ROWS = re.compile(r"_rows\w*: table id")
_TRANSACTION = re.compile(r"\t(Anonymous_GTID|GTID|Gtid_tagged|Gtid)\b")


@dataclass(frozen=True, slots=True)
class PrintingProgram:
    """mysqlbinlog, or MariaDB's twin of it.

    Args:
        path: of the program.
        version: its name and version.
    """

    path: str
    version: str


@dataclass(frozen=True, slots=True)
class LocalBinlog:
    """A part of a binlog file of the server as a file on this machine.

    Args:
        path: of the file here.
        file: number of the server's file.
        shift: what to add to an offset here to have the offset there.
    """

    path: Path
    file: int
    shift: int


def find_program(flavor: Flavor) -> PrintingProgram | None:
    """Return the program on PATH that reads binlogs of a kind of server; None without one."""
    for name in PROGRAMS[flavor]:
        if (path := shutil.which(name)) is None:
            continue
        said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
        found = re.search(r"(from|Ver) +(\d+)[\w.]*", said)
        # MariaDB installs its program under MySQL's name too; it counts its own versions, which are 3.x or below.
        is_mysql = found is not None and "MariaDB" not in said and int(found[2]) >= _FIRST_OF_MYSQL
        if is_mysql == (flavor == "mysql"):
            return PrintingProgram(path, f"{name} {found[0].split()[1]}" if found else name)
    return None


def write_files(payloads: Iterable[bytes], window: Window, folder: Path) -> list[LocalBinlog]:
    """Write the events of a window to files as the server has them, one for each of its binlog files.

    Args:
        payloads: packets of a dump that begins where the window does.
        window: the window.
        folder: an empty folder for the files.

    Raises:
        SourceUnavailable: the server refused to go on.
    """
    writer = _Writer(folder, window.start)
    try:
        for payload in payloads:
            if payload[:1] == b"\xff":
                raise SourceUnavailable(
                    f"the server ended the stream of {window.id}: {payload[9:].decode('utf-8', 'replace')}",
                    hint="The command can be repeated.",
                )
            if payload[:1] == b"\xfe" or not writer.take(payload[1:], window.stop):
                break
    finally:
        writer.close()
    return writer.files


@dataclass(slots=True)
class _Writer:
    folder: Path
    start: Position
    files: list[LocalBinlog] = field(default_factory=list)
    _name: str = ""
    _out: BinaryIO | None = None
    _format: bytes = b""
    _at: int = 0

    def take(self, event: bytes, stop: Position) -> bool:
        """Write an event; returns False for one that is beyond the end of the window."""
        kind, flags = event[4], int.from_bytes(event[17:19], "little")
        if kind == _ROTATE and flags & _ARTIFICIAL:
            self._rotate(event[_HEADER + 8 :].rstrip(b"\0"))
            return True
        if kind in _HEARTBEATS:
            return True
        if kind == _FORMAT:
            if self._out is None:
                self._open(event)
            return True
        if flags & _ARTIFICIAL or self._out is None:
            return True
        if Position(self._name, self._at) >= stop:
            return False
        self._out.write(event)
        self._at += len(event)
        return True

    def _rotate(self, rest: bytes) -> None:
        """Begin another file of the server; a checksum may follow the name."""
        found = re.match(rb"[^\0]*?\.\d{6,}", rest)
        name = (found[0] if found else rest).decode()
        if name != self._name:
            self.close()
            self._name = name

    def _open(self, event: bytes) -> None:
        """Write the beginning of a file: its format is an event of the file itself, or precedes a part of the file."""
        offset = self.start.offset if self._name == self.start.file else len(_MAGIC)
        path = self.folder / f"{len(self.files):04d}"
        self._out = path.open("wb")
        self._out.write(_MAGIC + event)
        length = len(_MAGIC) + len(event)
        self._at = offset if offset > len(_MAGIC) else length
        self.files.append(LocalBinlog(path, file_number(self._name), self._at - length))

    def close(self) -> None:
        """Complete the file."""
        if self._out is not None:
            self._out.close()
            self._out = None


def decode(program: PrintingProgram, files: Iterable[LocalBinlog]) -> Iterator[DecodedEvent]:
    """Yield the events of some files as the program prints them; values are the texts that it prints, by ``@1``, ``@2``, ...

    Args:
        program: see :func:`find_program`.
        files: see :func:`write_files`.
    """
    options = ("--no-defaults", "--verify-binlog-checksum", "--base64-output=decode-rows", "-v")
    for file in files:
        with (
            tempfile.TemporaryFile() as said,
            subprocess.Popen(
                [program.path, *options, str(file.path)],
                stdout=subprocess.PIPE,
                stderr=said,
                env=os.environ | {"TZ": "UTC"},
            ) as running,
        ):
            if running.stdout is None:
                raise AssertionError(program)
            # Each byte of a value is one character, and only this one ends a line.
            lines = TextIOWrapper(running.stdout, encoding="latin-1", newline="\n")
            yield from _Printed(file).events(line.rstrip("\n") for line in lines)
            running.wait()
            said.seek(0)
            wrong = said.read().decode("utf-8", "replace").strip()
        if running.returncode:
            yield DecodedEvent("failed", file.file, 0, why=f"{program.version}: {wrong[-300:]}")
            return


@dataclass(slots=True)
class _Printed:
    """The output of the program for one file."""

    file: LocalBinlog
    _offset: int = 0
    _in_payload: bool = False
    _unread: bool = False
    _in_rows: bool = False
    _table: TableName | None = None
    _rows: list[tuple[DecodedImage | None, DecodedImage | None]] = field(default_factory=list)
    _operation: str = ""
    _images: dict[str, dict[str, str | None]] = field(default_factory=dict)
    _part: str = ""

    def events(self, lines: Iterable[str]) -> Iterator[DecodedEvent]:
        for line in lines:
            if self._in_rows and line.startswith("###"):
                self._row_line(line)
                continue
            if line.startswith("# at ") and line[5:].isdigit():
                yield from self._ended()
                if not self._in_payload:
                    self._offset, self._unread = int(line[5:]) + self.file.shift, False
            elif line.startswith("# Start of compressed events"):
                self._in_payload = True
            elif line.startswith("# End of compressed events"):
                yield from self._ended()
                self._in_payload = False
            elif line.startswith("#") and "end_log_pos" in line:
                self._in_rows = _ROWS.search(line) is not None
                if _TRANSACTION.search(line):
                    yield DecodedEvent("begin", self.file.file, self._offset)
            elif line.startswith("ROLLBACK") and "added by mysqlbinlog" not in line:
                yield DecodedEvent("rollback", self.file.file, self._offset)
        yield from self._ended()

    def _row_line(self, line: str) -> None:
        if _UNKNOWN in line:
            self._unread = (
                True  # the rest of the event is not printed, and the rows of a compressed transaction have no numbers
            )
        if row := _ROW.match(line):
            self._end_row()
            self._operation, self._table = row[1], TableName(row[2], row[3])
        elif line in ("### WHERE", "### SET"):
            self._part = line[4:]
            self._images[self._part] = {}
        elif cell := _CELL.match(line):
            self._images[self._part][cell[1]] = None if cell[2] == "NULL" else cell[2]

    def _end_row(self) -> None:
        if self._operation:
            before, after = (self._image(part) for part in ("WHERE", "SET"))
            self._rows.append((before, after))
        self._operation, self._images = "", {}

    def _image(self, part: str) -> DecodedImage | None:
        values = self._images.get(part)
        return None if values is None else DecodedImage(values, {})

    def _ended(self) -> Iterator[DecodedEvent]:
        """Yield the event whose lines have ended, if it has rows."""
        self._end_row()
        if self._unread and self._rows:
            yield DecodedEvent("unreadable", self.file.file, self._offset, self._table, why=_UNREAD)
        elif self._rows:
            unnumbered = self._in_payload
            yield DecodedEvent(
                "rows", self.file.file, self._offset, self._table, named=False, rows=self._rows, unnumbered=unnumbered
            )
        self._rows, self._in_rows = [], False
