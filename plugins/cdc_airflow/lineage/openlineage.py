"""The lineage of tasks as the OpenLineage provider takes it; needs that provider to be imported."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from airflow.providers.common.compat.openlineage.facet import (
    DatasetFacet,
    Identifier,
    InputDataset,
    OutputDataset,
    OutputStatisticsOutputDatasetFacet,
    RunFacet,
    SchemaDatasetFacet,
    SchemaDatasetFacetFields,
    SymlinksDatasetFacet,
)
from airflow.providers.openlineage.extractors import OperatorLineage
from openlineage.client.generated.base import OutputDatasetFacet
from openlineage.client.generated.dataset_version_dataset import DatasetVersionDatasetFacet

from cdc_airflow.lineage.backfill import RefilledTable, archived_tables, refilled_tables
from cdc_airflow.lineage.cover import CoveredTo, covered_to
from cdc_airflow.lineage.datasets import (
    Fields,
    LakeDataset,
    ReadTable,
    VerifiedTo,
    lake_dataset,
    source_dataset,
    verified_to,
)
from cdc_airflow.lineage.drain import ReadSnapshot, StoredTable, drained_tables, read_snapshots, stored_tables
from cdc_airflow.lineage.facets import (
    BackfillRunFacet,
    ComparisonInputFacet,
    ComparisonRunFacet,
    CoveredDatasetFacet,
    CutRunFacet,
    RowsOutputFacet,
    SnapshotRead,
    SnapshotsRunFacet,
    VerifiedDatasetFacet,
    WindowRunFacet,
)
from cdc_airflow.lineage.merge import WrittenTable, read_tables, written_tables
from cdc_airflow.lineage.verify import ComparedTable, compared_tables
from cdc_lib.config import SourceConfig
from cdc_lib.lake.routing import lake_merges
from cdc_lib.merge.plan import StoredBatch
from cdc_lib.model.backfill import BackfillReport
from cdc_lib.model.coverage import Coverage
from cdc_lib.model.manifest import Manifest
from cdc_lib.model.merge_plan import Cut
from cdc_lib.model.row_counts import RowCounts
from cdc_lib.model.verify import Report, Verified
from cdc_lib.model.window import Window


def merge_lineage(
    config: SourceConfig,
    cut: Cut,
    batches: Sequence[StoredBatch],
    comparisons: Sequence[Verified] = (),
    coverages: Sequence[Coverage] = (),
) -> OperatorLineage[Any, Any]:
    """Return the inputs and outputs of a merge with schemas, row counts and last comparisons, and its cut."""
    period, now = config.verify.cover_every, datetime.now(UTC)

    def covered(one: WrittenTable) -> CoveredTo | None:
        return covered_to(one.lake.table, one.sources, coverages, period, now)

    facet = CutRunFacet(
        mergeId=cut.merge_id,
        epoch=cut.epoch,
        position=str(cut.position),
        publishedAt=cut.at.isoformat(),
        eventTime=_iso(cut.event_time),
    )
    return OperatorLineage(
        inputs=[_read(one) for one in read_tables(config, cut, batches)],
        outputs=[_written(one, comparisons, covered(one)) for one in written_tables(config, cut, batches)],
        run_facets={"cdc_cut": facet},
    )


def drain_lineage(config: SourceConfig, manifests: Sequence[Manifest]) -> OperatorLineage[Any, Any]:
    """Return the source tables that were read, the batches with schemas and row counts, and the window or the snapshots."""
    facets: dict[str, RunFacet] = {}
    for one in manifests:  # a task drains one window, or snapshots
        if one.window is not None:
            facets["cdc_window"] = _window(one, one.window)
    if snapshots := read_snapshots(manifests):
        facets["cdc_snapshots"] = SnapshotsRunFacet([_snapshot(one) for one in snapshots])
    return OperatorLineage(
        inputs=[_read(one) for one in drained_tables(config, manifests)],
        outputs=[_stored(one) for one in stored_tables(config, manifests)],
        run_facets=facets,
    )


def verify_lineage(config: SourceConfig, report: Report, comparisons: Sequence[Verified]) -> OperatorLineage[Any, Any]:
    """Return the source tables and lake tables that were compared, and the lake tables that were repaired."""
    compared = compared_tables(config, report, comparisons)
    sources = sorted({(one.namespace, one.name) for table in compared for one in table.sources})
    facet = ComparisonRunFacet(
        clean=report.clean,
        epoch=report.epoch,
        position=str(report.position),
        startedAt=report.started_at.isoformat(),
        endedAt=report.ended_at.isoformat(),
    )
    return OperatorLineage(
        inputs=[
            *(InputDataset(namespace=namespace, name=name) for namespace, name in sources),
            *(_compared(one) for one in compared),
        ],
        outputs=[_repaired(one) for one in compared if one.repaired],
        run_facets={"cdc_comparison": facet},
    )


def cover_lineage(config: SourceConfig, coverages: Sequence[Coverage]) -> OperatorLineage[Any, Any]:
    """Return the source tables and lake tables whose key ranges were compared."""
    tables = [one for one in coverages if not one.skipped]
    lakes = {str(lake.name): lake for lake in lake_merges(config, sorted({one.table for one in tables}))}
    sources = [source_dataset(config, table) for table in sorted({one.table for one in tables})]
    inputs = [InputDataset(namespace=one.namespace, name=one.name) for one in sources]
    period, now = config.verify.cover_every, datetime.now(UTC)
    for name in sorted({one.lake_table for one in tables} & lakes.keys()):
        lake = lake_dataset(config, lakes[name].name)
        of_lake = [one.table for one in tables if one.lake_table == name]
        facets = {"symlinks": _symlinks(lake), **_covered(covered_to(name, of_lake, tables, period, now))}
        inputs.append(InputDataset(namespace=lake.dataset.namespace, name=lake.dataset.name, facets=facets))
    return OperatorLineage(inputs=inputs)


def backfill_lineage(config: SourceConfig, report: BackfillReport) -> OperatorLineage[Any, Any]:
    """Return the batches that were read, and the lake tables or copies that were changed."""
    facet = BackfillRunFacet(report.period, report.windows, report.snapshots, report.batches)
    return OperatorLineage(
        inputs=[InputDataset(namespace=one.namespace, name=one.name) for one in archived_tables(config, report)],
        outputs=[_refilled(one) for one in refilled_tables(config, report)],
        run_facets={"cdc_backfill": facet},
    )


def _read(one: ReadTable) -> InputDataset:
    facets: dict[str, DatasetFacet] = {"schema": _schema(one.fields)} if one.fields else {}
    return InputDataset(namespace=one.dataset.namespace, name=one.dataset.name, facets=facets)


def _written(one: WrittenTable, comparisons: Sequence[Verified], covered: CoveredTo | None) -> OutputDataset:
    facets = {
        "version": DatasetVersionDatasetFacet(datasetVersion=str(one.snapshot)),
        "symlinks": _symlinks(one.lake),
        **({"schema": _schema(one.fields)} if one.fields else {}),
        **_verified(verified_to(one.lake.table, one.sources, comparisons)),
        **_covered(covered),
    }
    statistics = OutputStatisticsOutputDatasetFacet(
        rowCount=one.rows.total if one.rows is not None else None, size=one.bytes
    )
    return OutputDataset(
        namespace=one.lake.dataset.namespace,
        name=one.lake.dataset.name,
        facets=facets,
        outputFacets={"outputStatistics": statistics, **_rows(one.rows)},
    )


def _stored(one: StoredTable) -> OutputDataset:
    statistics = OutputStatisticsOutputDatasetFacet(rowCount=one.row_count, size=one.bytes, fileCount=one.files)
    return OutputDataset(
        namespace=one.dataset.namespace,
        name=one.dataset.name,
        facets={"version": DatasetVersionDatasetFacet(datasetVersion=one.batch), "schema": _schema(one.fields)},
        outputFacets={"outputStatistics": statistics, **_rows(one.rows)},
    )


def _refilled(one: RefilledTable) -> OutputDataset:
    return OutputDataset(
        namespace=one.lake.dataset.namespace,
        name=one.lake.dataset.name,
        facets={
            "version": DatasetVersionDatasetFacet(datasetVersion=str(one.snapshot)),
            "symlinks": _symlinks(one.lake),
        },
        outputFacets={"outputStatistics": OutputStatisticsOutputDatasetFacet(rowCount=one.changes)},
    )


def _compared(one: ComparedTable) -> InputDataset:
    found = ComparisonInputFacet(
        sourceRows=one.source_rows,
        missing=one.missing,
        extra=one.extra,
        different=one.different,
        inFlight=one.in_flight,
        unexamined=one.unexamined,
        repaired=one.repaired,
    )
    return InputDataset(
        namespace=one.lake.dataset.namespace,
        name=one.lake.dataset.name,
        facets={"symlinks": _symlinks(one.lake), **_verified(one.verified)},
        inputFacets={"cdc_comparison": found},
    )


def _repaired(one: ComparedTable) -> OutputDataset:
    return OutputDataset(
        namespace=one.lake.dataset.namespace,
        name=one.lake.dataset.name,
        facets={"symlinks": _symlinks(one.lake)},
        outputFacets={"outputStatistics": OutputStatisticsOutputDatasetFacet(rowCount=one.repaired)},
    )


def _window(manifest: Manifest, window: Window) -> WindowRunFacet:
    return WindowRunFacet(
        windowId=window.id,
        epoch=window.epoch,
        start=str(window.start),
        stop=str(window.stop),
        gtidSet=manifest.gtid_set,
        transactions=manifest.transactions,
        events=manifest.events,
        firstTime=_iso(manifest.first_time),
        lastTime=_iso(manifest.last_time),
    )


def _snapshot(one: ReadSnapshot) -> SnapshotRead:
    return SnapshotRead(
        table=one.table,
        snapshotId=one.snapshot_id,
        epoch=one.epoch,
        chunks=one.chunks,
        lowWatermark=one.low_watermark,
        highWatermark=one.high_watermark,
        complete=one.complete,
    )


def _rows(rows: RowCounts | None) -> dict[str, OutputDatasetFacet]:
    if rows is None:
        return {}
    counts = RowsOutputFacet(inserts=rows.inserts, updates=rows.updates, deletes=rows.deletes, reads=rows.reads)
    return {"cdc_rows": counts}


def _verified(known: VerifiedTo | None) -> dict[str, DatasetFacet]:
    if known is None:
        return {}
    facet = VerifiedDatasetFacet(
        clean=known.clean,
        comparedAt=known.compared_at.isoformat(),
        verifiedToTime=_iso(known.clean_at),
        verifiedToPosition=known.clean_position,
    )
    return {"cdc_verified": facet}


def _covered(known: CoveredTo | None) -> dict[str, DatasetFacet]:
    if known is None:
        return {}
    facet = CoveredDatasetFacet(
        ratio=round(known.ratio, 4),
        oldestTime=known.oldest_at.isoformat(),
        oldestPosition=known.oldest_position,
        wrongRows=known.wrong_rows,
    )
    return {"cdc_covered": facet}


def _iso(time: datetime | None) -> str | None:
    return time.isoformat() if time is not None else None


def _symlinks(lake: LakeDataset) -> SymlinksDatasetFacet:
    return SymlinksDatasetFacet([Identifier(namespace=lake.catalog, name=lake.table, type="TABLE")])


def _schema(fields: Fields) -> SchemaDatasetFacet:
    return SchemaDatasetFacet(fields=[SchemaDatasetFacetFields(name=name, type=kind) for name, kind in fields])
