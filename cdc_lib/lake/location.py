"""Where the files of a new lake table lie; tables that exist stay where they are. Pure."""

from __future__ import annotations

import re

from cdc_lib.errors import ConfigError
from cdc_lib.model.folder import below, folder_of, is_plain_folder
from cdc_lib.model.lake_table import LakeName

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/|/")


def base_of(catalog: str, warehouse: str | None) -> str | None:
    """Return below what the locations of new tables are; None where the catalog alone chooses them.

    Args:
        catalog: type of the catalog: jdbc, rest, glue, hive or hadoop.
        warehouse: as the source file has it. A REST catalog's may be a name that means something to it alone.
    """
    # A Hadoop catalog is a tree of folders, and refuses a location.
    if catalog == "hadoop" or warehouse is None or not _ADDRESS.match(warehouse):
        return None
    return warehouse


def table_location(catalog: str, warehouse: str | None, name: LakeName) -> str | None:
    """Return the location of a new table; None where the catalog chooses it, for names that are folders as they are.

    All tables lie two folders below the warehouse, one for the whole namespace and one for the table: none contains another.

    Raises:
        ConfigError: the catalog chooses, and a name would lead elsewhere or mean something else in its paths.
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


def namespace_location(catalog: str, warehouse: str | None, name: LakeName) -> str | None:
    """Return the location of the namespace of a table, in which other tools put tables; None as above."""
    base = base_of(catalog, warehouse)
    return None if base is None else below(base, folder_of(*name.namespace))


def paths_of(location: str) -> tuple[str, str]:
    """Return a location as texts of which one is the beginning of another where the one's folder holds the other's.

    ``file:/x``, ``file:///x`` and ``/x`` are one, in either case. ``..`` is a folder up on disks and a name in S3: so there are two.
    """
    return _path(location, up=True), _path(location, up=False)


def _path(location: str, *, up: bool) -> str:
    scheme, colon, path = location.partition(":") if _ADDRESS.match(location) else ("", "", location)
    if not colon:
        scheme, path = "file", location
    # s3a and s3n are other names of s3.
    family = "s3" if scheme.lower() in ("s3a", "s3n") else scheme.lower()
    found: list[str] = []
    for part in path.split("/"):
        if part == ".." and up:
            found = found[:-1]
        elif part not in ("", "."):
            found.append(part.casefold())
    return "/".join((f"{family}:", *found, ""))
