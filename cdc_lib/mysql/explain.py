"""How many rows a server expects a statement to read."""

from __future__ import annotations

from cdc_lib.mysql.connection import Session
from cdc_lib.mysql.read_only_session import answer

_ROWS = {12: 9, 10: 8}
"""Column of the estimate, by the number of columns: MySQL has two more than MariaDB, "partitions" and "filtered"."""


def estimated_rows(connection: Session, sql: str, table: str) -> int:
    """Return the server's estimate of the rows that a SELECT of one table reads, without reading them.

    Args:
        connection: a session on the source.
        sql: the SELECT.
        table: ``database.table`` that it reads.

    Returns:
        The estimate; 0 if the server knows that there is none.

    Raises:
        SourceError: the server refuses the statement or cannot be reached.
    """
    # A session may have another explain_format.
    [row, *_] = answer(connection, f"EXPLAIN FORMAT=TRADITIONAL {sql}", table)
    return int(row[_ROWS[len(row)]] or 0)
