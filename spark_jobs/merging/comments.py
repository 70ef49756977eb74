"""Carries comments of source tables over to their lake tables, when the batches of a merge bring any."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt

from cdc_lib.config.source import SourceConfig
from cdc_lib.errors import MergeConflict
from cdc_lib.lake.routing import LakeMerge, lake_merges
from cdc_lib.merge.evolve_table import others_of
from cdc_lib.merge.plan import StoredBatch
from cdc_lib.model.comments import TableComments
from spark_jobs.lake_format import LAKE_FORMAT
from spark_jobs.runtime.parallel_tables import in_parallel

ATTEMPTS = 3
"""Attempts for each table when another commit comes first."""


def comments_of(config: SourceConfig, batches: Sequence[StoredBatch]) -> list[TableComments]:
    """Return the comments that the lake keeps, in the order of the batches; usually none."""
    found = (one for batch in batches for one in batch.manifest.comments)
    return [one for one in found if config.carries_comments(*one.table.pair)]


@dataclass(frozen=True, slots=True)
class _Comments:
    """The comments of one merge.

    Args:
        config: the source.
        found: all comments, in order.
        say: receives a line for each changed table.
    """

    config: SourceConfig
    found: Sequence[TableComments]
    say: Callable[[str], None]

    def carry(self, session: SparkSession, lake: LakeMerge) -> bool:
        """Change the comments of one lake table, if it exists and has others."""
        is_routed = {routed.table: routed.target.routed for routed in lake.routed_tables}
        target = LAKE_FORMAT.table(session, lake.name, self.config.source, is_routed)
        state = target.load()
        shared = len(lake.tables) > 1 or bool(others_of(lake, state, lake.tables[0]))
        changed = target.comment([one for one in self.found if one.table in lake.tables], shared=shared)
        if changed:
            self.say(f"{lake.name}: comments of the source carried over")
        return changed


def carry_comments(
    spark: SparkSession, config: SourceConfig, batches: Sequence[StoredBatch], say: Callable[[str], None]
) -> None:
    """Give lake tables the comments that batches bring; a second run changes nothing.

    Args:
        spark: a session.
        config: the source.
        batches: of a plan, in order, after their rows are merged.
        say: receives a line for each changed table.

    Raises:
        CdcError: of a table; the others are done.
    """
    found = comments_of(config, batches)
    if not found:
        return
    job = _Comments(config, found, say)
    retry = Retrying(stop=stop_after_attempt(ATTEMPTS), retry=retry_if_exception_type(MergeConflict), reraise=True)

    def work(session: SparkSession, lake: LakeMerge) -> bool:
        done: bool = retry.copy()(job.carry, session, lake)
        return done

    lakes = {str(lake.name): lake for lake in lake_merges(config, {one.table for one in found})}
    hint = "The rows are merged; the cut is published when the comments are carried over as well."
    in_parallel(spark, config, lakes, work, say, done="commented", hint=hint)
