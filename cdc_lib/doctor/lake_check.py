"""Checks that the lake's catalog and warehouse can be reached and written to, without Spark."""

from __future__ import annotations

import os
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

from cdc_lib.config import SourceConfig
from cdc_lib.doctor.folder_check import shared_folders
from cdc_lib.doctor.rest_check import check_rest
from cdc_lib.doctor.warehouse_check import check_warehouse, fault_of_folder
from cdc_lib.lake.location import sqlite_file
from cdc_lib.model.finding import Finding
from cdc_lib.ports import ObjectStore
from cdc_lib.store.cuts import last_cut

_PATIENCE = 2.0
_ELSEWHERE = (
    "Correct lake.uri in the source file, or restore the catalog: without it, each lake table counts as dropped."
)
_PORTS = {"thrift": 9083, "postgresql": 5432, "mysql": 3306, "mariadb": 3306}


def check_lake(config: SourceConfig, store: ObjectStore) -> Iterator[Finding]:
    """Yield findings about catalog and warehouse.

    Args:
        config: the source; a lake in S3 takes the connection settings of its ``store:``.
        store: the store itself, which has the keys and the last cut.

    Raises:
        StoreUnavailable: the store does not answer.
    """
    lake, uri = config.lake, config.lake.uri or ""
    if lake.type == "glue":
        yield Finding("info", "the lake's Glue catalog was not checked: cdc doctor has no client for it")
    elif lake.type == "rest":
        yield check_rest(lake)
    elif uri.startswith("jdbc:sqlite:"):
        file = sqlite_file(uri)
        if not file.exists() and (cut := last_cut(store, config.source)) is not None and cut.tables:
            yield Finding(
                "error", f"the catalog {file} is not there, and the lake tables of the last merge are in it", _ELSEWHERE
            )
        else:
            yield _sqlite(file)
        yield from shared_folders(sqlite_file(uri), lake.catalog)
    elif uri:
        yield _listens(uri)
    warehouse = check_warehouse(lake, config.store, store)
    if warehouse is not None:
        yield warehouse


def _sqlite(file: Path) -> Finding:
    hint = f'mkdir -p "{file.parent}" && chown "$(id -un)" "{file.parent}"'
    if not file.exists():
        if fault := fault_of_folder(file.parent):
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
    what = f"something answers at {host}:{port}, the address of the lake's catalog; neither the log-in nor the database was checked"
    return Finding("info", what)
