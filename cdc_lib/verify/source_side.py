"""A session at a source whose tables are compared: what is compared of a table, and rows between two watermarks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from cdc_lib.drain.columns import shape_of
from cdc_lib.lake.routing import LakeMerge, RoutedTable
from cdc_lib.model.cursor import Cursor
from cdc_lib.model.lake_table import LakeTable
from cdc_lib.model.position import Point
from cdc_lib.mysql.connection import Session
from cdc_lib.mysql.information_schema import InformationSchema
from cdc_lib.mysql.planned_server import facts_of_cursor
from cdc_lib.mysql.read_only_session import PATIENCE_SECONDS, answer, reading
from cdc_lib.mysql.server_facts import ServerFacts, read_binlog_end
from cdc_lib.mysql.watermark import low_watermark
from cdc_lib.source import Source
from cdc_lib.verify.comparability import Key, Subject, subject_of
from cdc_lib.verify.judgement import Half
from cdc_lib.verify.source_checksums import SourceSums

BEFORE_ALL = Point(0, 0, 0)

WAITS_FOR_SNAPSHOT = "it is quarantined, or released and not in the lake again yet; see cdc status"
"""Why a table whose rows in the lake are not all as of the cursor is not compared."""


@dataclass(frozen=True, slots=True)
class SourceSide:
    """One read-only session.

    Args:
        source: the source.
        facts: of the server.
        drain: the drain cursor, of this server.
    """

    source: Source
    connection: Session
    facts: ServerFacts
    drain: Cursor

    @property
    def schemas(self) -> InformationSchema:
        """The definitions of its tables."""
        return InformationSchema(self.connection)

    def subject(self, lake: LakeMerge, routed: RoutedTable, state: Callable[[], LakeTable | None]) -> Subject | str:
        """Return what is compared of a table, by its definition now, or why it cannot be compared.

        Raises:
            SourceError: the source cannot be read.
            MergeError: the lake cannot be read.
        """
        schema = self.schemas.schema(routed.database, routed.name)
        if schema is None:
            return "it was dropped at the source"
        found = state()
        values = self.source.config.values.as_held(schema, {} if found is None else found.types)
        schema = values.applied(schema)
        policy = self.source.config.schema_changes.policy(routed.database, routed.name)
        return subject_of(
            schema,
            shape_of(self.source.config, self.source.credentials).of(schema),
            routed.target,
            lake.name,
            found,
            routed.constants(self.source.name),
            values,
            ignores_added=policy.add_column == "keep",
        )

    def skipped(self, merged: Cursor, lake: LakeMerge, routed: RoutedTable) -> str:
        """Return why a comparable table is not compared as a whole now; empty if it is."""
        if any(one.table == routed.table for one in self.drain.lagging_in(merged)):
            return WAITS_FOR_SNAPSHOT
        if why := indistinct_rows(self.source.name, lake, routed):
            return why
        read = any(task.complete for task in merged.snapshots if task.name == routed.table)
        if self.source.config.start == "snapshot" and not read:
            return "its snapshot is not complete in the lake yet"
        if self.source.config.start not in ("snapshot", "earliest") and not read:
            return "the source began without a snapshot: rows that did not change since are not in the lake"
        return ""

    def seen(self, table: SourceSums, keys: Mapping[str, Key]) -> dict[str, Half]:
        """Read rows between two watermarks.

        Raises:
            SourceError: the source cannot be read.
        """
        if not keys:
            return {}
        low = Point.at(self.drain.epoch, low_watermark(self.connection, self.facts))
        rows = table.rows(keys)
        answer(self.connection, "COMMIT")  # on MariaDB the watermark began a transaction
        high = Point.at(self.drain.epoch, read_binlog_end(self.connection, self.facts))
        return {name: Half(low, high, rows.get(name)) for name in keys}


@contextmanager
def source_side(source: Source, drain: Cursor, patience: float = PATIENCE_SECONDS) -> Iterator[SourceSide]:
    """Open a session at the server of a source's drain cursor, and close it at the end.

    Raises:
        ServerChanged: another server answers.
        SourceError: the source cannot be read.
    """
    here = source.at_cursor(drain)
    with reading(here.config.server, here.credentials, patience) as connection:
        facts = facts_of_cursor(connection, here.config.server, drain)
        yield SourceSide(here, connection, facts, drain)


def indistinct_rows(source: str, lake: LakeMerge, routed: RoutedTable) -> str:
    """Return why the rows of a source table cannot be distinguished from others in its lake table; empty if they can."""
    if len(lake.routed_tables) > 1 and not routed.constants(source):
        return "it shares its lake table with others, and no column there shows the source table of a row"
    return ""
