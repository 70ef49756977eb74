"""What a backfill read and wrote; without OpenLineage's classes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from cdc_airflow.lineage.datasets import Dataset, LakeDataset, batches_dataset, lake_dataset
from cdc_lib.config import SourceConfig
from cdc_lib.lake.routing import lake_merges
from cdc_lib.model.backfill import BackfillReport


@dataclass(frozen=True, slots=True)
class RefilledTable:
    """A lake table, or a copy beside it, that a backfill changed.

    Args:
        lake: the table.
        changes: that were applied.
        snapshot: Iceberg's id of its snapshot.
    """

    lake: LakeDataset
    changes: int
    snapshot: int


def archived_tables(config: SourceConfig, report: BackfillReport) -> list[Dataset]:
    """Return the batches of the tables of which a backfill merged changes, by name."""
    return [batches_dataset(config, table) for table in sorted({one.table for one in report.tables if one.changes})]


def refilled_tables(config: SourceConfig, report: BackfillReport) -> Iterator[RefilledTable]:
    """Yield the tables that a backfill changed."""
    changed = [one for one in report.tables if one.changes]
    for lake in lake_merges(config, sorted({one.table for one in changed})):
        name = replace(lake.name, name=lake.name.name + report.suffix)
        if cuts := [one for one in changed if one.lake_table == str(name)]:
            yield RefilledTable(lake_dataset(config, name), sum(one.changes for one in cuts), cuts[0].lake_snapshot)
