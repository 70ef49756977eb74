"""Events that come once in a while: a new table, a new file, a statement, and all that nobody expects.

Python looks at these, one at a time. What is not understood here stops the window.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cdc_lib.decode import events, frame
from cdc_lib.decode.checksum import TABLES, crc32
from cdc_lib.decode.ddl import Effect, meaning
from cdc_lib.decode.progress import Progress
from cdc_lib.decode.receive import Bytes
from cdc_lib.decode.tables import KnownTables, closes_statement
from cdc_lib.errors import ChecksumMismatch, ConfigError, DecodeError, UnknownEvent, UnknownSchema
from cdc_lib.model.batch import Ddl
from cdc_lib.model.position import Position


class RareEvents:
    """Takes what the scan gives to Python.

    Args:
        progress: of the walk.
        tables: learns and forgets.
        ddl: takes the statements that touch a captured table.
        defines: takes position, body and text of the statements that define any table.
    """

    def __init__(
        self,
        progress: Progress,
        tables: KnownTables,
        ddl: list[Ddl],
        defines: Callable[[Position, bytes, bytes], None] | None = None,
    ) -> None:
        """Keep what events act upon."""
        self._defines = defines
        self._progress = progress
        self._tables = tables
        self._ddl = ddl

    def take(self, data: Bytes, event: int, end: int) -> None:
        """Act on one event and step over it.

        Args:
            data: bytes off the wire.
            event: where its header starts.
            end: where it ends, without its checksum.

        Raises:
            DecodeError: it is not understood.
        """
        try:
            self._take(data, event, end)
        except (ValueError, IndexError, KeyError, OverflowError, ConfigError) as error:
            # Bytes that are no text, a column that does not exist, a file without a number: what Python finds where a
            # length lies.
            raise DecodeError(
                f"a {events.name(int(data[event + 4]))} event does not follow the format: {error}",
                hint="Nothing was acknowledged. Check the file at the source: mysqlbinlog reads it?",
                **self._progress.place(),
            ) from error

    def _take(self, data: Bytes, event: int, end: int) -> None:
        kind = int(data[event + 4])
        flags = int.from_bytes(data[event + 17 : event + 19].tobytes(), "little")
        length = int.from_bytes(data[event + 9 : event + 13].tobytes(), "little")
        made_up = kind in (events.FORMAT_DESCRIPTION, events.ROTATE) and not data[event + 13 : event + 17].any()
        in_file = flags & events.ARTIFICIAL == 0 and not made_up
        body = data[event + frame.HEADER : end].tobytes()
        if kind == events.FORMAT_DESCRIPTION:
            self._format(data[event : event + length].tobytes())
        elif kind == events.ROTATE:
            if not in_file:
                self._progress.enter_file(body[8:].decode(), int.from_bytes(body[:8], "little"))
        elif kind == events.TABLE_MAP:
            self._tables.take(body)
        elif kind == events.QUERY:
            self._query(body)
        elif kind in events.ROWS and closes_statement(body):
            pass
        elif kind in events.ROWS:
            raise UnknownSchema(
                "rows of a table that no table map came before",
                hint="The position lies inside a transaction; rewind the cursor to a transaction boundary.",
                **self._progress.place(),
            )
        elif not flags & events.IGNORABLE:
            raise UnknownEvent(
                f"an event that is not read: {events.name(kind)}",
                hint=events.hint(kind),
                **self._progress.place(),
                event_type=kind,
            )
        self._progress.state[frame.EVENTS] += 1
        if in_file:
            self._progress.state[frame.OFFSET] += length

    def _format(self, event: bytes) -> None:
        """Take the checksum algorithm of the file; table ids begin anew."""
        progress = self._progress
        algorithm = event[-5]
        if algorithm not in (0, 1):
            raise UnknownEvent(f"checksum algorithm {algorithm} is not known", hint="", **progress.place())
        if progress.state[frame.IN_TRANSACTION]:
            raise DecodeError(
                "a binlog file ends inside a transaction",
                hint="The server crashed there; take a new snapshot of the tables.",
                **progress.place(),
            )
        progress.state[frame.CHECKSUM_BYTES] = 4 * algorithm
        stored = int.from_bytes(event[-4:], "little")
        calculated = crc32(np.frombuffer(event, np.uint8), 0, len(event) - 4, TABLES)
        if algorithm == 1 and stored != calculated:
            raise ChecksumMismatch("the checksum of the format description is wrong", hint="", **progress.place())
        self._tables.forget()

    def _query(self, body: bytes) -> None:
        """Look at a statement; DDL ends a transaction of its own."""
        schema_length = body[8]
        at = 13 + int.from_bytes(body[11:13], "little")
        database = body[at : at + schema_length].decode("utf-8", "replace")
        statement = body[at + schema_length + 1 :].decode("utf-8", "replace")
        means = meaning(statement, database)
        touched = [t for t in means.tables if self._tables.touches(*t)]
        if means.effect in ("rows", "xa") or (means.effect == "lossy" and touched):
            raise UnknownEvent(
                f"a statement whose effect on rows the binlog does not show: {statement[:120]!r}",
                hint="Nothing was acknowledged. Rewind the cursor behind it and take a new snapshot of the table.",
                **self._progress.place(),
                table=", ".join(f"{d}.{t}" for d, t in touched) or None,
            )
        if touched:
            self._ddl.append(Ddl(self._progress.position, database, statement))
        if self._defines is not None and means.tables:
            self._defines(self._progress.position, body, body[at + schema_length + 1 :])
            self._tables.forget()  # rows behind it come with a table map of the new definition
        if self._ends_transaction(means.effect, opens=means.opens_transaction):
            frame.end_transaction(self._progress.state)

    def _ends_transaction(self, effect: Effect, *, opens: bool) -> bool:
        if effect == "savepoint" or opens:
            return False
        if self._progress.flavor == "mariadb" and effect != "rollback":
            return bool(self._progress.state[frame.STANDALONE])
        return True
