"""What the tables of one merge share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from pyspark.sql import SparkSession

from cdc_lib.config.source import SourceConfig
from cdc_lib.errors import CdcError
from cdc_lib.lake.routing import LakeMerge
from cdc_lib.merge.plan import work_on
from cdc_lib.merge.source_tables import SourceTables
from cdc_lib.merge.table_work import Decide, TableDecisions
from cdc_lib.model.merge_plan import MergePlan
from cdc_lib.ports import ObjectStore
from spark_jobs.lake_format import LAKE_FORMAT, LakeTarget
from spark_jobs.merging.foreign_changes import ForeignChangeDetector
from spark_jobs.merging.source_rows import Origin, Say
from spark_jobs.runtime.log_lines import say as say_line

Now = Callable[[], datetime]
"""Returns the time (UTC)."""


def utc_now() -> datetime:
    """Return the time by this machine's clock."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class MergeJob:
    """The common parameters of all tables of a merge.

    Args:
        sources: the source tables.
        origin: opens the source; None for no re-selection.
        say: receives a line for each re-selected table.
        lag: of the merge's windows.
        decide: decides what each table needs.
        waits: whether to wait for first snapshots, if the source starts with snapshots.
        watch: checks each table before it is merged; None for copies.
        named_by_cuts: returns the snapshots that cuts name; None for no maintenance after the merge.
        now: returns the time (UTC), by which old snapshots are removed.
        refused: the errors of lake tables that cannot be merged: they are other tables' as well, or have no namespace.
    """

    sources: SourceTables
    origin: Origin | None = None
    say: Say = say_line
    lag: timedelta | None = None
    decide: Decide = work_on
    waits: bool = True
    watch: ForeignChangeDetector | None = None
    named_by_cuts: Callable[[], Collection[int]] | None = None
    now: Now = utc_now
    refused: Mapping[LakeMerge, CdcError] = field(default_factory=dict)

    @property
    def config(self) -> SourceConfig:
        """The source."""
        return self.sources.config

    @property
    def store(self) -> ObjectStore:
        """Holds the batches."""
        return self.sources.store

    @property
    def plan(self) -> MergePlan:
        """The plan."""
        return self.sources.plan

    @property
    def decisions(self) -> TableDecisions:
        """Decides what the tables need."""
        return TableDecisions(self.sources, self.decide, self.watch.with_drop if self.watch is not None else None)

    def target(self, session: SparkSession, lake: LakeMerge) -> LakeTarget:
        """Return a lake table, which need not exist yet."""
        return LAKE_FORMAT.table(session, lake.name, self.config.source, lake.is_routed)
