"""A statement that runs for as long as a test wants, so that its commit is much later than its beginning."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.harness.servers import SqlServer

_START_SECONDS = 60


@contextmanager
def long_statement(server: SqlServer, statement: str) -> Iterator[None]:
    """Run a statement that calls ``GET_LOCK('until', …)``; it ends when the block does."""
    with server.connect() as session, session.cursor() as holder:
        holder.execute("SELECT GET_LOCK('until', 0)")
        running = threading.Thread(target=server.execute, args=(statement,))
        running.start()
        deadline = time.monotonic() + _START_SECONDS
        while not any(row[6] == "User lock" for row in server.execute("SHOW PROCESSLIST")):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        try:
            yield
        finally:
            holder.execute("SELECT RELEASE_LOCK('until')")
            running.join()
