"""The lineage of a merge as the OpenLineage provider takes it; needs that provider to be imported."""

from __future__ import annotations

from collections.abc import Sequence

import attr
from airflow.providers.common.compat.openlineage.facet import (
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
from openlineage.client.generated.dataset_version_dataset import DatasetVersionDatasetFacet

from cdc_airflow.lineage import Fields, read_tables, written_tables
from cdc_lib.config import SourceConfig
from cdc_lib.merge.plan import Batch
from cdc_lib.model.merge_plan import Cut


@attr.define(slots=True)
class CutRunFacet(RunFacet):  # type: ignore[misc] # it has no type without the provider
    """As of where the tables are that the run wrote."""

    mergeId: str  # noqa: N815 - names of OpenLineage
    epoch: int
    position: str
    publishedAt: str  # noqa: N815 - as above
    eventTime: str | None = None  # noqa: N815 - as above


def lineage_of(config: SourceConfig, cut: Cut, batches: Sequence[Batch]) -> OperatorLineage:
    """Return the inputs and outputs of a merge with schemas and row counts, and its cut."""
    inputs = [
        InputDataset(
            namespace=one.namespace, name=one.name, facets={"schema": _schema(one.fields)} if one.fields else {}
        )
        for one in read_tables(config, cut, batches)
    ]
    outputs = []
    for one in written_tables(config, cut, batches):
        facets = {
            "version": DatasetVersionDatasetFacet(datasetVersion=str(one.snapshot)),
            "symlinks": SymlinksDatasetFacet([Identifier(namespace=one.catalog, name=one.table, type="TABLE")]),
            **({"schema": _schema(one.fields)} if one.fields else {}),
        }
        statistics = OutputStatisticsOutputDatasetFacet(rowCount=one.rows, size=one.bytes)
        outputs.append(
            OutputDataset(
                namespace=one.namespace, name=one.name, facets=facets, outputFacets={"outputStatistics": statistics}
            )
        )
    facet = CutRunFacet(
        mergeId=cut.merge_id,
        epoch=cut.epoch,
        position=str(cut.position),
        publishedAt=cut.at.isoformat(),
        eventTime=cut.event_time.isoformat() if cut.event_time is not None else None,
    )
    return OperatorLineage(inputs=inputs, outputs=outputs, run_facets={"cdc_cut": facet})


def _schema(fields: Fields) -> SchemaDatasetFacet:
    return SchemaDatasetFacet(fields=[SchemaDatasetFacetFields(name=name, type=kind) for name, kind in fields])
