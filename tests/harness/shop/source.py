"""The source ``shop`` of docs/operations.md on a real server, with its lake: tests run the page's commands in this process."""

from __future__ import annotations

import importlib
import json
import shlex
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Self

import pytest
import yaml
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from cdc_lib.cli import job as cli_job
from cdc_lib.cli.main import app
from cdc_lib.config import Loaded, SourceConfig
from cdc_lib.errors import load_error
from cdc_lib.jobs.request import JobName
from cdc_lib.model.stored_window import StoredWindow
from cdc_lib.ports import ObjectStore
from cdc_lib.store import layout
from cdc_lib.store.clock import refuse_other_clock
from cdc_lib.store.objects.local import LocalStore
from cdc_lib.store.windows import stored_windows
from spark_jobs.runtime.session import connect_catalog, java_now
from tests.harness.docs.pages import ROOT
from tests.harness.lake.running import Lake
from tests.harness.servers import SqlServer
from tests.harness.servers.replication import Pair

PAGE = (ROOT / "docs" / "operations.md").read_text()
ROWS = 40
SESSIONS = (
    "spark_jobs.merging.run",
    "spark_jobs.maintain",
    "spark_jobs.verify",
    "spark_jobs.backfill",
    "spark_jobs.erase",
)


class Shop:
    """The source ``shop`` of the page, with the tables ``orders`` and ``lines``, and its lake.

    Args:
        server: where its database is.
        database: name of the database, which exists and is empty.
        folder: for the store and the source file.
        lake: of the tests of the merge.
    """

    def __init__(self, server: SqlServer, database: str, folder: Path, lake: Lake) -> None:
        self.server, self.database, self.folder, self.lake = server, database, folder, lake
        self.store = LocalStore(folder / "store")
        self.settings: dict[str, Any] = {
            "server": {
                "host": server.host, "port": server.port, "user": server.cdc_user, "password_env": "WAYS_PASSWORD"
            },
            "tables": [f"{database}.*"],
            "store": {"url": f"file://{folder}/store"},
            "lake": json.loads(lake.config.lake.model_dump_json()),
            "snapshot": {"chunk_rows": 100},
            "verify": {"wait": "0s"},
        }  # fmt: skip
        self.name, self.since, self.after = "shop", "", ""
        (folder / "sources").mkdir()
        self.write()
        self.execute("CREATE TABLE orders (id INT PRIMARY KEY, v VARCHAR(20), n INT)")
        self.execute("CREATE TABLE `lines` (id INT PRIMARY KEY, v VARCHAR(20), n INT)")
        for table in ("orders", "`lines`"):
            values = ", ".join(f"({i}, 'v{i}', {i})" for i in range(ROWS))
            self.execute(f"INSERT INTO {table} VALUES {values}")

    @classmethod
    def on_running_spark(
        cls, server: SqlServer, database: str, folder: Path, lake: Lake, monkeypatch: pytest.MonkeyPatch
    ) -> Self:
        """Make a shop whose commands have the password, and run their Spark jobs in this process."""
        monkeypatch.setenv("WAYS_PASSWORD", server.cdc_password)
        over_the_running_spark(monkeypatch, lake)
        return cls(server, database, folder, lake)

    def write(self, **changed: Any) -> None:
        """Write the source file, with some sections changed."""
        self.settings |= changed
        self.write_as(self.name, self.settings)

    def write_as(self, name: str, settings: Mapping[str, Any]) -> None:
        """Write the file of a source, which may be another one."""
        (self.folder / "sources" / f"{name}.yaml").write_text(yaml.safe_dump(dict(settings)))

    def execute(self, sql: str) -> Sequence[tuple[Any, ...]]:
        """Run a statement in the source's database."""
        return self.server.execute(sql, database=self.database)

    def sql(self, statement: str) -> list[Any]:
        """Run a statement in the lake; ``{t}`` is the lake table of ``orders``."""
        name = self.lake.name(f"{self.database}.orders")
        return self.lake.spark.sql(statement.format(t=name)).collect()

    def call(self, procedure: str, arguments: str) -> list[Any]:
        """Call a procedure of Iceberg on the lake table of ``orders``."""
        table = f"{self.database}.orders"
        return self.sql(f"CALL lake.system.{procedure}(table => '{table}', {arguments})")

    def cdc(self, command: str, code: int = 0) -> str:
        """Run a command of the page and confirm its prompts; ``shop.orders`` is the table of this test.

        Returns:
            Its output. Fails if its exit status is not ``code``.
        """
        return command_line(self.folder / "sources", command.replace("shop.orders", f"{self.database}.orders"), code)

    def runs(self, count: int = 3) -> None:
        """Do what ``count`` runs of the DAG do."""
        for _ in range(count):
            self.cdc(f"cdc run {self.name}")

    def drain(self) -> None:
        """Drain and acknowledge; the lake stays where it is."""
        for words in ("step drain shop", "step ack drain shop"):
            self.cdc(f"cdc {words}")

    def change(self, number: int) -> None:
        """Update, insert and delete a row of each table."""
        for table in ("orders", "`lines`"):
            self.execute(f"UPDATE {table} SET v = 'new{number}' WHERE id = {number}")
            self.execute(f"INSERT INTO {table} (id, v, n) VALUES ({100 + number}, 'added', 0)")
            self.execute(f"DELETE FROM {table} WHERE id = {20 + number}")

    def fail_over(self, pair: Pair) -> None:
        """Kill the primary of a pair, write to its standby, and run: the lake then equals the standby, in a new epoch."""
        pair.wait("seen.t")
        pair.promote()
        self.server = pair.standby
        for number in (3, 4):
            self.change(number)
            self.runs(1)
        self.assert_equal()
        assert self.cursor("drain")["epoch"] == 2
        assert "by the clock of server 1" in self.cdc("cdc cursor show shop --json")

    def waiting(self) -> list[StoredWindow]:
        """Return the windows that wait for the lake."""
        lake = self.cursor("lake")
        start = (lake["epoch"], int(lake["position"]["file"].rpartition(".")[2]), lake["position"]["offset"])
        return [window for window in stored_windows(self.store, "shop") if tuple(window.start) >= start]

    def cursor(self, consumer: str) -> dict[str, Any]:
        """Return a cursor's document."""
        stored = self.store.get(layout.cursor_key("shop", consumer))
        assert stored is not None
        document: dict[str, Any] = json.loads(stored.data)
        return document

    def lose(self, *keys: str) -> None:
        """Delete objects of the store."""
        self.store.delete(list(keys))

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        """Return the lake's rows of a table."""
        return self.lake.rows(f"{self.database}.{table}", "id", "v", "n")

    def source_rows(self, table: str) -> list[tuple[Any, ...]]:
        """Return the source's rows of a table."""
        return sorted((tuple(row) for row in self.execute(f"SELECT id, v, n FROM `{table}`")), key=repr)

    def assert_equal(self) -> None:
        """Compare every row of both tables, here and by ``cdc verify``; ``cdc status`` must report nothing."""
        for table in ("orders", "lines"):
            assert self.rows(table) == self.source_rows(table)
        self.cdc(f"cdc verify {self.name}")
        (status,) = json.loads(self.cdc(f"cdc status {self.name} --json"))
        assert (status["missing"], status["stopped"], status["lagging"]) == ([], [], [])


