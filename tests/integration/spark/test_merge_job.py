"""The job as a process: with a lake on S3, and killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from cdc_lib.config.credentials import Credentials
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor
from cdc_lib.pipeline import Pipeline
from cdc_lib.read import Lake
from cdc_lib.store import documents
from cdc_lib.store.objects.open import open_store
from spark_jobs.runtime.class_archive import archive_of
from spark_jobs.runtime.session import session_jars
from tests.harness.lake.batches import BIGINT, IDENTITY, TEXT, BatchWriter, Row, table
from tests.harness.lake.running import lake_config
from tests.harness.spark.cluster import HOME

ROOT = Path(__file__).parents[3]
ORDERS = table("shop.orders", {"id": BIGINT, "state": TEXT})

NAMELESS = (
    "unshare",
    "--user",
    "--map-root-user",
    "--uts",
    "sh",
    "-c",
    'hostname no-such-name.invalid && exec "$0" "$@"',
)
"""What gives a command's machine a name that nobody knows."""


class Job:
    """Starts merges of one source."""

    def __init__(self, folder, config, environment):
        self.folder = folder
        self.config = config
        self.environment = {**os.environ, **environment, "PYTHONPATH": str(ROOT)}

    def start(self, plan, *before):
        (self.folder / "config.json").write_text(self.config.model_dump_json())
        (self.folder / "plan.json").write_bytes(documents.dump(plan))
        command = [*before, sys.executable, "-m", "tests.harness.lake.merge_job", "config.json", "plan.json"]
        return subprocess.Popen(
            command, cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )

    def run(self, plan, *before):
        with self.start(plan, *before) as process:
            said, _ = process.communicate(timeout=900)
        assert process.returncode == 0, said
        return said


