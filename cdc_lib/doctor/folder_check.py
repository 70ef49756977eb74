"""Checks that no folder of a lake table holds the metadata of another table: two catalogs over one warehouse, as of a copied file."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from cdc_lib.lake.location import local_folder
from cdc_lib.model.finding import Finding

_MOST = 200
"""Most tables that are looked at: each costs a file and a folder to read."""


def shared_folders(file: Path, catalog: str) -> Iterator[Finding]:
    """Yield a warning for each table of a SQLite catalog, on local disks, whose folder another table uses.

    Args:
        file: of the catalog; nothing is yielded if it does not exist.
        catalog: its name.
    """
    for table, location in _tables(file, catalog):
        path = local_folder(location)
        if path is None or not path.is_file() or (other := _other_table(path)) is None:
            continue
        yield Finding(
            "warning",
            f"the folder {path.parent.parent} of the lake table {table} also holds the metadata of another table ({other}): its lost "
            "files are not removed",
            "Two catalogs use one warehouse, or files of a dropped table are left: give each catalog a lake.warehouse of its own. "
            "A table that is made from now on gets a folder of its own.",
        )


def _tables(file: Path, catalog: str) -> list[tuple[str, str]]:
    """Return the names and the metadata files of the tables; none if the catalog has none or cannot be read, which another check says."""
    query = "SELECT table_namespace || '.' || table_name, metadata_location FROM iceberg_tables WHERE catalog_name = ? LIMIT ?"
    if not file.exists():
        return []
    with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=1)) as opened:
        try:
            return [(str(name), str(at)) for name, at in opened.execute(query, (catalog, _MOST)) if at]
        except sqlite3.Error:
            return []


def _other_table(current: Path) -> str | None:
    """Return the UUID of another table whose metadata lies beside a metadata file; None without one."""
    metadata = _read(current)
    known = {current.name, *(str(one["metadata-file"]).rpartition("/")[2] for one in metadata.get("metadata-log", []))}
    others = (path for path in sorted(current.parent.glob("*.metadata.json")) if path.name not in known)
    uuids = (str(_read(path).get("table-uuid", path.name)) for path in others)
    return next((uuid for uuid in uuids if uuid != metadata.get("table-uuid")), None)


def _read(path: Path) -> dict[str, Any]:
    try:
        plain: dict[str, Any] = json.loads(path.read_bytes())
    except (OSError, ValueError):  # compressed, or removed meanwhile
        return {}
    return plain
