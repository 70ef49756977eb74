"""What a comparison read and what its repair wrote; without OpenLineage's classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cdc_airflow.lineage.datasets import (
    Dataset,
    LakeDataset,
    VerifiedTo,
    lake_dataset,
    source_dataset,
    verified_to,
)
from cdc_lib.config import SourceConfig
from cdc_lib.lake.routing import lake_merges
from cdc_lib.model.verify import Report, TableReport, Verified


@dataclass(frozen=True, slots=True)
class ComparedTable:
    """A lake table that was compared with one or more source tables.

    Args:
        lake: the table.
        sources: the source tables that it was compared with.
        verified: how far it is known to be equal to all of its source tables; None if one of them was never compared.
        source_rows: rows at the source.
        missing: rows that the source has and the lake lacks.
        extra: rows that the lake has and the source lacks.
        different: rows with another value in some column.
        in_flight: rows that differ because of a change that may not be merged yet.
        unexamined: about how many rows were not compared one by one.
        repaired: rows that were wrong and are equal now.
    """

    lake: LakeDataset
    sources: tuple[Dataset, ...]
    verified: VerifiedTo | None
    source_rows: int
    missing: int
    extra: int
    different: int
    in_flight: int
    unexamined: int
    repaired: int


def compared_tables(config: SourceConfig, report: Report, comparisons: Sequence[Verified]) -> list[ComparedTable]:
    """Return the lake tables that were compared, by name; those that were skipped are left out.

    Args:
        config: the source.
        report: what the comparison found.
        comparisons: the last ones of the source, this one among them.
    """
    compared = [one for one in report.tables if not one.skipped]
    known = {(one.table, one.lake_table) for one in comparisons} | {(one.table, one.lake_table) for one in compared}
    lakes = {str(lake.name): lake.name for lake in lake_merges(config, sorted({table for table, _ in known}))}
    found = []
    for name in sorted({one.lake_table for one in compared} & lakes.keys()):
        pairs = [one for one in compared if one.lake_table == name]
        sources = sorted({table for table, lake_table in known if lake_table == name})
        found.append(
            ComparedTable(
                lake=lake_dataset(config, lakes[name]),
                sources=tuple(source_dataset(config, one.table) for one in pairs),
                verified=verified_to(name, sources, comparisons),
                **_sums(pairs),
            )
        )
    return found


def _sums(pairs: Sequence[TableReport]) -> dict[str, int]:
    names = ("source_rows", "missing", "extra", "different", "in_flight", "unexamined", "repaired")
    return {name: sum(getattr(one, name) for one in pairs) for name in names}