def children(pid):
    """Return the processes below one: their ids and command lines."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                line = (folder / "cmdline").read_text()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if parent == pid:
                found += [(int(folder.name), line), *children(int(folder.name))]
    return found


def read(config, **properties):
    """Return the rows as PyIceberg reads them."""
    uri = config.lake.uri.removeprefix("jdbc:").partition("?")[0].replace("sqlite:", "sqlite:///")
    catalog = SqlCatalog("lake", uri=uri, **properties)
    try:
        rows = catalog.load_table(("shop", "orders")).scan().to_arrow().to_pylist()
    finally:
        catalog.engine.dispose()
    return sorted((row["id"], row["state"]) for row in rows)


def first_and_second(writer):
    rows = [Row("c", 10 + i, {"id": i, "state": "new"}) for i in (1, 2, 3)]
    one = writer.plan(100, writer.window(4, 100, {ORDERS: rows}))
    rows = [Row("d", 110, {"id": 1, "state": "new"}), Row("u", 120, {"id": 2, "state": "paid"})]
    return one, writer.plan(200, writer.window(100, 200, {ORDERS: rows}))


def spark_with_executors(folder):
    """Return the variables of a Spark whose executors have their files in a folder, beside links to those of pyspark."""
    home = folder / "spark"
    home.mkdir()
    for name in ("bin", "jars", "python"):
        (home / name).symlink_to(HOME / name)
    # A distribution of Spark has a file with this version.
    return {"SPARK_HOME": str(home), "SPARK_SCALA_VERSION": "2.13"}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("master", ["local[2]", "local-cluster[1,1,512]"])
def test_lake_and_batches_are_on_s3_and_no_command_line_has_the_secret(s3_server, bucket, tmp_path, master):
    """Both are reached by the store's settings alone, and another reader finds the same rows.

    Once in a Java process, once with an executor of its own, which gets jars and keys from the job as those of a cluster do.
    """
    config = lake_config(
        tmp_path,
        merge={"driver_memory": "1g", "spark_master": master, "conf": {"spark.executor.memory": "512m"}},
        store={
            "url": f"s3://{bucket}/cdc",
            "endpoint_url": s3_server.endpoint,
            "region": s3_server.region,
            "access_key_env": "LAKE_ACCESS",
            "secret_key_env": "LAKE_SECRET",
        },
        lake={
            "type": "jdbc",
            "uri": f"jdbc:sqlite:{tmp_path}/catalog.db?busy_timeout=30000",
            "warehouse": f"s3://{bucket}/lake",
        },
    )
    keys = {"LAKE_ACCESS": s3_server.access_key, "LAKE_SECRET": s3_server.secret_key}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in keys.items():
            patch.setenv(name, value)
        one, two = first_and_second(BatchWriter(open_store(config.store)))
    job = Job(tmp_path, config, {**keys, **(spark_with_executors(tmp_path) if master != "local[2]" else {})})
    process = job.start(one)
    lines = []
    with process:
        while process.poll() is None:
            lines += [line for _, line in children(process.pid)]
            time.sleep(0.2)
        assert process.returncode == 0, process.stdout.read()
    assert any("java" in line for line in lines)
    assert not any(s3_server.secret_key in line for line in lines)
    job.run(two)
    properties = {
        "s3.endpoint": s3_server.endpoint,
        "s3.access-key-id": s3_server.access_key,
        "s3.secret-access-key": s3_server.secret_key,
        "s3.region": s3_server.region,
    }
    assert read(config, **properties) == [(2, "paid"), (3, "new")]
    with pytest.MonkeyPatch.context() as patch:
        for name, value in keys.items():
            patch.setenv(name, value)
        with Lake.open(config) as lake:
            reader = lake.table("shop.orders")
    assert reader.get(1) is None
    assert reader.get(2, ["state"]) == {"state": "paid"}
    assert reader.scan(columns=["id", "state"]).read_all().to_pylist() == [
        {"id": 2, "state": "paid"},
        {"id": 3, "state": "new"},
    ]


def test_a_killed_job_ends_its_spark_and_the_next_one_finishes_the_work(tmp_path):
    """Whenever the kill comes, no half of a merge is ever seen."""
    config = lake_config(tmp_path)
    one, two = first_and_second(BatchWriter(open_store(config.store)))
    job = Job(tmp_path, config, {})
    job.run(one)
    before = _data(tmp_path)
    process = job.start(two)
    with process:
        deadline = time.monotonic() + 60
        while _data(tmp_path) == before and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.002)
        spark = [pid for pid, _ in children(process.pid)]
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert spark
    deadline = time.monotonic() + 30
    while any(Path(f"/proc/{pid}").exists() for pid in spark) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(Path(f"/proc/{pid}").exists() for pid in spark)
    before, after = [(1, "new"), (2, "new"), (3, "new")], [(2, "paid"), (3, "new")]
    assert read(config) in (before, after)
    job.run(two)
    assert read(config) == after


def test_a_machine_whose_name_has_no_address_merges(tmp_path):
    """Java looks for it at its start: containers and fresh machines often lack the line in /etc/hosts."""
    config = lake_config(tmp_path)
    one, _ = first_and_second(BatchWriter(open_store(config.store)))
    Job(tmp_path, config, {}).run(one, *NAMELESS)
    assert read(config) == [(1, "new"), (2, "new"), (3, "new")]


def test_executors_need_an_address_of_the_machine(tmp_path):
    """The error comes before Java starts."""
    config = lake_config(tmp_path, merge={"spark_master": "spark://127.0.0.1:7077"})
    one, _ = first_and_second(BatchWriter(open_store(config.store)))
    with Job(tmp_path, config, {}).start(one, *NAMELESS) as process:
        said, _ = process.communicate(timeout=900)
    assert process.returncode != 0
    assert "ConfigError: the name of this machine, no-such-name.invalid, has no address" in said
    assert "Exception in thread" not in said


def test_a_plan_without_changes_publishes_its_cut_and_starts_no_spark(tmp_path):
    """Eight seconds for nothing would be too long on a schedule of one minute."""
    config = lake_config(tmp_path)
    writer = BatchWriter(open_store(config.store))
    said = Job(tmp_path, config, {}).run(writer.plan(100, writer.window(4, 100, {})))
    assert "CUT merge-000001 0" in said
    assert "SPARK False" in said


def test_the_command_merges_what_the_lake_cursor_has_in_flight(tmp_path):
    """It plans automatically, starts no Spark for nothing, and gives 2 for a wrong file."""
    config = lake_config(tmp_path)
    one, _ = first_and_second(BatchWriter(open_store(config.store)))
    (tmp_path / "shop.yaml").write_text(config.model_dump_json())  # JSON is YAML
    pipeline = Pipeline.open(config, Credentials("", ""))
    drain = Cursor("shop", DRAIN, 0, 1, IDENTITY, one.stop)
    pipeline.cursors.swap(None, drain)
    pipeline.cursors.swap(None, replace(drain, consumer=LAKE, position=one.start))

    def command(name):
        line = [sys.executable, "-m", "spark_jobs.merge", "--source-dir", str(tmp_path), "--config", name]
        done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
        return done.returncode, done.stdout + done.stderr

    code, said = command("shop")
    assert code == 0, said
    assert "shop.orders: 3 changes into lake.shop.orders" in said
    # Each would take a process of its own.
    assert not [*tmp_path.glob("warehouse/**/*.crc")]
    assert [*tmp_path.glob("warehouse/**/*.parquet")]
    assert pipeline.ack_lake(by="test").stop == one.stop
    code, said = command("shop")
    assert (code, said) == (0, "shop: nothing to merge\n")
    (tmp_path / "wrong.yaml").write_text("source: wrong\nserver: {hots: x}\n")
    code, said = command("wrong")
    assert code == 2
    assert "hots" in said


def _data(folder):
    """Return the data files of the table; those of a merge are there before its commit."""
    return set(folder.glob("warehouse/shop/orders/data/*"))


def test_java_maps_the_classes_that_were_kept(spark_lake):
    """The archive that the set-up makes fits the class path with which jobs start, or Java would go without a word."""
    spark, config = spark_lake
    java = spark._jvm.java.lang.ProcessHandle.current().pid()
    assert str(archive_of(session_jars(config))) in Path(f"/proc/{java}/maps").read_text()
