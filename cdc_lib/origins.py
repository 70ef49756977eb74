"""Where the bytes of a window come from, and what else its decoding asks for: the server, or the archive of its raw events."""

from __future__ import annotations

from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, field
from typing import Protocol, cast

from cdc_lib.config import Credentials, SourceConfig
from cdc_lib.decode.masking import Shape
from cdc_lib.decode.table_statements import Kept
from cdc_lib.errors import ConfigError
from cdc_lib.merge.routing import indistinct
from cdc_lib.model.identity import ServerIdentity
from cdc_lib.model.raw import RawArchive, RawFacts
from cdc_lib.model.window import Window
from cdc_lib.ports import BinlogStream, ObjectStore
from cdc_lib.source.connect import connect
from cdc_lib.source.facts import ServerFacts
from cdc_lib.source.schema import InformationSchema
from cdc_lib.source.stream import binlog_dump
from cdc_lib.store.raw_archive import ArchivedStream
from cdc_lib.window.chunks import refuse_masked_keys

VARIABLES = ("binlog_checksum", "binlog_row_metadata", "lower_case_table_names")
"""Global variables on which the decoding of a window depends."""


class Origin(Protocol):
    """Gives a window's bytes and answers for the server."""

    def stream(self, window: Window, identity: ServerIdentity) -> AbstractContextManager[BinlogStream]:
        """Open the bytes from the window's start on."""
        ...

    def kept(self, database: str, table: str) -> Kept:
        """Say how the lake keeps a table."""
        ...

    def untold(self, database: str, table: str) -> frozenset[str]:
        """Name the columns whose changes the server may leave out of an after image."""
        ...

    def facts(self, server: ServerFacts, charsets: dict[int, str]) -> RawFacts:
        """Return what a decoder needs to decode the window again, the answers that were given included."""
        ...


@dataclass(frozen=True, slots=True)
class _Answers:
    """What the server answered, by ``database.table``."""

    kept: dict[str, Kept] = field(default_factory=dict)
    untold: dict[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ServerOrigin:
    """Asks the server.

    Args:
        config: of the source.
        credentials: log-in of the source.
        shape: which columns are stored, and behind which masks.
        answers: what was asked for and answered.
    """

    config: SourceConfig
    credentials: Credentials
    shape: Shape
    answers: _Answers = field(default_factory=_Answers)

    def stream(self, window: Window, identity: ServerIdentity) -> AbstractContextManager[BinlogStream]:
        """Ask for the binlog from the window's start on."""
        return binlog_dump(self.config.server, self.credentials, identity, window.start)

    def kept(self, database: str, table: str) -> Kept:
        """Ask the server how the lake keeps a table; one that is gone is taken for one that could be read."""
        answer = self.answers.kept[f"{database}.{table}"] = self._kept(database, table)
        return answer

    def _kept(self, database: str, table: str) -> Kept:
        with closing(connect(self.config.server, self.credentials)) as connection:
            reader = InformationSchema(connection)
            schema = reader.schema(database, table)
            captured = [".".join(one) for one in self.config.tables.select(reader.tables())]
        if schema is None:
            return "rows"
        if not schema.primary_key:
            return "list"
        try:
            refuse_masked_keys(self.shape.of(self.config.values.applied(schema)))
        except ConfigError:
            return "fixed"
        return "fixed" if indistinct(self.config, f"{database}.{table}", captured) else "rows"

    def untold(self, database: str, table: str) -> frozenset[str]:
        """Name the columns whose changes the server may leave out of an after image.

        MariaDB logs a virtual column with MINIMAL only when an index needs it; MySQL whenever it changed.
        """
        with closing(connect(self.config.server, self.credentials)) as connection:
            found = InformationSchema(connection).virtual_columns(database, table)
        self.answers.untold[f"{database}.{table}"] = sorted(found)
        return found

    def facts(self, server: ServerFacts, charsets: dict[int, str]) -> RawFacts:
        """Return what a decoder needs to decode the window again, the answers that were given included."""
        variables = {name: server.variables[name] for name in VARIABLES if name in server.variables}
        return RawFacts(server.identity, variables, charsets, dict(self.answers.kept), dict(self.answers.untold))


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

    def kept(self, database: str, table: str) -> Kept:
        """Say what the server said then; what nobody asked is taken for a table that can be read."""
        return cast("Kept", self.known.kept.get(f"{database}.{table}", "rows"))

    def untold(self, database: str, table: str) -> frozenset[str]:
        """Say what the server said then."""
        return frozenset(self.known.untold.get(f"{database}.{table}", ()))

    def facts(self, server: ServerFacts, charsets: dict[int, str]) -> RawFacts:  # noqa: ARG002 - as they were
        """Return what was kept."""
        return self.known


def archived_facts(known: RawFacts) -> ServerFacts:
    """Return the server of a window as far as its decoding needs it."""
    return ServerFacts(known.identity, (), known.variables, None, "", ())
