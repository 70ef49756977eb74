"""The schema history of one source: read from the server once, then updated by the binlog's DDL, kept in the store.

Law: a version is valid from its position up to the next version. It is read under a metadata lock, and is valid from the
last statement on that table in the binlog before that moment.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain

from cdc_lib.binlog.ddl.ddl import meaning
from cdc_lib.binlog.ddl.effects import Kept, as_rows
from cdc_lib.binlog.ddl.history.advance import Entity
from cdc_lib.binlog.ddl.history.column import Rules
from cdc_lib.binlog.ddl.history.window import Base, Gap, State, UnknownDefinition, WindowHistory, touched
from cdc_lib.binlog.ddl.redact import concealed
from cdc_lib.binlog.ddl.statement import Statement
from cdc_lib.binlog.statement_reader import Dated, read_statements
from cdc_lib.binlog.stream_facts import StreamFacts
from cdc_lib.config import Credentials, SourceConfig
from cdc_lib.errors import DecodeError, TableReplaced, TableUnreadable, UnknownSchema
from cdc_lib.model.position import Position
from cdc_lib.model.schema_version import Definition, SchemaVersion, decode_alike
from cdc_lib.model.table_name import TableName
from cdc_lib.model.window import Window
from cdc_lib.mysql.binlog_stream import binlog_dump
from cdc_lib.mysql.connection import connect
from cdc_lib.mysql.information_schema import source_type
from cdc_lib.mysql.server_facts import ServerFacts, read_binlog_end
from cdc_lib.mysql.table_definition import Definitions
from cdc_lib.ports import ObjectStore
from cdc_lib.store import layout
from cdc_lib.store.schemas import FormerState, SchemaVersions, VersionsAt

HINT = (
    "Set binlog_row_metadata=FULL at the source, so that new rows name their columns. A new snapshot replaces the rows in between: "
    "cdc snapshot {source} {table}"
)

UNSEEN = "its columns or its key were changed by a statement that is not in the binlog"


@dataclass(frozen=True, slots=True)
class _DefinitionRead:
    """A definition and the end of the binlog, both read under the table's metadata lock."""

    definition: Definition | None
    binlog_end: Position


@dataclass(frozen=True, slots=True)
class ComparedTables:
    """Tables whose definition at the server differs from the history.

    Args:
        unseen: those that no statement names.
        undecided: those that a statement names which is not drained yet.
    """

    unseen: Collection[Entity]
    undecided: Collection[Entity]


@dataclass(slots=True)
class _StatementRange:
    """The statements of a binlog range, read once and extended on demand.

    Args:
        read: reads a range.
        named: groups statements by the tables that they name.
    """

    read: Callable[[Position, Position], list[Dated]]
    named: Callable[[Sequence[Dated]], dict[Entity, list[Dated]]]
    start: Position | None = None
    stop: Position | None = None
    by_entity: dict[Entity, list[Dated]] = field(default_factory=dict)

    def naming(self, entity: Entity, start: Position, stop: Position) -> list[Dated]:
        """Return the statements that name a table, at least those between two positions."""
        if self.start is None or self.stop is None or start < self.start:
            self.by_entity = self.named(self.read(start, max(stop, self.stop or stop)))
            self.start, self.stop = start, max(stop, self.stop or stop)
        elif self.stop < stop:
            for other, more in self.named(self.read(self.stop, stop)).items():
                self.by_entity.setdefault(other, []).extend(more)
            self.stop = stop
        return self.by_entity.get(entity, [])


