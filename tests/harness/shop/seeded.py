"""The demo's shop in a database of a real server, and a source file that captures it."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from demo.shop import seed
from tests.harness.servers import SqlServer


@contextmanager
def seeded_shop(server: SqlServer, rows: int) -> Iterator[str]:
    """Create a shop with some rows, give the name of its database, and drop it at the end."""
    name = f"shop_{secrets.token_hex(4)}"
    with server.connect() as connection:
        seed.create(connection, name)
        seed.fill(connection, rows)
    yield name
    server.execute(f"DROP DATABASE {name}")


def source_settings(server: SqlServer, tables: Sequence[str], folder: Path, **changed: Any) -> dict[str, Any]:
    """Return a source file that captures tables into a store and a lake in a folder.

    Args:
        server: of the tables.
        tables: patterns.
        folder: for batches, the catalog and the lake tables.
        **changed: further sections.
    """
    return {
        "server": {"host": server.host, "port": server.port, "user": server.cdc_user, "password_env": "CDC_PASSWORD"},
        "tables": list(tables),
        "store": {"url": f"file://{folder}/batches"},
        "lake": {"type": "jdbc", "uri": f"jdbc:sqlite:{folder}/catalog.db", "warehouse": f"file://{folder}/lake"},
        "merge": {"driver_memory": "1g"},
        **changed,
    }
