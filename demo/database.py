"""Creates the shop once, and reuses it in later runs."""

from __future__ import annotations

from collections.abc import Callable

from demo.paths import DATABASE, DemoError, State
from demo.server import DemoServer
from demo.shop import seed


def prepare(source: DemoServer, state: State, rows: int, say: Callable[[str], None]) -> None:
    """Seed the shop unless an earlier demo did.

    Raises:
        DemoError: the server has a database of this name that the demo did not make.
    """
    with source.connect() as connection:
        with connection.cursor() as cursor:
            cursor.execute("SHOW DATABASES LIKE %s", [DATABASE])
            there = bool(cursor.fetchall())
        if there and state.rows:
            say(f"the shop of the last run is used again ({state.rows:,} rows at its beginning)")
            return
        if there and not state.made:
            raise DemoError(f"the server has a database `{DATABASE}` that is not the demo's; it is left alone")
        if there:  # an earlier run was stopped while it created the shop
            drop(source)
        state.made = True
        state.save()
        seed.create(connection, DATABASE)
        connection.autocommit(False)
        sizes = seed.fill(connection, rows)
    state.rows = rows
    state.save()
    say(", ".join(f"{count:,} {table}" for table, count in vars(sizes).items()))


def drop(source: DemoServer) -> None:
    """Remove the shop."""
    with source.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS `{DATABASE}`")


def head(source: DemoServer) -> tuple[str, int]:
    """Return the server's newest binlog file and the offset of its end."""
    with source.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SHOW BINARY LOGS")
        name, size = cursor.fetchall()[-1][:2]
    return str(name), int(size)
