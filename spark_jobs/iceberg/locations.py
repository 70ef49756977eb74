"""Locations of new lake tables, and of all tables of a catalog."""

from __future__ import annotations

import secrets
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from operator import itemgetter
from typing import Any

from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from cdc_lib.lake.location import location_beside, namespace_location, paths_of, table_location
from cdc_lib.model.lake_table import LakeName
from spark_jobs.errors import is_missing, said, translate_errors
from spark_jobs.iceberg.loading import file_io, load_table, spark_catalog, texts
from spark_jobs.iceberg.row_delta import each
from spark_jobs.runtime.java_classes import java_classes


def location_of(session: SparkSession, name: LakeName) -> str | None:
    """Return the location of a new table; None if the catalog chooses it.

    A folder that holds a table's metadata is left alone: another catalog may have that table, or its files are all that is left of it.

    Raises:
        ConfigError: the catalog chooses, and a name is not safe as a folder.
    """
    location = table_location(*_catalog(session, name), name)
    if location is None or not metadata_files(session, file_io(session, name), location):
        return location
    return location_beside(location, secrets.token_hex(4))


def metadata_files(session: SparkSession, io: Any, location: str) -> list[str]:
    """Return the metadata files in the folder of a table; none if the FileIO cannot list.

    Args:
        session: a Spark session.
        io: Iceberg's Java object.
        location: of the table.
    """
    gateway: Any = session.sparkContext._gateway  # noqa: SLF001 - pyspark has no public way to it
    if not is_instance_of(gateway, io, "org.apache.iceberg.io.SupportsPrefixOperations"):
        return []
    try:
        paths = [str(one.location()) for one in each(io.listPrefix(f"{location.rstrip('/')}/metadata/"))]
    except Py4JJavaError as error:
        if "FileNotFoundException" not in said(error):
            raise
        return []
    return [path for path in paths if path.endswith(".metadata.json")]


def other_table_in(session: SparkSession, name: LakeName) -> str:
    """Return the UUID of another table whose metadata lies in the folder of a table, or the file's name; empty if there is none."""
    java = load_table(session, name)
    current = java.operations().current()
    known = {str(current.metadataFileLocation()), *(str(one.file()) for one in each(current.previousFiles()))}
    names = {path.rpartition("/")[2] for path in known}
    read = java_classes(session).static("org.apache.iceberg.TableMetadataParser", "read")
    for file in metadata_files(session, java.io(), str(java.location())):
        if file.rpartition("/")[2] in names:
            continue
        try:
            uuid = str(read(java.io(), file).uuid())
        except Py4JJavaError:  # of a newer format, say: it is not this table's
            return file
        if uuid != current.uuid():
            return uuid
    return ""


def namespace_location_of(session: SparkSession, name: LakeName) -> str | None:
    """Return the location of a new table's namespace; None if the catalog chooses it."""
    return namespace_location(*_catalog(session, name), name)


def _catalog(session: SparkSession, name: LakeName) -> tuple[str, str | None]:
    root = f"spark.sql.catalog.{name.catalog}"
    return str(session.conf.get(f"{root}.type")), session.conf.get(f"{root}.warehouse", None)


@dataclass(frozen=True, slots=True, order=True)
class TableLocation:
    """Location of a table.

    Args:
        name: full name with its catalog; the levels of the namespace are joined by dots, as in a jdbc catalog.
        uuid: Iceberg's table UUID.
        location: of its files.
    """

    name: str
    uuid: str
    location: str


class TableLocations:
    """Locations of the tables of a catalog.

    Args:
        known: locations that could be read.
        unknown: full names of the other tables.
    """

    def __init__(self, known: Iterable[TableLocation], unknown: Sequence[str] = ()) -> None:
        """Sort the locations, so that each table is compared with few others."""
        self._unknown = unknown
        self._paths = sorted((path, located) for located in known for path in paths_of(located.location))

    def in_the_way(self, this: TableLocation) -> str | None:
        """Return why no orphan file of a table may be removed; None if all files in its folder are its own."""
        if self._unknown:
            return f"the location of {self._unknown[0]} cannot be read"
        for other in self._overlapping(this):
            if (other.name, other.uuid) != (this.name, this.uuid):
                return f"its folder {this.location} overlaps that of {other.name}"
        return None

    def _overlapping(self, this: TableLocation) -> Iterator[TableLocation]:
        for path in paths_of(this.location):
            for above in accumulate(f"{part}/" for part in path.removesuffix("/").split("/")):
                yield from self._from(above, above.__eq__)
            yield from self._from(path, partial(_lies_below, path))

    def _from(self, path: str, holds: Callable[[str], bool]) -> Iterator[TableLocation]:
        for number in range(bisect_left(self._paths, path, key=itemgetter(0)), len(self._paths)):
            candidate, located = self._paths[number]
            if not holds(candidate):
                return
            yield located


def _lies_below(folder: str, path: str) -> bool:
    return path.startswith(folder)


def existing_location(session: SparkSession, name: LakeName) -> TableLocation:
    """Return the location of a table. Raises Iceberg's error if it is missing."""
    java = load_table(session, name)
    return TableLocation(
        ".".join((name.catalog, *name.namespace, name.name)), str(java.uuid().toString()), str(java.location())
    )


def all_locations(session: SparkSession, names: Iterable[LakeName]) -> TableLocations:
    """Return the locations of all tables in the catalogs of some tables, including tables of other tools.

    Raises:
        StoreError: the catalog did not answer.
    """
    known: list[TableLocation] = []
    unknown: list[str] = []
    for catalog in sorted({name.catalog for name in names}):
        with translate_errors("list the lake's tables", catalog=catalog):
            try:
                tables = list(_tables(session, catalog))
            except Py4JJavaError:  # a catalog may refuse to list its tables
                unknown.append(f"every table of {catalog}")
                continue
            for namespace, table in tables:
                name = LakeName(catalog, namespace, table)
                try:
                    known.append(existing_location(session, name))
                except Py4JJavaError as error:
                    if not is_missing(error):
                        unknown.append(str(name))
    return TableLocations(known, unknown)


def _tables(session: SparkSession, catalog: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield namespace and name of all tables of a catalog."""
    java = spark_catalog(session, catalog)
    namespaces = [tuple(one) for one in java.listNamespaces()]
    while namespaces:
        namespace = namespaces.pop()
        levels = texts(session, namespace)
        for one in java.listTables(levels):
            yield namespace, str(one.name())
        namespaces += [tuple(one) for one in java.listNamespaces(levels)]