@dataclass(frozen=True, slots=True)
class Histories:
    """The histories of a source's tables in one epoch.

    Args:
        config: of the source.
        credentials: log-in of the source.
        store: of the versions.
        epoch: of the positions.
        facts: of the server.
        charsets: character set name of each collation number of the server.
        known: keys of versions that a listing may lack; true for those that are stored here, or were by an attempt before.
    """

    config: SourceConfig
    credentials: Credentials
    store: ObjectStore
    epoch: int
    facts: ServerFacts
    charsets: dict[int, str]
    known: dict[str, bool] = field(default_factory=dict)

    @property
    def versions(self) -> SchemaVersions:
        """The versions in the store."""
        return self._of_epoch(self.epoch)

    def _of_epoch(self, epoch: int) -> SchemaVersions:
        return SchemaVersions(self.store, self.config.source, epoch, self.known)

    @property
    def _fold(self) -> bool:
        return self.facts.folds_names

    @property
    def needed(self) -> bool:
        """Whether the binlog does not name columns."""
        return not self.facts.names_columns

    # --- first versions

    def register(
        self, tables: Iterable[Entity], since: Position, *, cursor_jumped: bool = False, former: int | None = None
    ) -> Collection[Entity]:
        """Write a first version for each table that has none, and for its database; returns these.

        Args:
            tables: the captured tables.
            since: start of the next window; definitions are valid from there on if no statement changed them since.
            cursor_jumped: whether the cursor jumped, so that statements may have been missed.
            former: epoch whose history knows the tables at ``since`` on the same server, because the cursor went back.

        Raises:
            SourceError: the server cannot be reached or refuses.
        """
        newest = self.versions.newest()
        captured = list(tables)
        everything = dict.fromkeys([*((database, "") for database, _ in captured), *captured])
        new = [e for e in everything if self._is_new(e, newest, since, cursor_jumped=cursor_jumped)]
        self._unregister(set(everything), newest, since)
        if not new:
            return ()
        with self._reader() as read_one:
            read = {entity: one for entity in new if (one := self._read(read_one, entity)) is not None}
        if not read:
            return ()
        statements = self.statements(since, max(r.binlog_end for r in read.values()))
        named = self._named(statements)
        before = self._of_epoch(former).states(since) if former is not None else {}
        self._put_former(before, since, statements, read)
        for entity, one in read.items():
            if one.definition is None:
                continue
            seen = [at for at, _ in named.get(entity, ()) if at < one.binlog_end]
            if not seen and _changed_unseen(before.get(entity), one.definition):
                self._put_unseen(SchemaVersion(self.config.source, self.epoch, *entity, since, None), since, one)
            else:
                self._put(entity, seen[-1] if seen else since, one.definition)
        return read.keys()

    def _put_former(
        self,
        before: Mapping[Entity, FormerState],
        since: Position,
        statements: Sequence[Dated],
        read: Mapping[Entity, _DefinitionRead],
    ) -> None:
        """Write what tables were at a position to which the cursor went back, if statements lead from there to what they are.

        Without it the columns of rows between there and the next statement would not be known, and not at all those of a table that
        was dropped since.

        Args:
            before: what an earlier epoch knows of that position.
            since: the position.
            statements: after it.
            read: what tables and databases are now.
        """

        def base(entity: Entity) -> tuple[Position, State]:
            known = before[entity].version.definition if entity in before and before[entity].held_at(since) else None
            return since, known or UnknownDefinition(since, None, "it is not known there")

        followed = self._following(base, lambda: list(statements), as_rows)
        for entity in before:
            state, now = base(entity)[1], read[entity].definition if entity in read else None
            after = followed.known(*entity)
            alike = now is None if after is None else now is not None and decode_alike(after, now)
            if isinstance(state, Definition) and alike and self._may_be_kept(entity):
                self._put(entity, since, state)

    # --- changes that no statement shows

    def compare(self, tables: Iterable[Entity], since: Position) -> ComparedTables:
        """Compare the server's definitions with the history, and write a version for each unseen change.

        The rows that events hold from ``since`` to the end of the binlog may be from before or after such a change: the table is
        not known for them, and a new snapshot has them.

        Args:
            tables: with versions.
            since: start of the next window; every window before it is drained.

        Raises:
            SourceError: the server cannot be reached or refuses.
        """
        known = VersionsAt(self.versions, since)
        unseen, changed = [], {}
        with self._reader() as read_one:
            for entity in tables:
                version = known.of(*entity)
                if version is None:
                    continue
                if version.definition is None:
                    # The plan that noticed a change ended before it moved the cursor.
                    unseen += [entity] if version.unseen and version.position == since else []
                    continue
                one = self._read(read_one, entity)
                if one is not None and one.definition and not decode_alike(version.definition, one.definition):
                    changed[entity] = version, one
        named = self._named(self.statements(since, max((one.binlog_end for _, one in changed.values()), default=since)))
        for entity, (version, one) in changed.items():
            if entity not in named:
                self._put_unseen(version, since, one)
                unseen.append(entity)
        return ComparedTables(unseen, named.keys() & changed.keys())

    def _put_unseen(self, before: SchemaVersion, since: Position, now: _DefinitionRead) -> None:
        """Write that a table changed without a statement: what it is now, if no event lies in between."""
        number = before.unseen + 1 if before.position == since else 1
        definition = now.definition if now.binlog_end == since else None
        self.versions.put(replace(before, position=since, definition=definition, statement="", unseen=number))

    def _named(self, statements: Sequence[Dated]) -> dict[Entity, list[Dated]]:
        """Group statements by the tables and databases that they name; each statement is parsed once."""
        by_entity: dict[Entity, list[Dated]] = {}
        for dated in statements:
            for entity in touched(dated[1], fold=self._fold):
                by_entity.setdefault(entity, []).append(dated)
        return by_entity

    def _read(self, read_one: Callable[[Entity], _DefinitionRead], entity: Entity) -> _DefinitionRead | None:
        """Read a definition; None for an unreadable table, which the first window with rows of it quarantines.

        Raises:
            TableUnreadable: the server refuses to read the table, and ``on_error`` is ``stop``.
        """
        try:
            return read_one(entity)
        except TableUnreadable:
            if self.config.on_error != "quarantine":
                raise
            return None

    def _is_new(self, entity: Entity, newest: dict[str, str], since: Position, *, cursor_jumped: bool) -> bool:
        key = newest.get(layout.versions_prefix(self.config.source, self.epoch, *entity), "-lost.")
        return "-lost." in key or (cursor_jumped and since.sortable not in key)

    def _unregister(self, captured: set[Entity], newest: dict[str, str], since: Position) -> None:
        """Mark tables that are no longer captured: their statements are not followed from here on."""
        prefixes = {layout.versions_prefix(self.config.source, self.epoch, *entity) for entity in captured}
        for prefix, key in newest.items():
            if prefix in prefixes or "-lost." in key or "/databases/" in key:
                continue
            version = self.versions.load(key)
            if version is not None and not self._follows(version.database, version.table):
                self._put((version.database, version.table), since, None)

    def _put(self, entity: Entity, position: Position, state: Definition | None, shown: str = "") -> SchemaVersion:
        version = SchemaVersion(self.config.source, self.epoch, *entity, position, state, shown)
        return self.versions.put(version)

    # --- a window

    def of_window(
        self, window: Window, undrained: Sequence[Window], kept: Callable[[str, str], Kept] = as_rows
    ) -> WindowHistory:
        """Return the history at a window's start.

        Args:
            window: the window to read.
            undrained: earlier windows whose statements are not stored yet.
            kept: how the lake keeps a table.
        """
        followed_from = undrained[0].start if undrained else window.start
        # What another task stores meanwhile is not needed: windows that are not drained yet are among those before.
        versions = VersionsAt(self.versions, window.start)

        def base(entity: Entity) -> tuple[Position, State]:
            version = versions.of(*entity)
            if version is None:  # a statement that is followed may create it
                return followed_from, UnknownDefinition(
                    followed_from, None, "no definition was read before this window"
                )
            if version.definition is None and meaning(version.statement, version.database).effect == "drop":
                return version.position, None
            last = Statement(version.statement, version.database) if version.statement else None
            why = UNSEEN if version.unseen else "it is not known since then"
            lost = UnknownDefinition(version.position, last, why, unseen=version.unseen > 0)
            return version.position, version.definition or lost

        def gap() -> list[Dated]:
            return [dated for before in undrained for dated in self.statements(before.start, before.stop)]

        return self._following(base, gap, kept)

    def _following(self, base: Base, gap: Gap, kept: Callable[[str, str], Kept]) -> WindowHistory:
        mariadb, unclear = self.facts.identity.flavor == "mariadb", self.facts.utf8_is_utf8mb4
        rules = Rules(source_type, mariadb=mariadb, fold=self._fold, unclear_utf8=unclear)
        already_read = _StatementRange(self.statements, self._named)
        return WindowHistory(base, gap, partial(self._reread, already_read=already_read, kept=kept), rules)

    def keep(self, history: WindowHistory, window: Window) -> None:
        """Store the versions that the window's statements made, before its manifest is written.

        A table that a window makes and drops again leaves no version: nothing after the window could need it, and every
        plan would list it.

        Args:
            history: of the window.
            window: it.
        """
        dropped = self.versions.tables_of(history.dropped_databases(), window.start)
        entities = chain(history.entities(), *dropped.values())
        known = self.versions.begun_before((one for one in entities if self._may_be_kept(one)), window.stop)

        def is_kept(entity: Entity) -> bool:
            if entity not in known and not self._is_always_kept(entity):
                return False
            return known.get(entity, False) or not history.is_temporary(entity)

        for change in history.changes(is_kept, dropped):
            definition = change.state if isinstance(change.state, Definition) else None
            self._put(change.entity, change.position, definition, self._shown(change.statement))

    def _may_be_kept(self, entity: Entity) -> bool:
        """Whether versions of a table or database are kept if it has any."""
        return not entity[1] or self._follows(*entity)

    def _is_always_kept(self, entity: Entity) -> bool:
        """Whether versions of a table or database are kept, also if it has none yet."""
        return self.needed and self._follows(entity[0], entity[1] or "x")

    def _follows(self, database: str, table: str) -> bool:
        tables = self.config.tables
        return tables.captures(database, table) or tables.may_become_captured(database, table)

    def _reread(
        self,
        entity: Entity,
        lost: UnknownDefinition,
        *,
        already_read: _StatementRange,
        kept: Callable[[str, str], Kept],
    ) -> Definition:
        """Read an unknown definition from the server, if no statement changed it since it became unknown.

        Raises:
            TableReplaced, UnknownSchema: a statement changed it, and a new snapshot can replace the table's rows, or cannot.
        """
        known = self.versions.known_from(*entity, lost.position)
        if known is not None and known.definition is not None:
            self.known[layout.version_key(known)] = True
            return known.definition
        if entity[1] and self.versions.has_unseen(*entity, lost.position):
            raise self._still_unknown(entity, replace(lost, why=UNSEEN), [], kept)
        with self._reader() as read_one:
            one = read_one(entity)
        named = already_read.naming(entity, lost.position, one.binlog_end)
        seen = [dated for dated in named if lost.position < dated[0] < one.binlog_end]
        if seen or one.definition is None:
            raise self._still_unknown(entity, lost, seen, kept)
        state = self._put(entity, lost.position, one.definition)
        return state.definition or one.definition

    def _shown(self, statement: Statement) -> str:
        """Return a statement as it may be stored and shown."""
        plain = not self.config.masks and self.config.on_error != "quarantine"
        return statement.text if plain else concealed(statement.text, statement.quotings)

    def _still_unknown(
        self, entity: Entity, lost: UnknownDefinition, seen: list[Dated], kept: Callable[[str, str], Kept] | None = None
    ) -> DecodeError:
        what = f"after {self._shown(lost.statement)[:200]!r} ({lost.why})" if lost.statement else f"({lost.why})"
        later = "it changed, or does not exist any more"
        if seen:
            later = f"it was changed again at {seen[0][0]} by {self._shown(seen[0][1])[:200]!r}"
        again = kept is not None and bool(entity[1]) and kept(*entity) == "rows"
        kind, hint = (TableReplaced, "The table is read again automatically.") if again else (UnknownSchema, HINT)
        return kind(
            f"the columns of a table are not known from {lost.position} on {what}, and cannot be read from the server: {later}",
            hint=hint,
            source=self.config.source,
            table=TableName(*entity),
        )

    # --- the server

    @contextmanager
    def _reader(self) -> Iterator[Callable[[Entity], _DefinitionRead]]:
        """Give a function that reads a definition and the end of the binlog under the table's metadata lock."""
        server, credentials = self.config.server, self.credentials
        with closing(connect(server, credentials)) as one, closing(connect(server, credentials)) as other:
            definitions = Definitions(one)

            def read(entity: Entity) -> _DefinitionRead:
                if not entity[1]:
                    binlog_end = read_binlog_end(other, self.facts)
                    return _DefinitionRead(definitions.database(entity[0]), binlog_end)
                with definitions.locked(*entity) as definition:
                    return _DefinitionRead(definition, read_binlog_end(other, self.facts))

            yield read

    def statements(self, start: Position, stop: Position) -> list[Dated]:
        """Return the statements that define something in a binlog range."""
        if not start < stop:
            return []
        facts = StreamFacts(self.facts.identity.flavor, self.facts.checksum, self.charsets)
        window = Window(self.config.source, self.epoch, start, stop)
        with binlog_dump(self.config.server, self.credentials, self.facts.identity, start) as stream:
            return read_statements(window, stream, facts)


class ArchivedHistories(Histories):
    """The histories of a window that is read from its archived raw events, without the server."""

    __slots__ = ()

    def _reread(self, entity: Entity, lost: UnknownDefinition, **_server: object) -> Definition:
        """Return the definition that was read when the window was drained."""
        known = self.versions.known_from(*entity, lost.position)
        if known is None or known.definition is None:
            raise self._still_unknown(entity, lost, [])
        self.known[layout.version_key(known)] = True
        return known.definition


def _changed_unseen(before: FormerState | None, now: Definition) -> bool:
    """Whether a table changed, by what is known of it at a position, although no statement after that names it."""
    if before is None:
        return False
    definition = before.version.definition
    return before.unseen_since or (definition is not None and not decode_alike(definition, now))
