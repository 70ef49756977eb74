"""Decides, when snapshots are planned, which of them are divided into ranges of the key."""

from __future__ import annotations

import logging
from contextlib import closing
from dataclasses import dataclass

from cdc_lib.errors import SourceError
from cdc_lib.model.cursor import Cursor
from cdc_lib.model.pace import counted
from cdc_lib.model.projection import can_be_chunked
from cdc_lib.model.window import SnapshotTask
from cdc_lib.mysql.connection import Session
from cdc_lib.mysql.information_schema import InformationSchema
from cdc_lib.snapshot.chunks import key_definition
from cdc_lib.snapshot.ranges import KeySpace
from cdc_lib.source import Source
from cdc_lib.store.manifests import last_chunk_of

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Divider:
    """Divides the snapshots of large tables of one source.

    Args:
        source: the source.
    """

    source: Source

    def divided(self, cursor: Cursor) -> Cursor:
        """Return the drain cursor with the decision about each snapshot that was requested since the last plan.

        A decision is never changed: the ranges are in the cursor before a drain task gets one of them.

        Raises:
            SourceUnavailable: the server cannot be reached.
        """
        tasks = [task for task in cursor.open_snapshots if task.to_divide]
        if not tasks:
            return cursor
        wanted, most = int(self.source.config.snapshot.range_bytes), self.source.config.snapshot.max_ranges
        if not wanted or most < 2:
            return cursor.with_snapshots(task.divided((), ()) for task in tasks)
        with closing(self.source.connect()) as connection:
            sizes = InformationSchema(connection).sizes()
            numbers = [min(most, sizes.get(task.name.pair, 0) // wanted) for task in tasks]
            return cursor.with_snapshots(
                self._divided(connection, task, number) if number > 1 else task.divided((), ())
                for task, number in zip(tasks, numbers, strict=True)
            )

    def _divided(self, connection: Session, task: SnapshotTask, number: int) -> SnapshotTask:
        """Return the task in at most so many ranges; undivided if its key has no order, or the server refuses to help."""
        whole, reader = task.divided((), ()), InformationSchema(connection)
        if last_chunk_of(self.source.store, whole)[0]:  # somebody has begun to read it without waiting for a plan
            return whole
        try:
            schema = reader.schema(task.database, task.table)
            if schema is None or not can_be_chunked(schema) or not (index := reader.key_name(schema)):
                return whole
            ranges = KeySpace(connection, schema, index).divided(number)
            key = key_definition(schema, reader.collations(schema))
        except SourceError as error:
            if error.retryable:
                raise
            log.warning("the snapshot of %s is not divided: %s", task.name, error.message)
            return whole
        if ranges:
            log.info("the snapshot of %s is read in %s", task.name, counted(len(ranges), "range"))
        return task.divided(ranges, key)


def log_progress(cursor: Cursor) -> None:
    """Log how far each divided snapshot is that earlier runs have begun: the sum over its ranges."""
    for task in cursor.open_snapshots:
        if task.ranges and task.chunks:
            log.info("snapshot of %s: %s", task.title, task.progress)
