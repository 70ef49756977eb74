"""Drains one window: server, decoder and store wired together."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from itertools import chain

from cdc_lib.binlog.rows.masking import Shape
from cdc_lib.drain.batch import WindowBatches
from cdc_lib.drain.columns import shape_of
from cdc_lib.drain.exclusions import Exclusions
from cdc_lib.drain.origin import ServerOrigin
from cdc_lib.errors import (
    BatchMismatch,
)
from cdc_lib.model.cascades import Cascades
from cdc_lib.model.gtid import GtidSet
from cdc_lib.model.manifest import Manifest
from cdc_lib.model.results import DrainResult, result_of
from cdc_lib.model.server_identity import ServerIdentity
from cdc_lib.model.window import Window
from cdc_lib.mysql.connection import Session
from cdc_lib.mysql.foreign_keys import cascades_of, logs_cascades
from cdc_lib.mysql.information_schema import InformationSchema
from cdc_lib.mysql.planned_server import facts_of_planned
from cdc_lib.mysql.server_facts import ServerFacts, read_charsets
from cdc_lib.ports import ObjectStore
from cdc_lib.schema_history.versions import Histories
from cdc_lib.source import Source
from cdc_lib.store import layout
from cdc_lib.store.erasures import erasures_by_table
from cdc_lib.store.manifests import find_manifest, publish_manifest
from cdc_lib.store.objects.layered import LayeredStore
from cdc_lib.store.observations import last_tables


@dataclass(frozen=True, slots=True)
class Drainer:
    """Drains the windows of one source.

    Args:
        source: the source.
        versions: a second store for schema versions that ``store`` lacks; None if it has all.
        known: keys of schema versions that a listing may lack.
    """

    source: Source
    versions: ObjectStore | None = None
    known: Collection[str] = ()

    @property
    def shape(self) -> Shape:
        """Which columns are stored, and with which masks."""
        return shape_of(self.source.config, self.source.credentials)

    def window(
        self,
        window: Window,
        identity: ServerIdentity,
        earlier: Sequence[Window] = (),
        leaving: Exclusions | None = None,
        file_times: Mapping[str, datetime] | None = None,
        before: GtidSet | None = None,
    ) -> DrainResult:
        """Read one window and write its batch, unless it is already stored.

        Args:
            window: the window to read.
            identity: server that the window's positions belong to.
            earlier: windows in flight before it; the DDL of those without a batch is read as well if needed.
            leaving: tables that the window leaves out, or may leave out.
            file_times: known creation times of binlog files.
            before: GTIDs of all transactions before the window; None if unknown.

        Raises:
            ServerChanged: another server answers.
            PositionNotFound: a file has another creation time: the server's binlog was reset meanwhile.
            BinlogIncomplete: transactions are missing from a file.
            BatchMismatch: the window's batch was already stored with other contents.
        """
        began = time.monotonic()
        key = layout.manifest_key(window)
        if (manifest := find_manifest(self.source.store, key)) is not None:
            return result_of(window.id, [manifest], time.monotonic() - began, written=0)
        connection = self.source.connect()
        try:
            facts = facts_of_planned(connection, self.source.config.server, identity, self.source.name)
            charsets = read_charsets(connection)
            cascades = self._cascades(connection, facts)
        finally:
            connection.close()
        versions = LayeredStore(self.source.store, self.versions) if self.versions is not None else self.source.store
        stored = {before: find_manifest(self.source.store, layout.manifest_key(before)) for before in earlier}
        undrained = [before for before, manifest in stored.items() if manifest is None]
        known = chain(self.known, *(manifest.versions for manifest in stored.values() if manifest is not None))
        histories = Histories(
            self.source.config,
            self.source.credentials,
            versions,
            window.epoch,
            facts,
            charsets,
            dict.fromkeys(known, False),
        )
        with closing(ServerOrigin(self.source, self.shape, cascades=cascades)) as origin:
            erased = erasures_by_table(versions, self.source.name)
            batches = WindowBatches(self.source.config, self.source.store, self.shape, origin, erased)
            manifest = batches.write(window, histories, undrained, leaving or Exclusions(), file_times or {}, before)
        state = publish_manifest(self.source.store, key, manifest)
        if contents_of(state) != contents_of(manifest):
            raise BatchMismatch(
                "the window was drained before with other contents",
                hint="Its files may be written over: rewind the cursor to the window's start and drain it again.",
                source=window.source,
                key=key,
            )
        return result_of(window.id, [manifest], time.monotonic() - began, written=1)

    def _cascades(self, connection: Session, facts: ServerFacts) -> Cascades:
        """Return the foreign keys that change captured tables unseen by the binlog; none with ``cascades: ignore``.

        The plan read them after the end of the window that it planned.
        """
        if self.source.config.cascades == "ignore" or logs_cascades(facts):
            return Cascades()
        seen = last_tables(self.source.store, self.source.name)
        if seen is not None and not seen.cascades.logged and seen.identity.is_same_server(facts.identity):
            return seen.cascades
        return cascades_of(connection, facts, self.source.config.tables.select(InformationSchema(connection).tables()))


def contents_of(manifest: Manifest) -> tuple[object, ...]:
    """Return the contents that two drains of one window must have in common."""
    quarantined = tuple(one.table for one in manifest.quarantined)
    raw = manifest.raw and manifest.raw.sha256
    return (
        manifest.files,
        manifest.prepared_files,
        manifest.prepared,
        manifest.xa_decisions,
        manifest.statements,
        quarantined,
        raw,
    )
