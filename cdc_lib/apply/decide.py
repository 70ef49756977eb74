"""Which changes of a lake table the driver of a cluster applies itself; pure."""

from __future__ import annotations

from collections.abc import Sequence

from cdc_lib.merge.plan import MergeInput
from cdc_lib.model.manifest import DataFile
from cdc_lib.model.schema import TableSchema

FEW_ROWS, FEW_BYTES = 1_000_000, 64 << 20
"""Most changes, and most bytes of their files, that the driver of a cluster applies: executors share more."""


def is_few(files: Sequence[tuple[DataFile, TableSchema]]) -> bool:
    """Whether the changes of files are few, so that the driver of a cluster applies them."""
    rows, size = sum(file.rows for file, _ in files), sum(file.bytes for file, _ in files)
    return rows <= FEW_ROWS and size <= FEW_BYTES


def files_of(table: str, inputs: Sequence[MergeInput]) -> list[tuple[DataFile, TableSchema]]:
    """Return the files that hold a table's waiting rows, with their schemas."""
    found = [(file, each.batch.manifest) for each in inputs for file in each.batch.manifest.files]
    found += [
        (file, held.manifest)
        for each in inputs
        for _, held in each.batch.commits
        for file in held.manifest.prepared_files
    ]
    return [(file, manifest.schemas[file.schema_id]) for file, manifest in found if file.table == table]
