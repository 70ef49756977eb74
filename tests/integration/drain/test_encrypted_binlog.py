"""A MariaDB server that encrypts its binlog files: it decrypts what it sends."""

from __future__ import annotations

import secrets

import pytest

from cdc_lib.store.manifests import load_manifest
from cdc_lib.verify.batches.windows import BatchVerification, Choice
from tests.harness.binlog.capture import Capture
from tests.harness.servers import MariaDbServer, mariadb
from tests.harness.servers.debian_packages import DebianPackages

pytestmark = [
    pytest.mark.slow,  # the packages have more than the server's core, and are fetched
    pytest.mark.filterwarnings("ignore:.*is deprecated, use:DeprecationWarning"),  # of mysql-replication
]

PACKAGES = DebianPackages(
    "mariadb-10.11-plugins", "bookworm", ("mariadb-server-core", "mariadb-client-core", "mariadb-server")
)
"""The core packages have no plugins."""


@pytest.fixture
def encrypted(tmp_path, monkeypatch):
    """A server with ``encrypt_binlog=ON`` and a key in a file."""
    monkeypatch.setattr(mariadb, "_on_path", lambda _program: None)
    monkeypatch.setattr(mariadb, "installation", lambda: mariadb._from_packages(PACKAGES))
    (tmp_path / "keys").write_text(f"1;{secrets.token_hex(32)}\n")
    settings = {
        "plugin-load-add": "file_key_management",
        "file-key-management-filename": str(tmp_path / "keys"),
        "encrypt-binlog": "ON",
    }
    with MariaDbServer(settings=settings) as server:
        yield server


def test_windows_of_encrypted_files_are_planned_drained_and_decoded_a_second_time(encrypted, tmp_path):
    """From the beginning of a file and from its middle, over the end of a file; the text is in no file of the server."""
    encrypted.execute("CREATE DATABASE shop")
    capture = Capture(encrypted, "shop", tmp_path, start="latest")
    pipeline, marker = capture.pipeline, "pl41n-t3xt-" * 3
    pipeline.plan(by="test")
    capture.execute("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(90))")
    for number in range(2):
        capture.execute(f"INSERT INTO t VALUES ({number}, '{marker}')")
        encrypted.execute("FLUSH BINARY LOGS")
        capture.execute(f"UPDATE t SET v = '{number}' WHERE id = {number}")
        for unit in pipeline.plan(by="test"):
            pipeline.drain(unit)
        pipeline.ack_drain(by="test")
    keys = sorted(key for key in capture.visible() if key.endswith("manifest.json"))
    rows = [row for key in keys for row in capture.rows(load_manifest(capture.store, key), "t")]
    assert [(row["id"], row["v"]) for row in rows] == [(0, marker), (0, "0"), (1, marker), (1, "1")]
    files = [path.read_bytes() for path in encrypted.data_dir.glob("binlog.0*")]
    assert len(files) == 3
    assert not any(marker.encode() in data for data in files)
    verification = BatchVerification(pipeline)
    checks = verification.run(Choice()).windows
    assert sum(one.equal for one in checks) == 4
    assert not any(one.differing or one.skipped for one in checks), checks
