"""Two jobs of different sources that are attached to one running Spark at the same time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml

from tests.harness.spark.attached_job import AttachedJob, attached_job

PARTITIONS, ANSI = "spark.sql.shuffle.partitions", "spark.sql.ansi.enabled"


@pytest.fixture
def jobs(spark_lake, tmp_path: Path) -> Iterator[tuple[AttachedJob, AttachedJob]]:
    """Two jobs that run until the end of the test; the file of the second one has no ``merge.conf``."""
    spark, _ = spark_lake
    with ExitStack() as stack:

        def job(name: str, merge: dict[str, object]) -> AttachedJob:
            store = {"url": f"s3://bucket/{name}", "access_key_env": "KEY", "secret_key_env": "SECRET"}
            written = {
                "server": {"host": "127.0.0.1", "port": 1, "user": "cdc", "password_env": "NOT_ASKED"},
                "tables": [f"{name}.*"],
                "store": store,
                "lake": {
                    "type": "jdbc",
                    "uri": f"jdbc:sqlite:{tmp_path}/{name}.db",
                    "warehouse": f"file://{tmp_path}/{name}",
                },
                "merge": merge,
            }
            file = tmp_path / f"{name}.yaml"
            file.write_text(yaml.safe_dump(written))
            keys = {"KEY": f"key of {name}", "SECRET": f"secret of {name}"}
            return stack.enter_context(attached_job(spark, name, file, keys))

        yield job("one", {"conf": {PARTITIONS: "7"}}), job("other", {})


def test_a_job_sees_no_view_setting_key_or_table_of_another(jobs: tuple[AttachedJob, AttachedJob]) -> None:
    one, other = jobs
    assert (one.setting(PARTITIONS), other.setting(PARTITIONS)) == ("7", "4")
    for job, name in ((one, "one"), (other, "other")):
        assert job.setting("fs.s3a.access.key") == f"key of {name}"
        assert job.setting("fs.s3a.secret.key") == f"secret of {name}"
        assert str(job.setting("spark.sql.catalog.lake.warehouse")).endswith(f"/{name}")

    assert one.sql("CREATE TEMPORARY VIEW changes AS SELECT 1 AS n") == []
    assert one.sql("CREATE NAMESPACE shop") == []
    one.sql(f"SET {ANSI} = false")
    assert one.sql("SELECT n FROM changes") == [[1]]
    assert other.sql("SELECT n FROM changes") == "TABLE_OR_VIEW_NOT_FOUND"
    assert (one.sql("SHOW NAMESPACES"), other.sql("SHOW NAMESPACES")) == ([["shop"]], [])
    assert (one.setting(ANSI), other.setting(ANSI)) == ("false", "true")

    assert other.sql("CREATE TEMPORARY VIEW changes AS SELECT 2 AS n") == []
    assert (one.sql("SELECT n FROM changes"), other.sql("SELECT n FROM changes")) == ([[1]], [[2]])


def test_a_job_may_ask_for_its_session_again(jobs: tuple[AttachedJob, AttachedJob]) -> None:
    """As a merge does that is planned again: there is one SparkContext in a process."""
    one, _ = jobs
    assert one.sql("CREATE NAMESPACE again") == []
    assert one.sql_again("SHOW NAMESPACES") == [["again"]]
    assert one.sql("SHOW NAMESPACES") == [["again"]]
