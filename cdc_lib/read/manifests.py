"""The data files and delete files of a snapshot, from its manifests.

PyIceberg's own list of a snapshot's files leaves out where a deletion vector is, so its Avro reader is asked for that too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pyiceberg.avro.file import AvroFile
from pyiceberg.io import FileIO
from pyiceberg.manifest import (
    DATA_FILE_TYPE,
    MANIFEST_ENTRY_SCHEMAS,
    ManifestContent,
    ManifestEntryStatus,
    ManifestFile,
    read_manifest_list,
)

from cdc_lib.errors import StoreError
from cdc_lib.read.cache import Cache

_EQUALITY_DELETES = 2
_ENTRY = MANIFEST_ENTRY_SCHEMAS[3]
"""Also reads the manifests of format version 2, which have no more than it."""
_STATUS, _SEQUENCE, _FILE = (
    [one.name for one in _ENTRY.fields].index(name) for name in ("status", "sequence_number", "data_file")
)
_FILE_FIELDS = {one.name: i for i, one in enumerate(DATA_FILE_TYPE[3].fields)}
_ENTRY_BYTES = 2_000
"""About what one entry takes in memory."""


@dataclass(frozen=True, slots=True, eq=False)
class LiveFile:
    """A data file.

    Args:
        path: its location.
        rows: number of rows, including deleted ones.
        sequence: data sequence number; position deletes apply to files of their own and of earlier commits.
        lower: lower bounds by field id, serialized.
        upper: upper bounds.
        nulls: number of null values by field id.
    """

    path: str
    rows: int
    sequence: int
    lower: Mapping[int, bytes] = field(repr=False)
    upper: Mapping[int, bytes] = field(repr=False)
    nulls: Mapping[int, int] = field(repr=False)


@dataclass(frozen=True, slots=True)
class VectorFile:
    """A deletion vector: a blob of a Puffin file.

    Args:
        path: location of the Puffin file.
        of_file: location of the data file.
        offset: where the blob begins.
        size: of the blob in bytes.
        rows: number of deleted rows.
    """

    path: str
    of_file: str
    offset: int
    size: int
    rows: int


@dataclass(frozen=True, slots=True)
class PositionFile:
    """A Parquet file of deleted positions (format version 2).

    Args:
        path: its location.
        sequence: data sequence number.
        of_file: location of the only data file that it deletes from; None if there may be several.
        least: lower bound of the data files' locations; None if unknown.
        greatest: upper bound.
        rows: number of positions.
    """

    path: str
    sequence: int
    of_file: str | None
    least: str | None
    greatest: str | None
    rows: int

    def may_cover(self, file: LiveFile) -> bool:
        """Whether it may delete rows of a data file."""
        if self.sequence < file.sequence:
            return False
        if self.of_file is not None:
            return self.of_file == file.path
        above = self.least is None or self.least <= file.path
        return above and (self.greatest is None or file.path <= self.greatest)


_PATHS = 2147483546
"""Field id of the data file's location in a file of positions."""


@dataclass(frozen=True, slots=True)
class Files:
    """The files of a snapshot."""

    data: tuple[LiveFile, ...]
    vectors: Mapping[str, VectorFile]
    """By the location of the data file."""
    positions: tuple[PositionFile, ...]


def files_of(io: FileIO, manifest_list: str, cache: Cache) -> Files:
    """Return the live files of a snapshot; manifests that were read before are not read again.

    Raises:
        StoreError: the table has equality deletes, or data files of another format.
    """
    found: list[LiveFile | VectorFile | PositionFile] = []
    for manifest in read_manifest_list(io.new_input(manifest_list)):
        if manifest.has_added_files() or manifest.has_existing_files():
            found += cache.get(("manifest", manifest.manifest_path), partial(_sized, io, manifest))
    vectors = [one for one in found if isinstance(one, VectorFile)]
    by_file = {one.of_file: one for one in vectors}
    if len(by_file) < len(vectors):
        raise StoreError(
            "a data file has two deletion vectors", hint="Read the table with Spark, and rewrite the file."
        )
    return Files(
        tuple(one for one in found if isinstance(one, LiveFile)),
        by_file,
        tuple(one for one in found if isinstance(one, PositionFile)),
    )


def _sized(io: FileIO, manifest: ManifestFile) -> tuple[list[LiveFile | VectorFile | PositionFile], int]:
    entries = list(_entries(io, manifest))
    return entries, _ENTRY_BYTES * len(entries)


def _entries(io: FileIO, manifest: ManifestFile) -> Iterator[LiveFile | VectorFile | PositionFile]:
    with AvroFile[Any](io.new_input(manifest.manifest_path), _ENTRY) as entries:
        for entry in entries:
            if entry[_STATUS] != ManifestEntryStatus.DELETED:
                # Null in a commit's new entries, and in format version 1.
                sequence = entry[_SEQUENCE] if entry[_SEQUENCE] is not None else manifest.sequence_number or 0
                yield _file_of(sequence, entry[_FILE], manifest.content is ManifestContent.DELETES)


def _file_of(sequence: int, record: Any, is_delete: bool) -> LiveFile | VectorFile | PositionFile:
    def of(name: str) -> Any:
        return record[_FILE_FIELDS[name]]

    path, file_format, rows = of("file_path"), of("file_format").upper(), of("record_count")
    if is_delete and of("content") == _EQUALITY_DELETES:
        raise StoreError(
            "the lake table has equality deletes, which are not read without Spark",
            hint="Another writer made them. Rewrite the data files in Spark: rewrite_data_files with delete-file-threshold 1.",
            file=path,
        )
    if is_delete and file_format == "PUFFIN":
        return VectorFile(path, of("referenced_data_file"), of("content_offset"), of("content_size_in_bytes"), rows)
    if file_format != "PARQUET":
        raise StoreError(
            f"a file of the lake table has the format {file_format}, and only Parquet is read without Spark",
            hint="cdc lake maintain writes such files again as Parquet.",
            file=path,
        )
    lower, upper = of("lower_bounds") or {}, of("upper_bounds") or {}
    if is_delete:
        least, greatest = _text(lower.get(_PATHS)), _text(upper.get(_PATHS))
        return PositionFile(path, sequence, of("referenced_data_file"), least, greatest, rows)
    return LiveFile(path, rows, sequence, lower, upper, of("null_value_counts") or {})


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode()
