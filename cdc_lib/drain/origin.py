"""Where a window's bytes and the server facts for its decoding come from: the server, or the archive of raw events."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol, cast

from cdc_lib.binlog.ddl.effects import Kept
from cdc_lib.binlog.framing.scan_progress import WindowSummary
from cdc_lib.binlog.rows.masking import Shape
from cdc_lib.config.shape import stored_comments
from cdc_lib.errors import ConfigError
from cdc_lib.lake.routing import LakeMerge, indistinct, lake_merges
from cdc_lib.model.cascades import Cascades
from cdc_lib.model.comments import TableComments
from cdc_lib.model.projection import refuse_masked_keys
from cdc_lib.model.raw_event import RawArchive, RawFacts
from cdc_lib.model.server_identity import ServerIdentity
from cdc_lib.model.table_name import TableName
from cdc_lib.model.window import Window
from cdc_lib.mysql.binlog_stream import binlog_dump
from cdc_lib.mysql.connection import Session
from cdc_lib.mysql.information_schema import InformationSchema
from cdc_lib.mysql.server_facts import ServerFacts
from cdc_lib.plan.file_ends import check_ends, check_gtids
from cdc_lib.ports import BinlogStream, ObjectStore
from cdc_lib.source import Source
from cdc_lib.store.raw_archive import ArchivedStream

STORED_ARE_LOGGED = (11, 4, 5)
"""The newest MariaDB that is known to log stored generated columns with MINIMAL and NOBLOB; 11.8.6 is known not to."""

VARIABLES = ("binlog_checksum", "binlog_row_metadata", "lower_case_table_names", "old_mode")
"""Global variables on which the decoding of a window depends."""


class Origin(Protocol):
    """Provides a window's bytes and what its decoding needs from the server."""

    def stream(self, window: Window, identity: ServerIdentity) -> AbstractContextManager[BinlogStream]:
        """Open the stream at the window's start."""
        ...

    def check_complete(self, server: ServerFacts, window: Window, summary: WindowSummary) -> None:
        """Check that no transactions are missing from the files that were read."""
        ...

    def kept(self, database: str, table: str) -> Kept:
        """Return how the lake keeps a table."""
        ...

    def made_of(self, database: str, table: str) -> Mapping[str, str]:
        """Return the expressions of a table's generated columns, by their names."""
        ...

    def omittable(self, version: tuple[int, ...], database: str, table: str) -> frozenset[str]:
        """Return the columns whose changes an after image may omit."""
        ...

    def comments(self, tables: Iterable[tuple[str, str]]) -> tuple[TableComments, ...]:
        """Return the comments of those of the tables whose comments the lake keeps."""
        ...

    @property
    def cascades(self) -> Cascades:
        """What foreign keys change without the binlog."""
        ...

    def facts(self, server: ServerFacts, charsets: dict[int, str]) -> RawFacts:
        """Return what a decoder needs to decode the window again, the answers that were given included."""
        ...


@dataclass(slots=True)
class _Answers:
    """What the server returned, by ``database.table``: asked once, over one session, for all readings of a window."""

    kept: dict[str, Kept] = field(default_factory=dict)
    made_of: dict[str, dict[str, str]] = field(default_factory=dict)
    omittable: dict[str, list[str]] = field(default_factory=dict)
    tables: frozenset[tuple[str, str]] | None = None
    shared: Mapping[str, list[LakeMerge]] | None = None
    session: Session | None = None


