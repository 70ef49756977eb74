"""Finds connections to SQLite that nobody closes: Python 3.13 warns of them, and they keep files open until they are collected."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_watches: list[list[sqlite3.Connection]] = []


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "sqlite3.connect/handle":
        for watch in _watches:
            watch.append(arguments[0])


sys.addaudithook(_hook)  # as long as the process lives: there is no way to remove one


@contextmanager
def every_connection_closed() -> Iterator[None]:
    """Fail if a connection that is opened meanwhile, by any library, is open in the end. Being held here, none is collected."""
    watch: list[sqlite3.Connection] = []
    _watches.append(watch)
    try:
        yield
    finally:
        _watches.remove(watch)
    left_open = [_file(one) for one in watch if _is_open(one)]
    assert not left_open, f"nobody closed the connections to {left_open}"


def _is_open(connection: sqlite3.Connection) -> bool:
    try:
        connection.total_changes  # noqa: B018 - unlike a statement, it may be asked in any thread
    except sqlite3.ProgrammingError:
        return False
    return True


def _file(connection: sqlite3.Connection) -> str:
    return str(connection.execute("PRAGMA database_list").fetchone()[2])
