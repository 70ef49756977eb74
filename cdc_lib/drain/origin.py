"""Where the bytes of a window come from, and what else its decoding asks for: the server, or the archive of its raw events."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol, cast

from cdc_lib.binlog.ddl.effects import Kept
from cdc_lib.binlog.rows.masking import Shape
from cdc_lib.config import Credentials, SourceConfig
from cdc_lib.errors import ConfigError
from cdc_lib.lake.routing import LakeMerge, indistinct, lake_merges
from cdc_lib.model.cascades import Cascades
from cdc_lib.model.projection import refuse_masked_keys
from cdc_lib.model.raw_event import RawArchive, RawFacts
from cdc_lib.model.server_identity import ServerIdentity
from cdc_lib.model.table_name import TableName
from cdc_lib.model.unclosed import Unclosed
from cdc_lib.model.window import Window
from cdc_lib.mysql.binlog_stream import binlog_dump
from cdc_lib.mysql.connection import Session, connect
from cdc_lib.mysql.information_schema import InformationSchema
from cdc_lib.mysql.server_facts import ServerFacts
from cdc_lib.plan.file_ends import check_ends
from cdc_lib.ports import BinlogStream, ObjectStore
from cdc_lib.store.raw_archive import ArchivedStream

VARIABLES = ("binlog_checksum", "binlog_row_metadata", "lower_case_table_names")
"""Global variables on which the decoding of a window depends."""


class Origin(Protocol):
    """Gives a window's bytes and answers for the server."""

    def stream(self, window: Window, identity: ServerIdentity) -> AbstractContextManager[BinlogStream]:
        """Open the bytes from the window's start on."""
        ...

    def check_ends(self, server: ServerFacts, files: Sequence[Unclosed]) -> None:
        """Look whether files that were read and end without saying so are whole."""
        ...

    def kept(self, database: str, table: str) -> Kept:
        """Say how the lake keeps a table."""
        ...

    def untold(self, database: str, table: str) -> frozenset[str]:
        """Name the columns whose changes the server may leave out of an after image."""
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
    """What the server answered, by ``database.table``; asked over one session, and once however often a window is read."""

    kept: dict[str, Kept] = field(default_factory=dict)
    untold: dict[str, list[str]] = field(default_factory=dict)
    shared: Sequence[LakeMerge] | None = None
    session: Session | None = None


@dataclass(frozen=True, slots=True)
class ServerOrigin:
    """Asks the server.

    Args:
        config: of the source.
        credentials: log-in of the source.
        shape: which columns are stored, and with which masks.
        answers: what was asked for and answered.
        cascades: what foreign keys change without the binlog.
    """

    config: SourceConfig
    credentials: Credentials
    shape: Shape
    answers: _Answers = field(default_factory=_Answers)
    cascades: Cascades = field(default_factory=Cascades)

    def stream(self, window: Window, identity: ServerIdentity) -> AbstractContextManager[BinlogStream]:
        """Ask for the binlog from the window's start on."""
        return binlog_dump(self.config.server, self.credentials, identity, window.start)

    def check_ends(self, server: ServerFacts, files: Sequence[Unclosed]) -> None:
        """Ask the server what comes after files that end without saying so.

        Raises:
            BinlogIncomplete: transactions are missing.
        """
        check_ends(self.config.source, self.config.server, self.credentials, server, files)

    def kept(self, database: str, table: str) -> Kept:
        """Ask the server how the lake keeps a table; one that is gone is taken for one that could be read."""
        name = TableName(database, table)
        if name not in self.answers.kept:
            self.answers.kept[name] = self._kept(database, table)
        return self.answers.kept[name]

    def close(self) -> None:
        """End the session, if there is one."""
        if self.answers.session is not None:
            self.answers.session.close()
            self.answers.session = None

    def _asked(self) -> InformationSchema:
        if self.answers.session is None:
            self.answers.session = connect(self.config.server, self.credentials)
        return InformationSchema(self.answers.session)

    def _shared(self) -> Sequence[LakeMerge]:
        """Return the lake tables of all captured tables, which are listed once."""
        if self.answers.shared is None:
            captured = [TableName(*one) for one in self.config.tables.select(self._asked().tables())]
            self.answers.shared = lake_merges(self.config, captured)
        return self.answers.shared

    def _kept(self, database: str, table: str) -> Kept:
        schema = self._asked().schema(database, table)
        if schema is None:
            return "rows"
        try:
            refuse_masked_keys(self.shape.of(self.config.values.applied(schema)))
        except ConfigError:
            return "fixed"
        return "fixed" if indistinct(self.config.source, TableName(database, table), self._shared()) else "rows"

    def untold(self, database: str, table: str) -> frozenset[str]:
        """Name the columns whose changes the server may leave out of an after image.

        MariaDB logs a virtual column with MINIMAL only when an index needs it; MySQL whenever it changed.
        """
        name = TableName(database, table)
        if name not in self.answers.untold:
            self.answers.untold[name] = sorted(self._asked().virtual_columns(database, table))
        return frozenset(self.answers.untold[name])

    def facts(self, server: ServerFacts, charsets: dict[int, str]) -> RawFacts:
        """Return what a decoder needs to decode the window again, the answers that were given included."""
        variables = {name: server.variables[name] for name in VARIABLES if name in server.variables}
        untold = dict(self.answers.untold)
        return RawFacts(server.identity, variables, charsets, dict(self.answers.kept), untold, self.cascades)


@dataclass(frozen=True, slots=True)
class ArchivedOrigin:
    """Reads the archive of one window.

    Args:
        store: where it lies.
        manifest: key of the window's manifest.
        archive: what the manifest names.
        known: what was asked of the server then.
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
        """What foreign keys changed without the binlog, as it was."""
        return self.known.cascades

    def check_ends(self, server: ServerFacts, files: Sequence[Unclosed]) -> None:
        """Do nothing: the server was asked before the archive was published."""

    def kept(self, database: str, table: str) -> Kept:
        """Say what the server said then; what nobody asked is taken for a table that can be read."""
        return cast("Kept", self.known.kept.get(TableName(database, table), "rows"))

    def untold(self, database: str, table: str) -> frozenset[str]:
        """Say what the server said then."""
        return frozenset(self.known.untold.get(TableName(database, table), ()))

    def facts(self, server: ServerFacts, charsets: dict[int, str]) -> RawFacts:  # noqa: ARG002 - as they were
        """Return what was kept."""
        return self.known


def archived_facts(known: RawFacts) -> ServerFacts:
    """Return the server of a window as far as its decoding needs it."""
    return ServerFacts(known.identity, (), known.variables, None, "", ())
