"""The files of a lake table: all in its folders, and those elsewhere that a snapshot names. Needs the ``read`` extra."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.io import FileIO, load_file_io
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import ManifestEntryStatus, read_manifest_list
from pyiceberg.table import Table

from cdc_lib.config import SourceConfig
from cdc_lib.lake.arrow_types import arrow_of
from cdc_lib.lake.catalog import translate_errors
from cdc_lib.lake.location import location_beside, table_location
from cdc_lib.model.lake_table import LakeName


@dataclass(frozen=True)
class LakeFiles:
    """A lake table and its files.

    Args:
        name: of the table.
        table: as the catalog has it; None if it was dropped.
        config: the source.
        io: opens files.
    """

    name: LakeName
    table: Table | None
    config: SourceConfig
    io: FileIO

    @classmethod
    def of(cls, config: SourceConfig, catalog: Catalog, name: LakeName) -> LakeFiles:
        """Find a table; one that was dropped has files too."""
        try:
            with translate_errors(str(name)):
                table = catalog.load_table((*name.namespace, name.name))
        except NoSuchTableError:
            made = table_location(config.lake.type, config.lake.warehouse, name)
            return cls(name, None, config, load_file_io(dict(catalog.properties), made))
        return cls(name, table, config, table.io)

    def ids(self, names: Iterable[str]) -> dict[str, list[int]]:
        """Return the field ids of columns in every schema that the table had, by their names now."""
        if self.table is None:
            return {name: [] for name in names}
        now = {field.name: field.field_id for field in self.table.schema().fields}
        ever = [(field.name, field.field_id) for schema in self.table.metadata.schemas for field in schema.fields]
        return {
            name: sorted({number for other, number in (*now.items(), *ever) if other == name})
            for name in dict.fromkeys(names)
        }

    def types(self, ids: dict[str, list[int]]) -> dict[int, tuple[str, pa.DataType]]:
        """Return name and type of each field id whose bounds can be compared."""
        if self.table is None:
            return {}
        found = {}
        for schema in self.table.metadata.schemas:
            for field in schema.fields:
                name = next((name for name, numbers in ids.items() if field.field_id in numbers), None)
                try:
                    of = arrow_of(str(field.field_type))
                except KeyError:
                    continue
                if name is not None:
                    found[field.field_id] = (name, of)
        return found

    def locations(self) -> dict[str, bool]:
        """Return each file, and whether the metadata names it; of a table that was dropped, none is named."""
        named = {_path(one): one for one in self._named()}
        listed = {_path(one): one for one in self._listed()}
        return {one: path in named for path, one in {**named, **listed}.items()}

    def folders(self) -> list[str]:
        """Return the table's folder, the one that its name makes, and those beside it that a table of its name had."""
        own = [self.table.location()] if self.table is not None else []
        made = table_location(self.config.lake.type, self.config.lake.warehouse, self.name)
        return list(dict.fromkeys(one.rstrip("/") for one in (*own, *([made] if made else []))))

    def _listed(self) -> Iterator[str]:
        if not isinstance(self.io, PyArrowFileIO):
            return
        for folder in self.folders():
            scheme, host, path = self.io.parse_location(folder, self.io.properties)
            files = self.io.fs_by_scheme(scheme, host)
            prefix = folder.removesuffix(path)
            parent, _, last = path.rpartition("/")
            beside = location_beside(last, "")
            for info in files.get_file_info(pafs.FileSelector(parent, allow_not_found=True)):
                name = info.path.rpartition("/")[2]
                if info.type == pafs.FileType.Directory and (name == last or name.startswith(beside)):
                    yield from _below(files, info.path, prefix)

    @property
    def are_listed(self) -> bool:
        """Whether the folders can be listed; else only what snapshots name is known."""
        return isinstance(self.io, PyArrowFileIO)

    def _named(self) -> Iterator[str]:
        """Yield what the table's metadata and the manifests of its snapshots name."""
        if self.table is None:
            return
        metadata = self.table.metadata
        yield self.table.metadata_location
        yield from (entry.metadata_file for entry in metadata.metadata_log)
        yield from (entry.statistics_path for entry in metadata.statistics)
        read: set[str] = set()
        for snapshot in metadata.snapshots:
            yield snapshot.manifest_list
            for manifest in read_manifest_list(self.io.new_input(snapshot.manifest_list)):
                if manifest.manifest_path not in read:
                    read.add(manifest.manifest_path)
                    yield manifest.manifest_path
                    for entry in manifest.fetch_manifest_entry(self.io, discard_deleted=False):
                        # What a snapshot removed stays in its manifest after maintenance has deleted the file.
                        path = entry.data_file.file_path
                        if entry.status != ManifestEntryStatus.DELETED or self.io.new_input(path).exists():
                            yield path


def _path(location: str) -> str:
    """Return what two spellings of the location of a local file have in common."""
    return location.removeprefix("file://").removeprefix("file:")


def _below(files: Any, path: str, prefix: str) -> Iterator[str]:
    for info in files.get_file_info(pafs.FileSelector(path, recursive=True)):
        if info.type == pafs.FileType.File:
            yield f"{prefix}{info.path}"
