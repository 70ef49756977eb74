"""A source whose jobs run on a Spark server."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from cdc_lib.config import load_source
from cdc_lib.jobs.client import job_request
from cdc_lib.jobs.request import JobStatus
from tests.harness.servers import MySqlServer
from tests.harness.shop.seeded import source_settings
from tests.harness.shop.source import command_line
from tests.harness.spark.server import RunningSparkServer


class Source:
    """A source with one table of three rows, whose file names the server.

    Args:
        server: of the table.
        database: of the table.
        folder: for everything else.
        spark: runs the jobs.
        settings: further sections of its file.
        **merge: settings of ``merge``.
    """

    def __init__(
        self,
        server: MySqlServer,
        database: str,
        folder: Path,
        spark: RunningSparkServer,
        settings: Mapping[str, Any] | None = None,
        **merge: Any,
    ) -> None:
        self.server, self.database, self.spark, self.sources = server, database, spark, folder / "sources"
        self.sources.mkdir(parents=True)
        self.file = self.sources / "shop.yaml"
        merge = {"spark_server": spark.config.model_dump(exclude_none=True), **merge}
        written = source_settings(server, [f"{database}.*"], folder, merge=merge, verify={"wait": "0s"})
        self.file.write_text(yaml.safe_dump({**written, **(settings or {})}))
        self.fill()

    def fill(self) -> None:
        """Make the table."""
        self.execute("CREATE TABLE IF NOT EXISTS orders (id INT PRIMARY KEY, v VARCHAR(20))")
        self.execute("REPLACE INTO orders VALUES (1, 'a'), (2, 'b'), (3, 'c')")

    def execute(self, sql: str) -> None:
        self.server.execute(sql, database=self.database)

    def cdc(self, command: str, code: int = 0) -> str:
        return command_line(self.sources, f"cdc {command}", code)

    def verified(self) -> dict[str, Any]:
        """Compare, and return the report; what the job prints comes before it."""
        text = self.cdc("verify shop --spark --json")
        report: dict[str, Any] = json.loads(text[text.index("\n{") :])
        return report

    def drain(self) -> None:
        """Drain and acknowledge; the lake stays where it is."""
        for step in ("plan", "drain", "ack drain"):
            self.cdc(f"step {step} shop")

    def start_merge(self) -> JobStatus:
        """Send the merge of what is drained to the server, as a task of Airflow does, and return its job at once."""
        key = f"merge of {self.sources}"
        return self.spark.client.submit(job_request(load_source(self.file), "merge", key=key))
