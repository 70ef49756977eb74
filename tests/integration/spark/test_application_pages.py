"""The pages of the Spark that a task starts for its job, on a real cluster: its own while it runs, and the master's when it has ended."""

from __future__ import annotations

import urllib.request
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from cdc_airflow.airflow_versions import TaskInstanceKey
from cdc_airflow.links import SparkUiLink
from cdc_airflow.operators import MergeOperator
from cdc_lib.config import load_source
from cdc_lib.config.credentials import credentials_from_environment
from cdc_lib.pipeline import Pipeline
from tests.harness.servers import MySqlServer
from tests.harness.servers.process import free_port
from tests.harness.shop.seeded import source_settings
from tests.harness.spark.cluster import SparkCluster

pytestmark = pytest.mark.slow


def page(address: str) -> str:
    with urllib.request.urlopen(address, timeout=60) as answer:  # noqa: S310 - the test's own servers
        text: str = answer.read().decode()
    return text


class Visitor(SimpleNamespace):
    """A task of which somebody uses the button at once."""

    def __init__(self) -> None:
        super().__init__(dag_id="cdc_shop", run_id="r1", task_id="merge", map_index=-1, try_number=1)
        self.seen: list[tuple[str, str, str]] = []

    def xcom_push(self, key: str, value: str) -> None:
        """Keep the address of a button, and what its page shows."""
        self.seen.append((key, value, page(value)))


def test_the_button_leads_to_the_application_and_then_to_its_page_at_the_master(
    mysql_server: MySqlServer, mysql_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Also where the job fails: the next try, without pages of its own, has the master's from the start."""
    monkeypatch.setenv("CDC_PASSWORD", mysql_server.cdc_password)
    mysql_server.execute("CREATE TABLE orders (id INT PRIMARY KEY)", database=mysql_database)
    mysql_server.execute("INSERT INTO orders VALUES (1)", database=mysql_database)
    own_port = free_port()
    with SparkCluster(tmp_path / "cluster", workers=1) as cluster:
        conf = {"spark.executor.memory": "512m", "spark.driver.host": "127.0.0.1", "spark.ui.port": str(own_port)}
        merge = {"spark_master": cluster.url, "driver_memory": "1g"}
        merge |= {"application_url": f"{cluster.page}/app/?appId={{id}}"}
        file = tmp_path / "shop.yaml"

        def write(pages: str, **lake: str) -> None:
            written = source_settings(
                mysql_server,
                [f"{mysql_database}.*"],
                tmp_path,
                merge={**merge, "conf": {**conf, "spark.ui.enabled": pages}},
            )
            file.write_text(yaml.safe_dump({**written, "lake": {**written["lake"], **lake}}))

        def merged() -> tuple[Visitor, str, BaseException | None]:
            task, visitor, failed = MergeOperator(task_id="merge", source_file=str(file)), Visitor(), None
            context: Any = {"ti": visitor}
            try:
                task.execute(context)
            except Exception as error:  # noqa: BLE001 - returned
                failed = error
            link = SparkUiLink().get_link(task, ti_key=TaskInstanceKey("cdc_shop", "merge", "r1", 1, -1))
            return visitor, link, failed

        write("true")
        config = load_source(file)
        pipeline = Pipeline.open(config, credentials_from_environment(config.server))
        for unit in pipeline.plan(by="test"):
            pipeline.drain(unit)
        pipeline.ack_drain(by="test")
        write("false", warehouse="nonsense://lake")
        visitor, failed_link, error = merged()
        assert error is not None
        assert [(key, address) for key, address, _ in visitor.seen] == [(SparkUiLink().xcom_key, failed_link)]
        write("true")
        visitor, link, error = merged()
        assert error is None
        ((_, address, shown),) = visitor.seen
        assert address.endswith(f":{own_port}")
        assert "cdc-merge-shop" in shown
        assert link.startswith(f"{cluster.page}/app/?appId=app-")
        assert link != failed_link
        ended = page(link)
        assert "cdc-merge-shop" in ended
        assert "FINISHED" in ended
