"""Files of a lake table in a process without Java, through PyIceberg's FileIO: for tasks on executors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
from pyiceberg.io import FileIO, load_file_io

_LOCAL = "file:"
_AT_ONCE = 8
"""Files of other machines that are read at the same time."""


@dataclass(frozen=True)
class TaskFiles:
    """Opens files by PyIceberg's properties; implements :class:`cdc_lib.apply.stored_files.FileStore`."""

    properties: Mapping[str, str] = field(repr=False)

    def opened(self, location: str, size: int) -> pa.NativeFile:  # noqa: ARG002 - Arrow asks for it
        """Open a file."""
        if location.startswith(_LOCAL):
            return pa.OSFile(_path(location))
        opened = self._io(location).new_input(location).open(seekable=True)
        return opened if isinstance(opened, pa.NativeFile) else pa.PythonFile(opened, "r")

    def read_range(self, location: str, offset: int, size: int) -> bytes:
        """Return a part of a file."""
        with self.opened(location, offset + size) as file:
            file.seek(offset)
            return bytes(file.read(size))

    def write(self, location: str, data: bytes) -> None:
        """Write a whole file, which must not exist."""
        if location.startswith(_LOCAL):
            path = Path(_path(location))
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("xb") as file:
                file.write(data)
            return
        with self._io(location).new_output(location).create(overwrite=True) as stream:  # the name is new
            stream.write(data)

    def at_once(self, locations: Iterable[str]) -> int:
        """Return how many files are best read at the same time."""
        return 1 if all(location.startswith(_LOCAL) for location in locations) else _AT_ONCE

    def _io(self, location: str) -> FileIO:
        return _opened(tuple(sorted(self.properties.items())), location.partition(":")[0])


def _path(location: str) -> str:
    return "/" + location.removeprefix(_LOCAL).lstrip("/")


@lru_cache(maxsize=16)
def _opened(properties: tuple[tuple[str, str], ...], scheme: str) -> FileIO:
    """Return a FileIO, one for each process and set of properties."""
    return load_file_io(dict(properties), f"{scheme}://")
