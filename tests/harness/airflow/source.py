"""One source for tests of the DAGs: its file, its database, its store and lake."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from cdc_lib.config import SourceConfig, load_source
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor
from cdc_lib.store.cursors import ObjectCursorStore
from cdc_lib.store.objects.open import open_store
from demo.shop.compare import compare_database, open_lake
from tests.harness.servers import SqlServer

PASSWORD_VARIABLE = "CDC_TEST_PASSWORD"
CONNECTION = "cdc_test_server"
ORDERS_AND_COLOURS = (
    "CREATE TABLE orders (id INT PRIMARY KEY, item VARCHAR(40), price DECIMAL(10, 2))",
    "CREATE TABLE colours (id INT PRIMARY KEY, name VARCHAR(40))",
    "INSERT INTO orders VALUES (1, 'bicycle', 499.90), (2, 'bell', 12.50), (3, 'lamp', 31.00)",
    "INSERT INTO colours VALUES (1, 'red'), (2, 'blue')",
)
"""Three orders and a table of two colours."""

OWN_JAVA = {"driver_memory": "1g"}
"""``merge`` of a source whose jobs start a Java process each."""


def log_ins(server: SqlServer) -> dict[str, str]:
    """Return the variables that give the server's login as a password and as an Airflow connection."""
    connection = {"conn_type": "mysql", "login": server.cdc_user, "password": server.cdc_password}
    return {
        PASSWORD_VARIABLE: server.cdc_password,
        f"AIRFLOW_CONN_{CONNECTION.upper()}": json.dumps(connection),
    }


@dataclass
class AirflowSource:
    """One source file with its database, store and lake.

    Args:
        name: of the source, and of its database on the server.
        server: where it is read from.
        sources: folder of the source files, which Airflow reads.
        folder: where the store and the lake lie.
        changed: top-level keys of the file that replace the defaults made here.
        merge: the section ``merge`` of the file; a Java process for each job by default.
        dags: folder of the DAG files that are touched when the source file was written, so that the DAG processor reads them
            within a second; otherwise it reads them when their interval is over.
    """

    name: str
    server: SqlServer
    sources: Path
    folder: Path
    changed: dict[str, Any] = field(default_factory=dict)
    merge: dict[str, Any] = field(default_factory=lambda: dict(OWN_JAVA))
    dags: Path | None = None

    @property
    def dag(self) -> str:
        """Id of its DAG."""
        return f"cdc_{self.name}"

    @property
    def file(self) -> Path:
        """Its YAML file."""
        return self.sources / f"{self.name}.yaml"

    @property
    def config(self) -> SourceConfig:
        """What the file says."""
        return load_source(self.file)

    def write(self, **changed: Any) -> AirflowSource:
        """Write the file with some keys changed; None restores the default."""
        self.changed = {key: value for key, value in {**self.changed, **changed}.items() if value is not None}
        server = {"host": self.server.host, "port": self.server.port, "user": self.server.cdc_user}
        plain = {
            "server": {**server, "password_env": PASSWORD_VARIABLE},
            "tables": [f"{self.name}.*"],
            "schedule": None,
            "store": {"url": f"file://{self.folder}/store"},
            "lake": {
                "type": "jdbc",
                "uri": f"jdbc:sqlite:{self.folder}/catalog.db?busy_timeout=30000",
                "warehouse": f"file://{self.folder}/lake",
            },
            "merge": self.merge,
            **self.changed,
        }
        self.folder.mkdir(parents=True, exist_ok=True)
        part = self.file.with_suffix(".part")
        part.write_text(yaml.safe_dump(plain))
        part.rename(self.file)  # Airflow never reads half of it
        for file in self.dags.glob("*.py") if self.dags else ():
            os.utime(file)
        return self

    def sql(self, *statements: str) -> None:
        """Run statements in the source's database, in one session."""
        with self.server.connect(database=self.name) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def cursor(self, consumer: str) -> Cursor | None:
        """Load a cursor."""
        return ObjectCursorStore(open_store(self.config.store)).load(self.name, consumer)

    def state_hashes(self) -> dict[str, str]:
        """Return the cursors' positions and a hash of every other object: what a repeated task must not change.

        Excludes when the source was last read to its end, and what was observed: each plan and ack renews that.
        """
        store = open_store(self.config.store)
        objects = {
            info.key: hashlib.sha256(stored.data).hexdigest()
            for info in store.list(f"{self.name}/")
            if "/cursors/" not in info.key
            and "/observed/" not in info.key
            and not info.key.endswith("/complete.json")
            and (stored := store.get(info.key)) is not None
        }
        return objects | {consumer: str((c := self.cursor(consumer)) and c.position) for consumer in (DRAIN, LAKE)}

    def differences(self) -> list[str]:
        """Compare every table with the lake; the source must not change meanwhile."""
        options = {"host": self.server.host, "port": self.server.port, "user": "root"}
        lake = open_lake(str(self.config.lake.uri), str(self.config.lake.warehouse))
        tables = compare_database(options, self.name, lake)
        return [str(table) for table in tables if table.differences]