def command_line(sources: Path, command: str, code: int = 0) -> str:
    """Run a whole command in this process, confirm its prompts, and return its output; it must exit with ``code``."""
    arguments = shlex.split(command)[1:]
    result = CliRunner().invoke(app, ["--sources", str(sources), *arguments], input="y\n" * 5)
    assert result.exit_code == code, f"{command}\n{result.output}\n{result.exception!r}"
    return result.output


def over_the_running_spark(monkeypatch: pytest.MonkeyPatch, lake: Lake) -> None:
    """Let commands run their Spark job in this process, on the running Spark."""
    for name in SESSIONS:
        monkeypatch.setattr(importlib.import_module(name), "spark_session", _running(lake.spark))
    monkeypatch.setattr(cli_job, "run_job", _in_process)


def _running(spark: SparkSession) -> Any:
    @contextmanager
    def session(config: SourceConfig, rows: int = 0, store: ObjectStore | None = None) -> Iterator[SparkSession]:
        connect_catalog(spark, config)
        if store is not None:
            refuse_other_clock(store, config.source, partial(java_now, spark))
        yield spark

    return session


def _in_process(
    job: JobName,
    loaded: Loaded,
    *arguments: str,
    good: Sequence[int] = (0,),
    to_stderr: bool = False,
    report: Path | None = None,
) -> None:
    """Run a job as its own process would, and raise the error that it writes."""
    with tempfile.TemporaryDirectory() as folder:
        error = Path(folder) / "error.json"
        first = ["--config", str(loaded.path), "--error", str(error), *(["--report", str(report)] if report else [])]
        code = importlib.import_module(f"spark_jobs.{job}").main([*first, *arguments])
        if code not in good:
            raise load_error(error.read_bytes())


def on_the_page(command: str) -> bool:
    """Whether a line of the page has the words of a command, without placeholders, and all of its options."""
    words = command.split()
    options = [word for word in words if word.startswith("--")]
    begin = " ".join(words[:3]).replace("{", "")
    return any(begin in line and all(option in line for option in options) for line in PAGE.splitlines())
