"""Carries comments of source tables over to their lake tables, when the batches of a merge bring any."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt

from cdc_lib.config.source import SourceConfig
from cdc_lib.errors import CdcError, MergeConflict
from cdc_lib.lake.routing import LakeMerge, lake_merges
from cdc_lib.merge.evolve_table import others_of
from cdc_lib.merge.plan import StoredBatch
from cdc_lib.model.comments import TableComments
from cdc_lib.model.table_name import TableName
from spark_jobs.lake_format import LAKE_FORMAT
from spark_jobs.runtime.parallel_tables import in_parallel

log = logging.getLogger(__name__)

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
        target = LAKE_FORMAT.table(session, lake.name, self.config.source, lake.is_routed)
        state = target.load()
        shared = len(lake.tables) > 1 or bool(others_of(lake, state, lake.tables[0]))
        changed = target.comment([one for one in self.found if one.table in lake.tables], shared=shared)
        if changed:
            self.say(f"{lake.name}: comments of the source carried over")
        return changed


def carry_comments(
    spark: SparkSession, config: SourceConfig, found: Sequence[TableComments], say: Callable[[str], None]
) -> list[TableComments]:
    """Give lake tables the comments of the source; a second run changes nothing.

    Args:
        spark: a session.
        config: the source.
        found: the comments, in order, after the rows of their batches are merged.
        say: receives a line for each changed table, and for each that could not be changed: no row waits for a comment.

    Returns:
        The last comments of each source table that could not be carried over.
    """
    found = [one for one in found if config.carries_comments(*one.table.pair)]
    if not found:
        return []
    job = _Comments(config, found, say)
    retry = Retrying(stop=stop_after_attempt(ATTEMPTS), retry=retry_if_exception_type(MergeConflict), reraise=True)

    def work(session: SparkSession, lake: LakeMerge) -> Sequence[TableName]:
        try:
            retry.copy()(job.carry, session, lake)
        except Exception as error:
            if isinstance(error, CdcError):
                what = f"{error.message}. {error.hint}"
            else:
                log.exception("comments of %s", lake.name)
                what = f"{error!r}."
            again = "The next merge of rows tries again."
            say(f"{lake.name}: comments of the source could not be carried over: {what} {again}")
            return lake.tables
        return ()

    last = {one.table: one for one in found}
    lakes = {str(lake.name): lake for lake in lake_merges(config, last)}
    missing = {
        table for tables in in_parallel(spark, config, lakes, work, say, done="commented", hint="") for table in tables
    }
    return [one for table, one in last.items() if table in missing]
