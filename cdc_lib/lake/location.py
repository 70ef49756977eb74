"""Locations of lake tables and catalogs; existing tables keep theirs. Pure."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from cdc_lib.errors import ConfigError
from cdc_lib.model.folder import below, folder_of, is_plain_folder
from cdc_lib.model.lake_table import LakeName

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/|/")


def base_of(catalog: str, warehouse: str | None) -> str | None:
    """Return the base of new tables' locations; None if the catalog chooses them.

    Args:
        catalog: type of the catalog: jdbc, rest, glue, hive or hadoop.
        warehouse: as in the source file; a REST catalog's may be a name instead of an address.
    """
    # A Hadoop catalog derives locations from names, and refuses another one.
    if catalog == "hadoop" or warehouse is None or not _ADDRESS.match(warehouse):
        return None
    return warehouse


def table_location(catalog: str, warehouse: str | None, name: LakeName) -> str | None:
    """Return the location of a new table; None if the catalog chooses it and the names are valid folder names.

    All tables are two folders below the warehouse, one for the namespace and one for the table: none contains another.

    Raises:
        ConfigError: the catalog chooses, and a name is not safe as a folder.
    """
    base = base_of(catalog, warehouse)
    if base is not None:
        return below(base, folder_of(*name.namespace), folder_of(name.name))
    if wrong := [part for part in (*name.namespace, name.name) if not is_plain_folder(part)]:
        raise ConfigError(
            f"a {catalog} catalog makes the folder of a table from its name, and {wrong[0]!r} is not safe as one",
            hint="Route the table to another name (routes), leave it out (tables: exclude), or use a jdbc catalog. A rest or "
            "hive catalog needs lake.warehouse as an address, such as s3://bucket/lake.",
            lake_table=str(name),
        )
    return None


def location_beside(location: str, token: str) -> str:
    """Return another location for a table whose own folder is taken; no names make this folder."""
    return f"{location}@_{token}"


def namespace_location(catalog: str, warehouse: str | None, name: LakeName) -> str | None:
    """Return the location of a table's namespace, where other tools put tables; None if the catalog chooses it."""
    base = base_of(catalog, warehouse)
    return None if base is None else below(base, folder_of(*name.namespace))


def paths_of(location: str) -> tuple[str, str]:
    """Return a location as normalized paths: one starts with another if its folder lies in the other's.

    ``file:/x``, ``file:///x`` and ``/x`` are equal, ignoring case. ``..`` is the parent on disks and a name in S3: so there
    are two paths.
    """
    return _path(location, up=True), _path(location, up=False)


def _path(location: str, *, up: bool) -> str:
    scheme, colon, path = location.partition(":") if _ADDRESS.match(location) else ("", "", location)
    if not colon:
        scheme, path = "file", location
    # s3a and s3n are other names of s3.
    family = "s3" if scheme.lower() in ("s3a", "s3n") else scheme.lower()
    parts: list[str] = []
    for part in path.split("/"):
        if part == ".." and up:
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part.casefold())
    return "/".join((f"{family}:", *parts, ""))


def local_folder(location: str) -> Path | None:
    """Return the folder of a warehouse or table on this machine; None for another place."""
    parts = urlsplit(location)
    if parts.scheme not in ("", "file") or not parts.path:
        return None
    return Path(unquote(parts.path))


def sqlite_file(uri: str) -> Path:
    """Return the file of a SQLite catalog."""
    return Path(unquote(uri.removeprefix("jdbc:sqlite:").removeprefix("file:").partition("?")[0]))
