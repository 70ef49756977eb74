"""Closed binlog files of a server that lose a part, as by a disk error or a person."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from cdc_lib.model.position import Position
from tests.harness.servers import SqlServer


def cut(server: SqlServer, position: Position) -> Callable[[], None]:
    """Stop the server, take off what a file has after a position, and start again; returns what puts it back."""
    server._end(kill=False)
    path = Path(server.data_dir) / position.file
    whole = path.read_bytes()
    assert len(whole) > position.offset
    path.write_bytes(whole[: position.offset])
    server.start()
    return restore_of(server, path, whole)


def restore_of(server: SqlServer, path: Path, whole: bytes) -> Callable[[], None]:
    """Return what puts a file back."""

    def restore() -> None:
        server._end(kill=False)
        path.write_bytes(whole)
        server.start()

    return restore
