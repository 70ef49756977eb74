"""A run as in a container with a read-only root: only the folder of temporary files, the store and the lake can be written."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import yaml

from tests.harness.docs.pages import ROOT
from tests.harness.shop.read_only_root import can_be_read_only, read_only_root

pytestmark = [
    pytest.mark.skipif(not can_be_read_only(), reason="this user may not make mount namespaces"),
]


@pytest.fixture
def cdc(mysql_server, mysql_database, tmp_path):
    """Run the command line, started in the folder of temporary files, as docs/kubernetes/cronjobs.yaml does."""
    for name in ("scratch", "data", "sources"):
        (tmp_path / name).mkdir()
    source = {
        "server": {
            "host": mysql_server.host, "port": mysql_server.port, "user": mysql_server.cdc_user, "password_env": "PASSWORD",
        },
        "tables": [f"{mysql_database}.*"],
        "store": {"url": f"file://{tmp_path}/data/batches"},
        "lake": {
            "type": "jdbc", "uri": f"jdbc:sqlite:{tmp_path}/data/catalog.db", "warehouse": f"file://{tmp_path}/data/lake",
        },
        "merge": {"driver_memory": "1g"},
    }  # fmt: skip
    (tmp_path / "sources" / "billing.yaml").write_text(yaml.safe_dump(source))
    environment = {
        **os.environ,
        "CDC_SOURCES": str(tmp_path / "sources"),
        "HOME": str(tmp_path / "scratch"),
        "PASSWORD": mysql_server.cdc_password,
        "PYTHONPATH": str(ROOT),
        "TMPDIR": str(tmp_path / "scratch"),
        "JAVA_TOOL_OPTIONS": f"-Djava.io.tmpdir={tmp_path}/scratch",  # Java does not read TMPDIR
    }
    environment.setdefault("CDC_CACHE", os.path.expanduser("~/.cache/lakecdc"))  # noqa: PTH111 - HOME is another one above
    environment.pop("NUMBA_CACHE_DIR", None)

    def run(*words):
        command = [sys.executable, "-m", "cdc_lib.cli", *words]
        return subprocess.run(
            read_only_root(command, writable=[tmp_path / "scratch", tmp_path / "data"]),
            env=environment, cwd=tmp_path / "scratch", capture_output=True, text=True, timeout=900,
        )  # fmt: skip

    return run


def test_a_run_needs_only_the_folder_of_temporary_files(cdc, mysql_server, mysql_database, tmp_path):
    """The compiled kernels are copied there, because numba refuses a cache that it cannot write."""
    mysql_server.execute(f"CREATE TABLE {mysql_database}.a (id INT PRIMARY KEY, v VARCHAR(9))")
    mysql_server.execute(f"INSERT INTO {mysql_database}.a VALUES (1, 'x'), (2, 'y'), (3, 'z')")
    done = cdc("run", "billing")
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert list((tmp_path / "scratch").glob(f"lakecdc-{os.getuid()}/kernels-*/**/*.nbi"))
    refused = subprocess.run(
        read_only_root(["touch", str(tmp_path / "sources" / "x")], writable=[tmp_path / "scratch"]), capture_output=True
    )
    assert refused.returncode != 0  # the file system was read-only
