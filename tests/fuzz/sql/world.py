"""A few servers, one warm Spark, and a lake, on which many programs run side by side."""

from __future__ import annotations

import itertools
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Self

import pymysql
from pyspark.sql import SparkSession

from cdc_lib.config import Credentials, SourceConfig
from cdc_lib.model.lexer import quoted
from cdc_lib.pipeline import Pipeline
from cdc_lib.store.cursors import ObjectCursorStore
from cdc_lib.store.objects.local import LocalStore
from demo.shop.compare import open_lake
from spark_jobs.runtime.session import connect_catalog, spark_session
from tests.harness.lake.running import lake_config
from tests.harness.servers import MariaDbServer, MySqlServer, SqlServer

SERVERS = {"mysql": MySqlServer, "mariadb": MariaDbServer}
_DROP_REFUSALS = (1010, 1146, 1205)
"""A test left other files in the folder, which has no tables any more; it dropped tables of the server itself; or a session
that was closed still locks a table."""
SYSTEM_DATABASES = ("mysql", "information_schema", "performance_schema", "sys")
_QUICK = {"innodb-lock-wait-timeout": 2, "lock-wait-timeout": 3, "log-bin-trust-function-creators": "ON"}


class World:
    """What all programs share, while its block runs; a server is started when the first program needs it.

    Args:
        folder: for the lake and the stores.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._stack = ExitStack()
        self._servers: dict[tuple[str, str], SqlServer] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        config = lake_config(self.folder, merge={"driver_memory": "2g", "conf": {"spark.sql.shuffle.partitions": "1"}})
        self.lake = config.lake
        self.spark: SparkSession = self._stack.enter_context(spark_session(config))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def server(self, flavor: str, metadata: str = "FULL") -> SqlServer:
        """Return the running server of a kind and a ``binlog_row_metadata``, which is one for all sessions of a server."""
        with self._lock:
            if (flavor, metadata) not in self._servers:
                kind = SERVERS[flavor]
                settings = {**kind.default_settings, **_QUICK, "binlog-row-metadata": metadata}
                self._servers[flavor, metadata] = self._stack.enter_context(kind(settings=settings))
            return self._servers[flavor, metadata]

    def replace_server(self, flavor: str, metadata: str = "FULL") -> None:
        """Let the next program have a new server, as this one is damaged."""
        with self._lock:
            self._servers.pop((flavor, metadata))

    def home(self, flavor: str, metadata: str = "FULL", lake: str = "", *, all_databases: bool = False) -> Home:
        """Return databases, a store and a source of their own for one run of a program.

        Args:
            flavor: the server.
            metadata: its ``binlog_row_metadata``.
            lake: how the lake is written, as in a program.
            all_databases: whether the source captures all databases of the server; then no other program may run beside.
        """
        return Home(self, self.server(flavor, metadata), next(self._numbers), lake, all_databases=all_databases)

    def forget(self, databases: tuple[str, ...]) -> None:
        """Remove the lake tables of databases."""
        file = str(self.lake.uri).removeprefix("jdbc:sqlite:").partition("?")[0]
        marks = ", ".join("?" for _ in databases)
        with closing(sqlite3.connect(file, timeout=60)) as catalog, catalog:
            for table, column in (("iceberg_tables", "table_namespace"), ("iceberg_namespace_properties", "namespace")):
                catalog.execute(f"DELETE FROM {table} WHERE {column} IN ({marks})", databases)
        for name in databases:
            shutil.rmtree(self.folder / "warehouse" / name, ignore_errors=True)


class Home:
    """Databases, store and source of one run.

    Attributes:
        names: the databases of the run, main first.
    """

    def __init__(self, world: World, server: SqlServer, number: int, lake: str, *, all_databases: bool = False) -> None:
        self.world, self.server = world, server
        self._all_databases = all_databases
        self.names = (f"fz{number}m", f"fz{number}s")
        self.folder = world.folder / f"p{number}"
        self.config = SourceConfig.model_validate(
            {
                "source": f"p{number}",
                "server": {"host": server.host, "port": server.port, "user": server.cdc_user, "password_env": "UNUSED"},
                "tables": {"include": ["*.*"] if all_databases else [f"{name}.*" for name in self.names]},
                "store": {"url": f"file://{self.folder}/store"},
                "lake": world.lake.model_dump(),
                "merge": {"driver_memory": "2g", "conf": {"spark.sql.shuffle.partitions": "1"}},
                "snapshot": {"chunk_rows": 3},
                "reselect": {"mode": "always" if "rows from the source" in lake else "auto", "when_lag_exceeds": "1h"},
                "layouts": [
                    {
                        "tables": "*.*",
                        "format_version": 2 if "version 2" in lake else 3,
                        "write_mode": "copy_on_write" if "copy_on_write" in lake else "merge_on_read",
                    }
                ],
                "on_error": "quarantine",
            }
        )
        self.store = LocalStore(self.folder / "store")
        credentials = Credentials(server.cdc_user, server.cdc_password)
        self.pipeline = Pipeline(self.config, credentials, self.store, ObjectCursorStore(self.store))
        self.spark = world.spark.newSession()
        connect_catalog(self.spark, self.config)
        self.catalog = open_lake(str(world.lake.uri), str(world.lake.warehouse))

    def __enter__(self) -> Self:
        self.server.execute(f"CREATE DATABASE {self.names[0]} CHARACTER SET utf8mb4")
        return self

    def __exit__(self, *_: object) -> None:
        databases = tuple(dict.fromkeys([*self.names, *self.databases()]))
        for name in databases:
            try:
                self.server.execute(f"DROP DATABASE IF EXISTS {quoted(name)}")
            except pymysql.MySQLError as error:
                if error.args[0] not in _DROP_REFUSALS:
                    raise
        engine: Any = self.catalog
        engine.engine.dispose()
        self.world.forget(databases)
        shutil.rmtree(self.folder, ignore_errors=True)

    def has(self, database: str, table: str) -> bool:
        """Whether the source has a table."""
        known = "SELECT 1 FROM information_schema.tables WHERE table_schema = %s AND table_name = %s"
        return bool(self.server.execute(known, [database, table]))

    def databases(self) -> Iterator[str]:
        """Yield those that exist now."""
        if self._all_databases:
            names = self.server.execute("SELECT schema_name FROM information_schema.schemata")
            yield from (name for (name,) in names if name not in SYSTEM_DATABASES)
            return
        for name in self.names:
            if self.server.execute("SELECT 1 FROM information_schema.schemata WHERE schema_name = %s", [name]):
                yield name
