"""What a plan asks a server about the definitions of its captured tables: nothing of those that it has looked at before."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Self

from cdc_lib.config import SourceConfig
from cdc_lib.config.shape import is_mapped
from cdc_lib.model.cascades import Cascades
from cdc_lib.model.cursor import Cursor
from cdc_lib.model.observation import TablesObservation
from cdc_lib.mysql.connection import Session
from cdc_lib.mysql.foreign_keys import cascades_of, logs_cascades
from cdc_lib.mysql.information_schema import InformationSchema
from cdc_lib.mysql.server_facts import ServerFacts
from cdc_lib.plan.defined_tables import DefinedTables
from cdc_lib.ports import ObjectStore
from cdc_lib.schema_history.versions import Histories
from cdc_lib.store.observations import last_tables, note_tables

Tables = Collection[tuple[str, str]]
"""(database, table) of each."""


@dataclass(frozen=True, slots=True)
class ServerDefinitions:
    """The definitions of the captured tables.

    Args:
        tables: the captured tables.
        defined: which of them were defined again since the last plan.
        cascades: their foreign keys.
        seen: what is stored for the next plan, if all of them are looked at now; None if it asks nothing either.
    """

    tables: Sequence[tuple[str, str]]
    defined: DefinedTables
    cascades: Cascades
    seen: TablesObservation | None

    @classmethod
    def read(
        cls,
        connection: Session,
        config: SourceConfig,
        store: ObjectStore,
        facts: ServerFacts,
        tables: Sequence[tuple[str, str]],
        check: Callable[[Tables], None] = lambda _: None,
    ) -> Self:
        """Ask after the end of the binlog, and before the definitions.

        Args:
            connection: a session on the server.
            config: of the source.
            store: has what the last plan looked at.
            facts: of the server.
            tables: the captured tables.
            check: refuses tables that do not fit the source file; it gets those that were not checked with this file.
        """
        mapped = any(is_mapped(config, *table) for table in tables)
        needed = mapped or bool(config.masks or config.columns) or not (facts.names_columns and logs_cascades(facts))
        last = last_tables(store, config.source) if needed else None
        if last is not None and not last.identity.is_same_server(facts.identity):
            last = None
        databases = {database for database, _ in tables if needed} | (
            last.cascades.databases() if last is not None else set()
        )
        defined = DefinedTables(last, InformationSchema(connection).defined(databases), facts.clock)
        file = hashlib.sha256(config.model_dump_json().encode()).hexdigest()
        checked = defined.unchanged if last is not None and last.checked == file else frozenset()
        check([one for one in tables if one not in checked])
        known = last.cascades if last is not None and not last.cascades.logged else None
        cascades = cascades_of(connection, facts, tables, known, defined.unchanged)
        seen = TablesObservation(config.source, facts.identity, {}, not facts.names_columns, cascades, file)
        return cls(tables, defined, cascades, seen if needed else None)

    def compared(self, histories: Histories, cursor: Cursor) -> tuple[Tables, Tables]:
        """Bring the schema history up to the server's definitions.

        Args:
            histories: of the source.
            cursor: the drain cursor.

        Returns:
            The tables that changed without a statement, which need new snapshots; and those that the next plan must look at once
            more.
        """
        if not histories.needed:
            return (), ()
        jumped = bool(cursor.moves) and cursor.moves[-1].kind not in ("start", "ack")
        former = cursor.epoch_before_return
        new = histories.register(self.tables, cursor.position, cursor_jumped=jumped, former=former)
        changed = [one for one in self.defined.to_compare(self.tables) if one not in new]
        if not changed or cursor.in_flight:  # what windows in flight change is not in the history yet
            return (), changed
        found = histories.compare(changed, cursor.position)
        return found.unseen, [*found.unseen, *found.undecided]  # a request counts when the cursor has moved

    @property
    def defined_again(self) -> Tables:
        """The captured tables that were made, renamed or changed since the last plan."""
        return [one for one in self.tables if one not in self.defined.unchanged]

    def note(self, store: ObjectStore, unfinished: Tables) -> None:
        """Store which tables the next plan need not look at, and their foreign keys for the windows."""
        if self.seen is None:
            return
        unsure = [*unfinished, *self.cascades.unseen]
        seen = replace(self.seen, defined=self.defined.looked_at([*self.tables, *self.cascades.parents()], unsure))
        if seen != self.defined.last:
            note_tables(store, seen)