@dataclass(frozen=True, slots=True)
class ServerOrigin:
    """Asks the server.

    Args:
        source: the source.
        shape: which columns are stored, and with which masks.
        answers: what the server returned so far.
        cascades: foreign key actions that are not in the binlog.
    """

    source: Source
    shape: Shape
    answers: _Answers = field(default_factory=_Answers)
    cascades: Cascades = field(default_factory=Cascades)

    def stream(self, window: Window, identity: ServerIdentity) -> AbstractContextManager[BinlogStream]:
        """Request the binlog from the window's start on."""
        config = self.source.config
        of = f"{config.store.url}/{config.source}"
        return binlog_dump(config.server, self.source.credentials, identity, window.start, of)

    def check_complete(self, server: ServerFacts, window: Window, summary: WindowSummary) -> None:
        """Check on the server that files without an end event are complete, and that no GTIDs are missing.

        Raises:
            BinlogIncomplete: transactions are missing.
        """
        at = self.source.config.server, self.source.credentials, server
        check_ends(self.source.name, *at, summary.unclosed)
        check_gtids(*at, window, summary.gtid_gaps, summary.gtids_read)

    def kept(self, database: str, table: str) -> Kept:
        """Return how the lake keeps a table; a table that no longer exists counts as readable."""
        name = TableName(database, table)
        if name not in self.answers.kept:
            self.answers.kept[name] = self._kept(database, table)
        return self.answers.kept[name]

    def made_of(self, database: str, table: str) -> Mapping[str, str]:
        """Return the expressions of a table's generated columns, by their names; of one that has another name now, of all of its database."""
        name = TableName(database, table)
        if name not in self.answers.made_of:
            asked = self._asked()
            chosen = table if asked.exists(database, table) else None
            self.answers.made_of[name] = asked.generated_from(database, chosen)
        return self.answers.made_of[name]

    def close(self) -> None:
        """Close the session, if open."""
        if self.answers.session is not None:
            self.answers.session.close()
            self.answers.session = None

    def _asked(self) -> InformationSchema:
        if self.answers.session is None:
            self.answers.session = self.source.connect()
        return InformationSchema(self.answers.session)

    def _tables(self) -> frozenset[tuple[str, str]]:
        """Return the captured tables that exist; they are listed once."""
        if self.answers.tables is None:
            self.answers.tables = frozenset(self.source.config.tables.select(self._asked().tables()))
        return self.answers.tables

    def _shared(self, table: TableName) -> Sequence[LakeMerge]:
        """Return the lake tables of a captured table, with all tables that share them."""
        if self.answers.shared is None:
            self.answers.shared = shared = defaultdict(list)
            for lake in lake_merges(self.source.config, [TableName(*one) for one in self._tables()]):
                for one in dict.fromkeys(lake.tables):
                    shared[one].append(lake)
        return self.answers.shared.get(table, ())

    def _kept(self, database: str, table: str) -> Kept:
        asked = self._asked()
        # Of a table that was dropped since, its definition is not asked for: a window may have thousands of them.
        there = (database, table) in self._tables() or asked.exists(database, table)
        schema = asked.schema(database, table) if there else None
        if schema is None:
            return "rows"
        try:
            refuse_masked_keys(self.shape.of(self.source.config.values.applied(schema)))
        except ConfigError:
            return "fixed"
        name = TableName(database, table)
        return "fixed" if indistinct(self.source.name, name, self._shared(name)) else "rows"

    def omittable(self, version: tuple[int, ...], database: str, table: str) -> frozenset[str]:
        """Return the columns whose changes an after image may omit.

        With MINIMAL, MariaDB logs a virtual column only if an index needs it, MySQL whenever it changed. Newer versions of MariaDB
        do not log stored generated columns either.

        Args:
            version: of the server.
            database: name of the database.
            table: name of the table.
        """
        name = TableName(database, table)
        if name not in self.answers.omittable:
            stored = version > STORED_ARE_LOGGED
            self.answers.omittable[name] = sorted(self._asked().generated_columns(database, table, stored=stored))
        return frozenset(self.answers.omittable[name])

    def comments(self, tables: Iterable[tuple[str, str]]) -> tuple[TableComments, ...]:
        """Return the current comments of those of the tables that exist and whose comments the lake keeps."""
        asked = sorted({one for one in tables if self.source.config.carries_comments(*one)})
        there = [one for one in asked if one in self._tables()] if asked else []
        found = (self._asked().comments(*one) for one in there)
        return tuple(stored_comments(self.source.config, one) for one in found if one is not None)

    def facts(self, server: ServerFacts, charsets: dict[int, str]) -> RawFacts:
        """Return what a decoder needs to decode the window again, the answers that were given included."""
        variables = {name: server.variables[name] for name in VARIABLES if name in server.variables}
        omittable = dict(self.answers.omittable)
        return RawFacts(
            server.identity,
            variables,
            charsets,
            dict(self.answers.kept),
            omittable,
            self.cascades,
            dict(self.answers.made_of),
        )


@dataclass(frozen=True, slots=True)
class ArchivedOrigin:
    """Reads the archive of one window.

    Args:
        store: of the archive.
        manifest: key of the window's manifest.
        archive: as in the manifest.
        known: the server facts of that time.
    """

    store: ObjectStore
    manifest: str
    archive: RawArchive
    known: RawFacts

    def stream(
        self,
        window: Window,  # noqa: ARG002 - the archive is that of the window
        identity: ServerIdentity,  # noqa: ARG002
    ) -> AbstractContextManager[BinlogStream]:
        """Open the archive."""
        return ArchivedStream(self.store, self.manifest, self.archive)

    @property
    def cascades(self) -> Cascades:
        """The foreign key actions that were not in the binlog then."""
        return self.known.cascades

    def check_complete(self, server: ServerFacts, window: Window, summary: WindowSummary) -> None:
        """Do nothing: this was checked before the archive was published."""

    def kept(self, database: str, table: str) -> Kept:
        """Return how the lake kept the table then; an unknown table counts as readable."""
        return cast("Kept", self.known.kept.get(TableName(database, table), "rows"))

    def made_of(self, database: str, table: str) -> Mapping[str, str]:
        """Return the expressions that the server named then."""
        return self.known.made_of.get(TableName(database, table), {})

    def omittable(self, version: tuple[int, ...], database: str, table: str) -> frozenset[str]:  # noqa: ARG002 - no server
        """Return the columns that the server named then."""
        return frozenset(self.known.omittable_columns.get(TableName(database, table), ()))

    def comments(self, tables: Iterable[tuple[str, str]]) -> tuple[TableComments, ...]:  # noqa: ARG002 - no server
        """Return nothing: the batch of the first drain has brought them."""
        return ()

    def facts(self, server: ServerFacts, charsets: dict[int, str]) -> RawFacts:  # noqa: ARG002 - as they were
        """Return the archived facts."""
        return self.known


def archived_facts(known: RawFacts) -> ServerFacts:
    """Return the server facts that the decoding of an archived window needs."""
    return ServerFacts(known.identity, (), known.variables, None, "", ())
