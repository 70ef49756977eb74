"""Where lake tables lie: new ones by the source file's catalog, and those that a catalog has."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from operator import itemgetter

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from cdc_lib.lake.location import namespace_location, paths_of, table_location
from cdc_lib.model.lake_table import LakeName
from spark_jobs.errors import is_missing, translate_errors
from spark_jobs.iceberg.loading import load_table, spark_catalog, texts


def location_of(session: SparkSession, name: LakeName) -> str | None:
    """Return the location of a new table; None where the catalog chooses it.

    Raises:
        ConfigError: the catalog chooses, and a name is not safe as a folder.
    """
    return table_location(*_catalog(session, name), name)


def namespace_location_of(session: SparkSession, name: LakeName) -> str | None:
    """Return the location of a new table's namespace; None where the catalog chooses it."""
    return namespace_location(*_catalog(session, name), name)


def _catalog(session: SparkSession, name: LakeName) -> tuple[str, str | None]:
    root = f"spark.sql.catalog.{name.catalog}"
    return str(session.conf.get(f"{root}.type")), session.conf.get(f"{root}.warehouse", None)


@dataclass(frozen=True, slots=True, order=True)
class TableLocation:
    """Where a table lies.

    Args:
        name: full name with its catalog. A jdbc catalog joins the levels of a namespace by dots, and so is it here.
        uuid: Iceberg's id of the table.
        location: of its files.
    """

    name: str
    uuid: str
    location: str


class TableLocations:
    """Where the tables of a catalog lie.

    Args:
        known: those that could be read.
        unknown: full names of the others.
    """

    def __init__(self, known: Iterable[TableLocation], unknown: Sequence[str] = ()) -> None:
        """Sort them, so that each table is compared with few others."""
        self._unknown = unknown
        self._paths = sorted((path, place) for place in known for path in paths_of(place.location))

    def in_the_way(self, mine: TableLocation) -> str | None:
        """Say why no file of a table may be taken for lost; None where what lies in its folder can only be its own."""
        if self._unknown:
            return f"where {self._unknown[0]} lies cannot be read"
        for other in self._overlapping(mine):
            if (other.name, other.uuid) != (mine.name, mine.uuid):
                return f"its folder {mine.location} overlaps that of {other.name}"
        return None

    def _overlapping(self, mine: TableLocation) -> Iterator[TableLocation]:
        for path in paths_of(mine.location):
            for above in accumulate(f"{part}/" for part in path.removesuffix("/").split("/")):
                yield from self._from(above, above.__eq__)
            yield from self._from(path, partial(_lies_below, path))

    def _from(self, path: str, holds: Callable[[str], bool]) -> Iterator[TableLocation]:
        for number in range(bisect_left(self._paths, path, key=itemgetter(0)), len(self._paths)):
            found, place = self._paths[number]
            if not holds(found):
                return
            yield place


def _lies_below(folder: str, path: str) -> bool:
    return path.startswith(folder)


def place_of(session: SparkSession, name: LakeName) -> TableLocation:
    """Return where a table lies. Raises what Iceberg raises where there is none."""
    java = load_table(session, name)
    return TableLocation(
        ".".join((name.catalog, *name.namespace, name.name)), str(java.uuid().toString()), str(java.location())
    )


def all_places(session: SparkSession, names: Iterable[LakeName]) -> TableLocations:
    """Return where all tables of the catalogs of some tables lie, those of other tools too.

    Raises:
        StoreError: the catalog gave no answer.
    """
    known: list[TableLocation] = []
    unknown: list[str] = []
    for catalog in sorted({name.catalog for name in names}):
        with translate_errors("list the lake's tables", catalog):
            try:
                tables = list(_tables(session, catalog))
            except Py4JJavaError:  # a catalog may keep its list to itself
                unknown.append(f"every table of {catalog}")
                continue
            for namespace, table in tables:
                name = LakeName(catalog, namespace, table)
                try:
                    known.append(place_of(session, name))
                except Py4JJavaError as error:
                    if not is_missing(error):
                        unknown.append(str(name))
    return TableLocations(known, unknown)


def _tables(session: SparkSession, catalog: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield namespace and name of all tables of a catalog."""
    found = spark_catalog(session, catalog)
    left = [tuple(one) for one in found.listNamespaces()]
    while left:
        namespace = left.pop()
        levels = texts(session, namespace)
        for one in found.listTables(levels):
            yield namespace, str(one.name())
        left += [tuple(one) for one in found.listNamespaces(levels)]
