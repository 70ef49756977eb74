"""Twelve breakages, each ended by somebody who does what is printed and nothing else, in four steps at most, to equal tables.

| breakage | test |
|---|---|
| password changed, user missing | test_a_changed_password, test_a_missing_user |
| binlog purged | test_a_purged_binlog |
| type changed | test_a_changed_type |
| S3 away | test_s3_that_is_away |
| Spark server away | test_a_spark_server_that_is_away |
| disk full | test_a_full_disk |
| failover | test_a_server_that_is_dead |
| Airflow killed | tests/integration/airflow/test_killed_tasks.py: tasks, scheduler, triggerer |
| catalog away | test_a_catalog_that_is_away |
| clock ahead | test_a_clock_that_is_ahead |
| backlog of a week | test_a_backlog_of_many_files |
| wrong YAML | test_a_wrong_source_file |
"""

from __future__ import annotations

import os
import re
import secrets
import shlex
import subprocess
import sys

import pytest

from tests.harness.docs.pages import ROOT
from tests.harness.servers import MySqlServer, S3Server
from tests.harness.servers.replication import replicated
from tests.harness.servers.rest_catalog import RestCatalogServer
from tests.harness.servers.skew import can_be_wrong, wrong_clock
from tests.harness.shop.night import PASSWORD, Night
from tests.harness.spark.server import RunningSparkServer

pytestmark = pytest.mark.turns(12)


@pytest.fixture(scope="module")
def server():
    """A server of its own: users and binlogs are changed."""
    with MySqlServer() as started:
        yield started


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    """Merges without a start of Java each."""
    with RunningSparkServer(tmp_path_factory.mktemp("spark")) as started:
        yield started


@pytest.fixture
def night(server, spark, tmp_path):
    """Make a merged source that has changes to merge; sections of its file may be given."""

    def _night(on=server, **sections):
        database = f"night_{secrets.token_hex(4)}"
        on.execute(f"CREATE DATABASE {database}")
        merge = {"spark_server": spark.config.model_dump(exclude_none=True)}
        made = Night(on, database, tmp_path, **{"merge": merge, **sections})
        made.environ |= sections.pop("environ", {})
        return made

    return _night


def begun(one):
    one.begin()
    return one


def test_a_changed_password(server, night):
    """The words name the user and where its password came from, and ``cdc doctor`` says no less."""
    one = begun(night())
    server.execute(f"ALTER USER {server.cdc_user} IDENTIFIED BY 'changed'")
    try:
        said = one.stops()
        assert f"The user is cdc; its password came from the environment variable {PASSWORD}." in said
        assert f"environment variable {PASSWORD}. If the password was changed, put the new one there" in one.cdc(
            "cdc doctor --json", 1
        )
        one.step()
        one.environ[PASSWORD] = "changed"
        one.again()
        one.ends()
    finally:
        server.execute(f"ALTER USER {server.cdc_user} IDENTIFIED BY '{server.cdc_password}'")


def test_a_missing_user(server, night):
    """The statements are printed."""
    one = begun(night())
    server.execute(f"RENAME USER {server.cdc_user} TO kept")
    try:
        one.stops()
        one.step()
        for statement in re.findall(r"(?:CREATE USER|GRANT) [^;]*;", one.reads("CREATE USER .* TO 'cdc'@'%';")):
            server.execute(statement.replace("'...'", f"'{server.cdc_password}'"))
        one.again()
        one.ends()
    finally:
        server.execute(f"DROP USER {server.cdc_user}")
        server.execute(f"RENAME USER kept TO {server.cdc_user}")


def test_a_purged_binlog(server, night):
    """Nothing is said of bytes that nobody can count."""
    one = begun(night())
    for _ in range(2):
        server.execute("FLUSH BINARY LOGS")
    server.purge_binlogs()
    assert re.search(r"made \d+ (s|min) after the last change that was read", one.stops())
    assert "not drained" not in one.cdc("cdc status shop")
    moved = one.does(one.reads(r"cdc cursor rewind shop --position \S+:4"))
    assert "an unknown number of bytes after binlog." in moved
    one.does("cdc snapshot shop '*.*'")
    one.again()
    one.ends()


def test_a_changed_type(night):
    """No task is red: the next run reads the table again."""
    one = begun(night())
    one.execute("ALTER TABLE orders ADD n INT, MODIFY v VARBINARY(40)")
    assert "read again" in one.stops(code=0)
    one.again()
    one.execute("ALTER TABLE orders DROP COLUMN n, MODIFY v VARCHAR(40)")
    one.again()
    one.again()
    one.ends()


def test_s3_that_is_away(night, tmp_path, monkeypatch):
    """``cdc doctor`` says when it is back."""
    with S3Server(tmp_path / "objects") as s3:
        bucket = s3.make_bucket("night")
        keys = {"access_key_env": "NIGHT_KEY", "secret_key_env": "NIGHT_SECRET"}
        one = night(store={"url": f"s3://{bucket}/store", "endpoint_url": s3.endpoint, "region": s3.region, **keys})
        one.environ |= {"NIGHT_KEY": s3.access_key, "NIGHT_SECRET": s3.secret_key}
        begun(one)
        s3._process.stop()
        assert f"It is retried. Check that {s3.endpoint} (store.endpoint_url) runs" in one.stops()
        assert f"Check that {s3.endpoint} (store.endpoint_url) runs" in one.cdc("cdc doctor --json", 1)
        s3.start()
        one.step()
        assert "takes and gives back what is written" in one.does("cdc doctor")
        one.again()
        one.ends()


