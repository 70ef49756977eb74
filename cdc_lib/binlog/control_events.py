"""Events that come once in a while: a new table, a new file, a statement, and all that nobody expects.

Python looks at these, one at a time. What is not understood here stops the window.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np

from cdc_lib.binlog.ddl.ddl import Effect, Meaning, Name, meaning, without_set_statement
from cdc_lib.binlog.ddl.dml import written_tables
from cdc_lib.binlog.ddl.effects import Naming
from cdc_lib.binlog.ddl.redact import concealed
from cdc_lib.binlog.ddl.statement import Statement, statement_of
from cdc_lib.binlog.ddl.statement_text import UNKNOWN
from cdc_lib.binlog.ddl.table_changes import TableChanges
from cdc_lib.binlog.framing import event_types, packets
from cdc_lib.binlog.framing.damaged_file import (
    continue_after,
    hint_of_damage,
    hint_without_beginning,
    restore_or_continue,
    skip_event,
)
from cdc_lib.binlog.framing.file_header import checksum_bytes, gtids_before, release_of
from cdc_lib.binlog.framing.receiver import Bytes
from cdc_lib.binlog.framing.scan_progress import ScanProgress
from cdc_lib.binlog.rows.mapped_tables import KnownTables, closes_statement
from cdc_lib.binlog.rows.mariadb_compressed import inflate, inflated_size
from cdc_lib.binlog.rows.rolled_back import RolledBackRows
from cdc_lib.binlog.rows.xa import XaTransactions
from cdc_lib.binlog.stream_facts import StreamFacts
from cdc_lib.errors import ChecksumMismatch, ConfigError, DecodeError, TableReplaced, UnknownEvent, UnknownSchema
from cdc_lib.model.ddl_effect import TableStatement
from cdc_lib.model.lexer import Quoting
from cdc_lib.model.manifest import Ddl
from cdc_lib.model.table_name import EVERY_TABLE, TableName

_SHOWN = 120
"""Characters of a statement that an error shows."""
_UNREAD_NAME = (
    "a statement names a table in characters that its session's character set does not have, or that are not read"
)
_MAY_DIFFER = re.compile(rf"[{UNKNOWN}\\]")
"""In a name of a statement that is not read exactly: a backslash is another letter in swe7."""


class ControlEvents:
    """Takes what the scan gives to Python.

    Args:
        progress: of the walk.
        tables: learns and forgets.
        xa: takes what is prepared and decided.
        facts: of the server; its history takes the statements that define any table.
        naming: how statements name tables.
        rolled_back: gets what is rolled back.
    """

    def __init__(
        self,
        progress: ScanProgress,
        tables: KnownTables,
        xa: XaTransactions,
        facts: StreamFacts,
        naming: Naming | None = None,
        rolled_back: RolledBackRows | None = None,
    ) -> None:
        """Keep what events act upon."""
        self._rolled_back = rolled_back or RolledBackRows()
        self._inside = 0  # offset of the event at hand in a compressed transaction
        self._progress = progress
        self._tables = tables
        self._xa = xa
        self._facts = facts
        self._summary = progress.summary
        self._conceal = tables.captured.shape.masks  # the values in statements
        self._naming = naming or Naming()
        mariadb = progress.flavor == "mariadb"
        self._changes = TableChanges(self._naming, mariadb, tables.touches, tables.last)
        self._stamp = 0  # of the event at hand
        self._names_gtids = False  # whether the GTIDs before this file may still come

    def take(self, data: Bytes, event: int, end: int, *, inside: int | None = None) -> None:
        """Act on one event and step over it.

        Args:
            data: bytes off the wire.
            event: where its header starts.
            end: where it ends, without its checksum.
            inside: offset in a compressed transaction that it is part of; it takes no bytes of the file automatically then.

        Raises:
            DecodeError: it is not understood.
        """
        self._inside = inside or 0
        try:
            length = self._take(data, event, end)
        except (ValueError, IndexError, KeyError, OverflowError, ConfigError) as error:
            if isinstance(error, ConfigError) and data[event + 4] == event_types.TABLE_MAP:
                raise  # the bytes are right; the source file asks for what cannot be done to this table
            # Bytes that are no text, a column that does not exist, a file without a number: what Python finds where a
            # length lies.
            context = self._progress.error_context()
            raise DecodeError(
                f"a {event_types.name(int(data[event + 4]))} event does not follow the format: {error}",
                hint=hint_of_damage(context),
                **context,
            ) from error
        self._progress.step_over(0 if inside is not None else length)

    def _take(self, data: Bytes, event: int, end: int) -> int:
        """Act on one event and return how many bytes of the file it takes."""
        kind = int(data[event + 4])
        self._stamp = int.from_bytes(data[event : event + 4].tobytes(), "little")
        flags = int.from_bytes(data[event + 17 : event + 19].tobytes(), "little")
        length = int.from_bytes(data[event + 9 : event + 13].tobytes(), "little")
        made_up = (
            kind in (event_types.FORMAT_DESCRIPTION, event_types.ROTATE) and not data[event + 13 : event + 17].any()
        )
        in_file = flags & event_types.ARTIFICIAL == 0 and not made_up
        body = data[event + packets.HEADER : end].tobytes()
        if kind == event_types.FORMAT_DESCRIPTION:
            self._format(data[event : event + length].tobytes())
            self._names_gtids = in_file
        elif kind in (event_types.PREVIOUS_GTIDS, event_types.GTID_LIST):
            self._gtids_before_file(kind, body)
        elif kind == event_types.STOP or (kind == event_types.ROTATE and in_file):
            self._progress.closed = True
        elif kind == event_types.ROTATE:
            self._progress.enter_file(body[8:].decode(), int.from_bytes(body[:8], "little"))
        elif kind == event_types.TABLE_MAP:
            self._tables.take(body)
        elif kind == event_types.QUERY:
            self._statement_of(body, body[_statement_at(body) :])
        elif kind == event_types.QUERY_COMPRESSED:
            self._statement_of(body, _inflated(body, _statement_at(body)))
        elif kind == event_types.EXECUTE_LOAD_QUERY:
            # Three numbers about the file and one for duplicates are between the fixed part and the rest.
            plain = body[:13] + body[26:]
            self._statement_of(plain, plain[_statement_at(plain) :])
        elif kind == event_types.XA_PREPARE:
            self._xa.prepare(body)
        elif kind in event_types.ROWS and self._is_passed(kind, body):
            pass
        elif kind in event_types.ROWS:
            context = self._progress.error_context()
            raise UnknownSchema(
                "rows without a table map event before them", hint=hint_without_beginning(context), **context
            )
        elif kind in event_types.NEVER_IGNORED or not flags & event_types.IGNORABLE:
            message = f": {body[3 : 3 + body[2]].decode('utf-8', 'replace')!r}" if kind == event_types.INCIDENT else ""
            context = self._progress.error_context()
            raise UnknownEvent(
                f"an event type that is not supported: {event_types.name(kind)}{message}",
                hint=f"{event_types.hint(kind)} {continue_after(context)}",
                **context,
                event_type=kind,
            )
        return length if in_file else 0

    def _format(self, event: bytes) -> None:
        """Take the checksum algorithm of the file; table ids begin again."""
        progress = self._progress
        checksum = checksum_bytes(event, **progress.error_context())
        progress.release = release_of(event, **progress.error_context())[0]
        if progress.state[packets.IN_TRANSACTION]:
            raise DecodeError(
                "a binlog file ends inside a transaction",
                hint="The file before this one lost its end. "
                + restore_or_continue(progress.window.source, progress.file),
                **progress.error_context(),
            )
        progress.state[packets.CHECKSUM_BYTES] = checksum
        progress.file_times[progress.file] = datetime.fromtimestamp(int.from_bytes(event[:4], "little"), UTC)
        stored = int.from_bytes(event[-4:], "little")
        calculated = zlib.crc32(memoryview(event)[:-4])
        if checksum and stored != calculated:
            raise ChecksumMismatch(
                "the checksum of the format description is wrong", hint="", **progress.error_context()
            )
        self._tables.forget()

    def _gtids_before_file(self, kind: int, body: bytes) -> None:
        """Take the GTIDs before a file from its header; elsewhere the event says nothing."""
        if self._names_gtids and (named := gtids_before(self._progress.flavor, kind, body)) is not None:
            self._progress.take_earlier_gtids(named)
        self._names_gtids = False

    def _statement_of(self, body: bytes, text: bytes) -> None:
        """Look at the statement that is meant, if it is executed at all."""
        if self._progress.state[packets.ANNOUNCED]:
            # An ALTER that MariaDB logs in two parts counts when it commits, with the statement once more; or it failed.
            packets.end_transaction(self._progress.state)
            return
        if _statement_at(body) > len(body):
            msg = "its statement starts after its end"
            raise ValueError(msg)
        mariadb = self._progress.flavor == "mariadb"
        with_rows = mariadb and not self._progress.state[packets.STANDALONE]
        statement = statement_of(body, text, self._facts.charsets, with_rows=with_rows, mariadb=mariadb)
        self._query(_without_set_statement(statement) if mariadb else statement)

    def _query(self, statement: Statement) -> None:
        """Look at a statement; DDL ends a transaction of its own."""
        quoting = statement.quotings[0]
        means = self._meaning(statement, quoting)
        if means.effect == "xa":
            self._xa.statement(statement.text)
            return
        if means.effect in ("savepoint", "rollback"):
            self._rolled_back.statement(statement.text, self._progress, self._inside, quoting)
        if means.effect == "rows":
            self._statement(statement)
            return
        self._refuse_unread(statement, means)
        self._refuse_unparsed(statement, means.tables)
        self._refuse_either(statement)
        touched = [t for t in means.tables if self._tables.touches(*t) and not _is_no_text(statement, t)]
        followed = self._followed(touched)
        progress = self._progress
        if means.tables:
            for one in statement.readings:
                self._naming.masked.take(self._meaning(one, one.quotings[0]), one, progress.error_context())
        if means.tables and not statement.texts:
            found = self._changes.of(means, followed, statement, progress.position, progress.error_context())
            self._summary.statements += [self._dated(one) for one in found]
            if means.effect != "create":
                self._tables.cascades.statement(statement.text, means.tables, progress.error_context(), quoting)
            if touched:
                shown = concealed(statement.text, statement.quotings) if self._conceal else statement.text
                self._summary.ddl.append(Ddl(progress.position, statement.database, shown))
        if means.tables and self._facts.history is not None:
            for one in statement.readings:
                self._facts.history.took(progress.position, one)
            self._tables.forget()  # rows after it come with a table map of the new definition
        if self._ends_transaction(means.effect, opens=means.opens_transaction):
            packets.end_transaction(self._progress.state)

    def _dated(self, found: TableStatement) -> TableStatement:
        """Say when a statement came; rows after one that renames columns make files of their own."""
        found = replace(found, time=self._progress.commit_time, gtid=self._progress.gtid)
        if found.kind != "rename_columns":
            return found
        self._tables.renamed(found.table)
        return replace(found, stamp=self._stamp)

    def _meaning(self, statement: Statement, quoting: Quoting) -> Meaning:
        """Return what a statement means with these quotes, its names as the server compares them."""
        means = meaning(statement.text, statement.database, quoting)
        return means.folded() if self._naming.fold else means

    def _shown(self, statement: Statement) -> str:
        """Return a statement as errors show it: what may be quarantined is kept with its reason, which has no values."""
        hides = self._conceal or self._tables.captured.quarantines
        return (concealed(statement.text, statement.quotings) if hides else statement.text)[:_SHOWN]

    def _refuse_unread(self, statement: Statement, means: Meaning) -> None:
        """Stop at a statement that may concern any table.

        Raises:
            UnknownEvent: the tables that it names are not certain.
        """
        if means.effect != "unread":
            return
        context = self._progress.error_context()
        raise UnknownEvent(
            f"a statement whose tables are not understood: {self._shown(statement)!r}",
            hint="Continue after this event, and take a new snapshot of the tables that it changed (cdc snapshot): "
            f"{skip_event(context)}.",
            **context,
        )

    def _refuse_unparsed(self, statement: Statement, tables: Sequence[Name]) -> None:
        """Stop at a statement that names other tables than can be read from it, where they may be captured.

        Args:
            statement: itself.
            tables: that it names, as far as that can be read.

        Raises:
            UnknownEvent: its names have characters that are not known, or it depends on an SQL mode that is not.
        """
        what, uncertain = "", not (statement.exact or statement.has_halves or statement.texts)
        unparsed = [t for t in tables if uncertain and any(_MAY_DIFFER.search(name) for name in t)]
        if unparsed:
            what = _UNREAD_NAME
        elif len(statement.quotings) > 1:
            readings = {self._meaning(statement, one) for one in statement.quotings}
            unparsed = [t for one in readings for t in one.tables] if len(readings) > 1 else []
            what = "a statement sets the SQL mode that decides which tables it names"
        if any(UNKNOWN in database or self._tables.touches(database, EVERY_TABLE) for database, _ in unparsed):
            raise self._unparsed(what, statement)

    def _unparsed(self, what: str, statement: Statement) -> UnknownEvent:
        context = self._progress.error_context()
        return UnknownEvent(
            f"{what}: {self._shown(statement)!r}",
            hint="Use utf8mb4 and one SQL mode in sessions that define tables. Continue after this event, and take a new "
            f"snapshot of the tables that it changed (cdc snapshot): {skip_event(context)}.",
            **context,
        )

    def _refuse_either(self, statement: Statement) -> None:
        """Ask for reading the tables again of which a statement names one or the other, depending on its character set.

        Raises:
            TableReplaced: they are captured.
            UnknownEvent: the same, and no snapshot can read them.
        """
        readings = statement.readings if statement.texts else ()
        named = {t for one in readings for t in self._meaning(one, one.quotings[0]).tables}
        if meant := self._followed(sorted(t for t in named if self._tables.touches(*t))):
            if any(self._naming.kept(*t) != "rows" for t in meant):
                raise self._unparsed(_UNREAD_NAME, statement)
            raise TableReplaced(
                f"a statement is in UTF-8 or in the character set of its session, and names one table or another: {self._shown(statement)!r}",
                hint="The tables are read again automatically.",
                **self._progress.error_context(),
                table=", ".join(TableName(*one) for one in meant),
            )

    def _is_passed(self, kind: int, body: bytes) -> bool:
        """Whether a rows event is of a table that is not decoded and looked at all the same, or of none."""
        return self._tables.cascades.event(kind, body, self._progress) or closes_statement(body)

    def _followed(self, touched: list[tuple[str, str]]) -> list[tuple[str, str]]:
        """Return the tables that are not left out."""
        return [t for t in touched if not self._tables.captured.excludes(*t)]

    def _statement(self, statement: Statement) -> None:
        """Look at rows changed by a statement: they may pass when none of the tables that it writes is captured."""
        quoting, *others = statement.quotings
        written = None if others else written_tables(statement.text, statement.database, quoting)
        if written is not None and self._naming.fold:
            written = Meaning("rows", written).folded().tables
        self._refuse_unparsed(statement, written or ())
        touched = self._followed([t for t in written or () if self._tables.touches(*t)])
        if written is None or touched:
            context = self._progress.error_context()
            passed = "" if touched else f", and continue after this event: {skip_event(context)}"
            raise UnknownEvent(
                f"a statement that changed rows without writing them to the binlog: {self._shown(statement)!r}",
                hint="Set binlog_format=ROW at the source, also in sessions. Then take a new snapshot of the tables that it "
                f"changed (cdc snapshot){passed}.",
                **context,
                table=", ".join(TableName(*table) for table in touched) or None,
            )

    def _ends_transaction(self, effect: Effect, *, opens: bool) -> bool:
        if effect == "savepoint" or opens:
            return False
        if self._progress.flavor == "mariadb" and effect != "rollback":
            return bool(self._progress.state[packets.STANDALONE])
        return True


def _is_no_text(statement: Statement, table: Name) -> bool:
    """Whether MariaDB has the name of a table as bytes that are no text, so that no captured table has it: its rows are refused."""
    return (statement.has_halves or bool(statement.texts)) and any(UNKNOWN in name for name in table)


def _without_set_statement(statement: Statement) -> Statement:
    """Return a statement without MariaDB's SET STATEMENT in front of it.

    The event names the SQL mode that is set there. MariaDB read the text in the mode of the session, which no event names.
    """
    text = without_set_statement(statement.text, statement.quotings[0])
    sets = statement.text[: len(statement.text) - len(text)]
    return replace(statement, text=text, mode_known="SQL_MODE" not in sets.upper()) if sets else statement


def _statement_at(body: bytes) -> int:
    """Return where the statement of a QUERY body starts: after status variables, the database and a zero byte."""
    return 13 + int.from_bytes(body[11:13], "little") + body[8] + 1


def _inflated(body: bytes, at: int) -> bytes:
    """Return the statement of a QUERY_COMPRESSED."""
    data = np.frombuffer(body, np.uint8)
    size, start = inflated_size(data, at, len(body))
    if size < 0:
        msg = "its statement is not compressed as it says"
        raise ValueError(msg)
    return inflate(data, int(start), len(body), int(size))
