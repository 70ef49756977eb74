"""DuckDB in this process, over Arrow data alone."""

from __future__ import annotations

import duckdb


def connect() -> duckdb.DuckDBPyConnection:
    """Return a connection that can read no files and no variables of Python."""
    return duckdb.connect(config={"python_enable_replacements": "false", "enable_external_access": "false"})


def quoted(name: str) -> str:
    """Return a name in double quotes."""
    return '"' + name.replace('"', '""') + '"'
