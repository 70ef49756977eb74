"""SQL over the demo's lake without Spark: PyIceberg reads the tables, DuckDB the SQL."""

from __future__ import annotations

import os

import duckdb
from rich.console import Console
from rich.table import Table

from demo.paths import DATABASE, LAKE, DemoError, shown
from demo.shop.compare import open_lake


def query(sql: str) -> None:
    """Print the result of a query; lake tables have their own names, such as ``orders``."""
    if not (LAKE / "catalog.db").exists():
        raise DemoError(f"there is no lake in {shown(LAKE)}; ./dev demo makes it")
    catalog = open_lake(f"jdbc:sqlite:{LAKE}/catalog.db", os.environ.get("CDC_LAKE_WAREHOUSE", f"file://{LAKE}"))
    with catalog, duckdb.connect() as db:
        db.execute("SET TimeZone = 'UTC'")
        for _, name in catalog.list_tables(DATABASE):
            if name in sql:
                # Tables are passed as Arrow: DuckDB's Iceberg reader is an extension that would have to be downloaded.
                db.register(name, catalog.load_table((DATABASE, name)).scan().to_arrow())
        try:
            found = db.execute(sql)
        except duckdb.Error as error:
            raise DemoError(str(error)) from None
        table = Table(*[column[0] for column in found.description or []])
        for row in found.fetchmany(100):
            table.add_row(*["" if value is None else str(value) for value in row])
    Console().print(table)