def test_a_spark_server_that_is_away(night, tmp_path):
    """The command that starts it is printed with its options."""
    with RunningSparkServer(tmp_path) as own:
        one = begun(night(merge={"spark_server": own.config.model_dump(exclude_none=True)}))
        own.kill()
        one.stops()
        words = shlex.split(one.reads(r"cdc spark serve --socket \S+(?=\.)"))
        one.step()
        environ = {**os.environ, "PYTHONPATH": str(ROOT)}
        with subprocess.Popen([sys.executable, "-m", "cdc_lib.cli", *words[1:]], cwd=tmp_path, env=environ) as started:
            try:
                own.wait(started)
                one.again()
                one.ends()
            finally:
                started.terminate()


@pytest.fixture
def small_disk(tmp_path):
    """A file system of four MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("only root may mount a small file system, and not everywhere")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(disk):
    """Let other files take all of a disk."""
    free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
    (disk / "others.log").write_bytes(bytes(free))


def test_a_full_disk(night, small_disk):
    """The words name the folder, the bytes that are free, and what frees some; it works on the full disk."""
    one = night(store={"url": f"file://{small_disk}/store", "keep_batches_for": "0m"})
    one.begin()
    one.execute("CREATE TABLE pages (id INT PRIMARY KEY, v MEDIUMBLOB)")
    one.execute("INSERT INTO pages VALUES (1, RANDOM_BYTES(1000)), (2, repeat(RANDOM_BYTES(1000), 1))")
    one.cdc("cdc run shop")
    one.change()
    fill(small_disk)
    said = one.stops()
    assert f"The disk of {small_disk}/store is full: 0 bytes are free. Remove other files there, or enlarge it" in said
    assert f"The disk of {small_disk}/store is full: 0 bytes are free." in one.cdc("cdc doctor --json", 1)
    one.does("cdc batches gc shop --yes")
    one.step()
    (small_disk / "others.log").unlink()
    one.again()
    one.ends()


def test_a_full_disk_of_the_lake(night, small_disk):
    """The words of Spark are followed by the folders and what is free there."""
    one = begun(
        night(
            lake={
                "type": "jdbc",
                "uri": f"jdbc:sqlite:{small_disk.parent}/c.db",
                "warehouse": f"file://{small_disk}/lake",
            }
        )
    )
    fill(small_disk)
    assert f"A disk is full. Here: {small_disk}/lake (0 bytes free)" in one.stops()
    assert f"The disk of {small_disk}/lake is full: 0 bytes are free." in one.cdc("cdc doctor --json", 1)
    one.step()
    (small_disk / "others.log").unlink()
    one.again()
    one.ends()


def test_a_server_that_is_dead(night):
    """Another server has its data, and the source file does not name it."""
    with replicated("mysql with GTIDs") as pair:
        one = night(pair.primary)
        pair.primary.execute("CREATE TABLE seen (id INT PRIMARY KEY, v INT)", database=one.database)
        one.begin()
        pair.wait(f"{one.database}.seen")
        pair.promote()
        assert "If another server took over, name it under standbys" in one.stops()
        one.edits("store:", f"standbys: [{{host: 127.0.0.1, port: {pair.standby.port}}}]\nstore:")
        one.again()
        one.server = pair.standby
        one.ends()


def test_a_catalog_that_is_away(night, tmp_path):
    """Spark's words are followed by what to look at."""
    with RestCatalogServer(f"file://{tmp_path}/lake") as catalog:
        one = begun(night(lake={"type": "rest", "uri": catalog.url, "warehouse": f"file://{tmp_path}/lake"}))
        catalog._process.stop()
        assert (
            "It is retried. Check that the lake's catalog (lake.uri) and its storage (lake.warehouse) run"
            in one.stops()
        )
        assert catalog.url in one.cdc("cdc doctor --json", 1)
        catalog.__enter__()
        one.step()
        one.does("cdc doctor")
        one.again()
        one.ends()


@pytest.mark.skipif(not can_be_wrong(), reason="there is no C compiler")
def test_a_clock_that_is_ahead(night):
    """Nothing is written, and the words name both clocks."""
    one = night(merge={"spark_master": "local[1]", "driver_memory": "1g"})
    begun(one)
    right = dict(one.environ)
    one.environ |= wrong_clock(5 * 3600)
    assert "Set the clock that is wrong" in one.stops()
    one.environ = right
    one.step()
    one.again()
    one.ends()


def test_a_backlog_of_many_files(server, night):
    """One setting lets one run read it all."""
    one = begun(night(drain={"max_windows": 1, "max_window_bytes": 400}))
    for _ in range(6):
        server.execute("FLUSH BINARY LOGS")
        one.change()
    assert "of binlog are not drained" in one.stops(code=0)
    number = one.reads(r"drain\.max_windows: \d+ in the source file").split()[1]
    one.edits("max_windows: 1", f"max_windows: {number}")
    one.again()
    assert "0 B" in one.cdc("cdc status shop")
    one.ends()


def test_a_wrong_source_file(night):
    """File, line and the right key."""
    one = begun(night())
    one.file.write_text(one.file.read_text().replace("tables:", "tabels:"))
    assert "did you mean 'tables'?" in one.stops(code=2)
    one.edits("tabels:", "tables:")
    one.again()
    one.ends()
