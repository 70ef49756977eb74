"""The lineage of a merge as the OpenLineage provider takes it; needs that provider to be imported."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attr
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

from cdc_airflow.lineage import Fields, WrittenTable, read_tables, verified_to, written_tables
from cdc_lib.config import SourceConfig
from cdc_lib.merge.plan import StoredBatch
from cdc_lib.model.merge_plan import Cut
from cdc_lib.model.verify import Verified


@attr.define(slots=True)
class CutRunFacet(RunFacet):
    """As of where the tables are that the run wrote."""

    mergeId: str  # noqa: N815 - names of OpenLineage
    epoch: int
    position: str
    publishedAt: str  # noqa: N815 - as above
    eventTime: str | None = None  # noqa: N815 - as above


@attr.define(slots=True)
class RowsOutputFacet(OutputDatasetFacet):
    """Rows of the batches by kind of change; ``reads`` are those of a snapshot."""

    inserts: int
    updates: int
    deletes: int
    reads: int


@attr.define(slots=True)
class VerifiedDatasetFacet(DatasetFacet):
    """How far a lake table is known to be equal to its source; the weakest of its source tables counts."""

    clean: bool
    comparedAt: str  # noqa: N815 - as above
    verifiedToTime: str | None = None  # noqa: N815 - as above
    verifiedToPosition: str | None = None  # noqa: N815 - as above


def lineage_of(
    config: SourceConfig, cut: Cut, batches: Sequence[StoredBatch], comparisons: Sequence[Verified] = ()
) -> OperatorLineage[Any, Any]:
    """Return the inputs and outputs of a merge with schemas, row counts and last comparisons, and its cut."""
    inputs = [
        InputDataset(
            namespace=one.namespace, name=one.name, facets={"schema": _schema(one.fields)} if one.fields else {}
        )
        for one in read_tables(config, cut, batches)
    ]
    outputs = [_output(one, comparisons) for one in written_tables(config, cut, batches)]
    facet = CutRunFacet(
        mergeId=cut.merge_id,
        epoch=cut.epoch,
        position=str(cut.position),
        publishedAt=cut.at.isoformat(),
        eventTime=cut.event_time.isoformat() if cut.event_time is not None else None,
    )
    return OperatorLineage(inputs=inputs, outputs=outputs, run_facets={"cdc_cut": facet})


def _output(one: WrittenTable, comparisons: Sequence[Verified]) -> OutputDataset:
    facets = {
        "version": DatasetVersionDatasetFacet(datasetVersion=str(one.snapshot)),
        "symlinks": SymlinksDatasetFacet([Identifier(namespace=one.catalog, name=one.table, type="TABLE")]),
        **({"schema": _schema(one.fields)} if one.fields else {}),
    }
    if (known := verified_to(one, comparisons)) is not None:
        facets["cdc_verified"] = VerifiedDatasetFacet(
            clean=known.clean,
            comparedAt=known.compared_at.isoformat(),
            verifiedToTime=known.clean_at.isoformat() if known.clean_at is not None else None,
            verifiedToPosition=known.clean_position,
        )
    rows = one.rows
    outputs: dict[str, OutputDatasetFacet] = {
        "outputStatistics": OutputStatisticsOutputDatasetFacet(
            rowCount=rows.total if rows is not None else None, size=one.bytes
        )
    }
    if rows is not None:
        outputs["cdc_rows"] = RowsOutputFacet(
            inserts=rows.inserts, updates=rows.updates, deletes=rows.deletes, reads=rows.reads
        )
    return OutputDataset(namespace=one.namespace, name=one.name, facets=facets, outputFacets=outputs)


def _schema(fields: Fields) -> SchemaDatasetFacet:
    return SchemaDatasetFacet(fields=[SchemaDatasetFacetFields(name=name, type=kind) for name, kind in fields])
