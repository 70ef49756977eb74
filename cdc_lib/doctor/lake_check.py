"""Checks that the lake's catalog and warehouse can be reached and written to, without Spark."""

from __future__ import annotations

import os
import secrets
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import unquote, urlsplit

from cdc_lib.config import LakeConfig
from cdc_lib.model.finding import Finding

_PATIENCE = 2.0
_PORTS = {"http": 80, "https": 443, "thrift": 9083, "postgresql": 5432, "mysql": 3306, "mariadb": 3306}


def check_lake(lake: LakeConfig) -> Iterator[Finding]:
    """Yield findings about catalog and warehouse; none for those that need a cloud's own client."""
    uri = lake.uri or ""
    if uri.startswith("jdbc:sqlite:"):
        yield _sqlite(sqlite_file(uri))
    elif uri:
        yield _listens(uri)
    warehouse = folder_of(lake.warehouse or "")
    if warehouse is not None:
        yield _writable(warehouse)


def sqlite_file(uri: str) -> Path:
    """Return the file of a SQLite catalog."""
    return Path(unquote(uri.removeprefix("jdbc:sqlite:").removeprefix("file:").partition("?")[0]))


def folder_of(warehouse: str) -> Path | None:
    """Return the folder of a local warehouse; None for another."""
    parts = urlsplit(warehouse)
    if parts.scheme not in ("", "file") or not parts.path:
        return None
    return Path(unquote(parts.path))


def _sqlite(file: Path) -> Finding:
    hint = f'mkdir -p "{file.parent}" && chown "$(id -un)" "{file.parent}"'
    if not file.exists():
        if fault := _fault_of_folder(file.parent):
            return Finding("error", f"the catalog {file} cannot be made: {fault}", hint)
        return Finding("ok", f"the first merge makes the catalog {file}")
    if not os.access(file, os.W_OK) or not os.access(file.parent, os.W_OK):
        # SQLite writes its journal into the same folder.
        return Finding("error", f"the catalog {file} or its folder is not writable", f'{hint} "{file}"')
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=_PATIENCE)) as catalog:
            catalog.execute("SELECT name FROM sqlite_master").fetchall()
    except sqlite3.Error as error:
        return Finding("error", f"the catalog {file} cannot be read: {error}", "Restore it, or correct lake.uri.")
    return Finding("ok", f"the catalog {file} can be read and written")


def _listens(uri: str) -> Finding:
    """Connect to a catalog's address, without a login. The finding shows the address without credentials."""
    parts = urlsplit(uri.removeprefix("jdbc:"))
    try:
        host, port = parts.hostname, parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        host, port = None, None
    if host is None or port is None:
        return Finding("warning", "lake.uri names no host and port that could be looked at", "Correct lake.uri.")
    try:
        socket.create_connection((host, port), timeout=_PATIENCE).close()
    except OSError as error:
        what = f"the lake's catalog at {host}:{port} cannot be reached: {error.strerror or error}"
        return Finding("error", what, "Start it, or correct lake.uri in the source file.")
    return Finding("ok", f"the lake's catalog at {host}:{port} answers")


def _writable(folder: Path) -> Finding:
    if fault := _fault_of_folder(folder):
        hint = f'mkdir -p "{folder}" && chown "$(id -un)" "{folder}"'
        return Finding("error", f"the warehouse {folder} cannot be written to: {fault}", hint)
    return Finding("ok", f"the warehouse {folder} can be written to")


def _fault_of_folder(folder: Path) -> str:
    """Return why a folder is not writable, else an empty text; a run would create it with its parents."""
    here = folder
    while not here.exists() and here != here.parent:
        here = here.parent
    if not here.is_dir():
        return f"{here} is not a folder"
    probe = here / f".cdc-probe-{secrets.token_hex(8)}"
    try:
        probe.write_bytes(b"probe")
        probe.unlink()
    except OSError as error:
        return f"{here}: {error.strerror or error}"
    return ""
