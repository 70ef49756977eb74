"""The batches of each table, with nothing of other tables: made once for a merge, so that many tables do not read all of it each. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from cdc_lib.merge.plan import StoredBatch
from cdc_lib.merge.table_resets import is_of_database
from cdc_lib.model.ddl_effect import TableStatement
from cdc_lib.model.manifest import DataFile
from cdc_lib.model.table_name import TableName
from cdc_lib.model.xa_settlement import XaCommit

TableBatches = Mapping[TableName, Sequence[StoredBatch]]
"""The batches that hold something of a table, in the order of the plan; each with the table's files, statements and commits only."""


def by_table(batches: Iterable[StoredBatch]) -> TableBatches:
    """Return the batches of each table that they have something for; what :meth:`StoredBatch.holds` says of each stays true.

    Args:
        batches: in the order of their plan; statements on whole databases are expanded to tables.
    """
    found: defaultdict[TableName, list[StoredBatch]] = defaultdict(list)
    for batch in batches:
        for table, part in _parts(batch).items():
            found[table].append(part)
    return dict(found)


def _parts(batch: StoredBatch) -> dict[TableName, StoredBatch]:
    manifest = batch.manifest
    files: defaultdict[TableName, list[DataFile]] = defaultdict(list)
    statements: defaultdict[TableName, list[TableStatement]] = defaultdict(list)
    commits: defaultdict[TableName, list[tuple[XaCommit, StoredBatch]]] = defaultdict(list)
    for file in manifest.files:
        files[file.table].append(file)
    for statement in manifest.statements:
        if not is_of_database(statement):
            statements[statement.table].append(statement)
    for commit, held in batch.commits:
        for table in commit.prepared.tables:
            commits[table].append((commit, held))
    tables = {*files, *statements, *commits, *((manifest.chunk.table,) if manifest.chunk is not None else ())}
    return {
        table: replace(
            batch,
            manifest=replace(manifest, files=tuple(files[table]), statements=tuple(statements[table])),
            commits=tuple(commits[table]),
        )
        for table in tables
    }
