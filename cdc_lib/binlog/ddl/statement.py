"""A statement of the binlog with the session settings that affect its meaning.

QUERY: thread 4, seconds 4, schema length 1, error 2, status length 2, status, schema, a zero byte, the statement. The status
is a row of variables, a code of one byte each (MySQL ``libs/mysql/binlog/event/statement_events.h``, Query_event; MariaDB
``sql/log_event.h``); those looked at here come first in both servers, but for MariaDB's collations of character sets (131, from
11.2 on: how many, then two numbers of two bytes for each), which are before the character sets of the session.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from cdc_lib.binlog.ddl.statement_text import (
    NO_BREAK_SPACES,
    UNKNOWN,
    has_halves,
    readings_of,
    text_of,
    with_kept_names,
)
from cdc_lib.model.lexer import QUOTINGS, Quoting

_FIXED = {0: 4, 1: 8, 3: 4, 4: 6, 7: 2, 8: 2, 9: 8, 10: 4}
"""Lengths of flags, SQL mode, auto-increment, character sets, month names, database collation, tables, data written."""
_SQL_MODE, _CHARSET, _TIME_ZONE, _CATALOG, _DATABASE, _COLLATIONS = 1, 4, 5, 6, 8, 131

REAL_AS_FLOAT, ANSI_QUOTES, ORACLE, NO_BACKSLASH_ESCAPES = 1, 4, 512, 1 << 20
"""Bits of the SQL mode that change what a statement says."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement.

    Args:
        text: as it was typed; U+FFFD replaces what is not known.
        database: its default database.
        sql_mode: bits of the session's SQL mode.
        server_charset: the server's default character set, for databases that name none; empty when it is not known.
        exact: whether every character of the text is known.
        database_charset: default of the database, where the session saw another one than the server; else empty.
        mode_known: whether the SQL mode is also that in which the text was read; not where the statement itself sets another.
        mariadb: whether the server is MariaDB.
        spaces: characters beyond ASCII that are spaces in the text.
        with_rows: whether rows come in its transaction in MariaDB; so a CREATE TABLE is one with a SELECT.
        has_halves: whether what is not known are halves of surrogate pairs in UTF-8: MariaDB takes them into names, which are no text then.
        texts: the two texts of one that may be in either of two character sets; else empty.
    """

    text: str
    database: str
    sql_mode: int = 0
    server_charset: str = ""
    exact: bool = True
    database_charset: str = ""
    mode_known: bool = True
    mariadb: bool = True
    spaces: str = ""
    with_rows: bool = False
    has_halves: bool = False
    texts: tuple[str, ...] = ()

    @property
    def readings(self) -> tuple[Statement, ...]:
        """The statement in each of its two texts, of which one is meant; else itself."""
        return tuple(replace(self, text=text, exact=True, texts=()) for text in self.texts) or (self,)

    @property
    def quotings(self) -> tuple[Quoting, ...]:
        """How the text may be read: one way, or all where the SQL mode is not known and makes a difference."""
        modes: tuple[Quoting, ...] = (
            Quoting(bool(self.sql_mode & ANSI_QUOTES), not self.sql_mode & NO_BACKSLASH_ESCAPES),
        )
        if not self.mode_known and ("\\" in self.text or '"' in self.text):
            modes = QUOTINGS
        return tuple(mode._replace(mariadb=self.mariadb, spaces=self.spaces) for mode in modes)


def statement_of(
    body: bytes, raw: bytes, charsets: Mapping[int, str], *, with_rows: bool = False, mariadb: bool = True
) -> Statement:
    """Return the statement of a QUERY event.

    Args:
        body: after the event's header and without its checksum; what is after the database does not matter.
        raw: the statement itself.
        charsets: character set name of each collation number of the server.
        with_rows: whether it is in one transaction with rows.
        mariadb: whether the server is MariaDB.
    """
    length = int.from_bytes(body[11:13], "little")
    status = _variables(body[13 : 13 + length])
    at = 13 + length
    name = body[at : at + body[8]]
    numbers = status.get(_CHARSET, b"")
    client, server = (charsets.get(int.from_bytes(numbers[i : i + 2], "little"), "") for i in (0, 4))
    text, exact = text_of(raw, client, with_rows=with_rows)
    sql_mode = int.from_bytes(status.get(_SQL_MODE, b""), "little")
    own = charsets.get(int.from_bytes(status[_DATABASE], "little"), "") if _DATABASE in status else ""
    spaces = "\xa0" if client in NO_BREAK_SPACES else ""
    statement = Statement(
        text,
        name.decode("utf-8", "replace"),
        sql_mode,
        server,
        exact,
        own,
        mariadb=mariadb,
        spaces=spaces,
        with_rows=with_rows,
        has_halves=mariadb and has_halves(name + raw, client),
    )
    if not exact and (texts := readings_of(raw, client)):
        return replace(statement, texts=texts)
    if exact or mariadb or client != "utf8mb4":
        return statement
    text = with_kept_names(raw, statement.quotings[0])
    return replace(statement, text=text, exact=UNKNOWN not in text)


def _variables(status: bytes) -> dict[int, bytes]:
    """Return the variables up to the first whose length is not known here."""
    found: dict[int, bytes] = {}
    at = 0
    while at < len(status):
        code = status[at]
        at += 1
        if code in (_TIME_ZONE, _CATALOG):
            size = 1 + status[at] if at < len(status) else 0
        elif code == _COLLATIONS:
            size = 1 + 4 * status[at] if at < len(status) else 0
        elif code in _FIXED:
            size = _FIXED[code]
        else:
            break
        found[code] = status[at : at + size]
        at += size
    return found
