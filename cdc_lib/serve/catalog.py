"""The tables of a source's lake as of its cuts, by the names that engines use: ``<cut>.<namespace>.<table>``."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchTableError

from cdc_lib.config import SourceConfig
from cdc_lib.errors import ConfigError
from cdc_lib.lake.catalog import translate_errors
from cdc_lib.lake.routing import lake_merges
from cdc_lib.lake.s3_settings import takes_settings_of_store
from cdc_lib.model.lake_table import LakeName
from cdc_lib.model.merge_plan import Cut
from cdc_lib.ports import ObjectStore
from cdc_lib.read.cuts import LATEST, find_cut
from cdc_lib.serve.metadata import as_of
from cdc_lib.store.cuts import last_cuts

Namespace = tuple[str, ...]

LISTED = 20
"""Cuts that a list of namespaces shows. All others can be used too."""

_SHOWN = ("s3.endpoint", "client.region", "s3.path-style-access")
"""Properties of the lake that a client needs too."""


class NotInCatalog(Exception):
    """There is no such cut, namespace or table; the text says which.

    Args:
        kind: Iceberg's name of the error.
        message: for people.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class CutCatalog:
    """The lake of one source.

    Args:
        config: the source.
        store: of its cuts.
        catalog: of its lake tables.
    """

    config: SourceConfig
    store: ObjectStore
    catalog: Catalog

    def namespaces(self, parent: Namespace) -> list[Namespace]:
        """Return the namespaces one level below another; without a parent ``latest`` and the times of the last cuts.

        Raises:
            NotInCatalog: there is no such cut.
        """
        if not parent:
            cuts = last_cuts(self.store, self.config.source, LISTED)
            times = dict.fromkeys(f"{cut.event_time:%Y-%m-%dT%H:%M:%SZ}" for cut in cuts if cut.event_time is not None)
            return [(LATEST,), *((time,) for time in times)] if cuts else []
        depth = len(parent) - 1
        below = {name.namespace[: depth + 1] for name in self._tables(parent[0]) if len(name.namespace) > depth}
        return [(parent[0], *one) for one in sorted(below) if one[:depth] == parent[1:]]

    def has_namespace(self, namespace: Namespace) -> bool:
        """Whether a namespace is a cut, or has tables or namespaces in a cut."""
        depth = len(namespace) - 1
        tables = self._tables(namespace[0])
        return depth == 0 or any(name.namespace[:depth] == namespace[1:] for name in tables)

    def tables(self, namespace: Namespace) -> list[str]:
        """Return the names of the tables in a namespace.

        Raises:
            NotInCatalog: there is no such cut.
        """
        return sorted(name.name for name in self._tables(namespace[0]) if name.namespace == namespace[1:])

    def load(self, namespace: Namespace, table: str) -> tuple[str, dict[str, Any]]:
        """Return the location of a table's metadata, and the metadata as of the cut.

        Raises:
            NotInCatalog: the cut does not have the table.
            StoreError: it cannot be read, or its snapshot was expired.
        """
        name, snapshot = self.find(namespace, table)
        try:
            with translate_errors(str(name)):
                found = self.catalog.load_table((*name.namespace, name.name))
                location = found.metadata_location
                with found.io.new_input(location).open() as file:
                    content = file.read()
        except NoSuchTableError as error:
            raise NotInCatalog("NoSuchTableException", f"the lake has no table {name} any more") from error
        document = json.loads(gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content)
        return location, as_of(document, snapshot, str(name))

    def find(self, namespace: Namespace, table: str) -> tuple[LakeName, int]:
        """Return the full name of a table, and its snapshot in the cut.

        Raises:
            NotInCatalog: the cut does not have it.
        """
        for name, snapshot in self._tables(namespace[0]).items():
            if (name.namespace, name.name) == (namespace[1:], table):
                return name, snapshot
        shown = ".".join((*namespace, table))
        raise NotInCatalog("NoSuchTableException", f"the cut has no table {shown}")

    def _tables(self, cut: str) -> Mapping[LakeName, int]:
        found = self._cut(cut)
        names = {str(one.name): one.name for one in lake_merges(self.config, [one.table for one in found.tables])}
        return {names[one.lake_table]: one.lake_snapshot for one in found.tables if one.lake_table in names}

    def _cut(self, which: str) -> Cut:
        try:
            return find_cut(self.store, self.config.source, which)
        except ConfigError as error:
            raise NotInCatalog("NoSuchNamespaceException", str(error)) from error


def storage_settings(config: SourceConfig) -> dict[str, str]:
    """Return what a client needs to reach the lake's files beside credentials, which are its own."""
    store, given = config.store, config.lake.properties
    settings: dict[str, str | None] = {}
    if store.scheme == "s3" and takes_settings_of_store(config.lake):
        settings = {"s3.endpoint": store.endpoint_url, "client.region": store.region}
        settings["s3.path-style-access"] = "true" if store.path_style else None
    settings |= {name: given[name] for name in _SHOWN if name in given}
    settings["s3.region"] = given.get("s3.region", settings.get("client.region"))
    return {name: value for name, value in settings.items() if value is not None}
