"""A whole run over TLS: to the source, and to an S3 server for batches and lake, each with an authority of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
import yaml

from tests.harness.docs.pages import ROOT
from tests.harness.servers import MariaDbServer, S3Server
from tests.harness.servers.certificate import write_certificate


@pytest.fixture
def source():
    """A server that accepts encrypted sessions alone."""
    with MariaDbServer(settings={"require-secure-transport": "ON"}) as server:
        server.execute("CREATE DATABASE shop")
        server.execute("CREATE TABLE shop.a (id INT PRIMARY KEY, v VARCHAR(9))")
        server.execute("INSERT INTO shop.a VALUES (1, 'x'), (2, 'y')")
        yield server


@pytest.fixture
def cdc(source, tmp_path):
    """Run the command with a source file whose store has some settings changed."""
    with S3Server(names=("localhost", "127.0.0.1")) as s3:
        bucket = s3.make_bucket()
        (tmp_path / "sources").mkdir()
        environment = {**os.environ, "SOURCE_PASSWORD": source.cdc_password, "PYTHONPATH": str(ROOT)}
        environment |= {"STORE_KEY": s3.access_key, "STORE_SECRET": s3.secret_key}

        def _cdc(*words, code=0, **store):
            document = {
                "server": {
                    "host": source.host, "port": source.port, "user": source.cdc_user, "password_env": "SOURCE_PASSWORD",
                    "tls": {"ca": str(source.data_dir / "cert.pem")},
                },
                "tables": ["shop.*"],
                "store": {
                    "url": f"s3://{bucket}/cdc", "endpoint_url": s3.endpoint, "region": s3.region,
                    "access_key_env": "STORE_KEY", "secret_key_env": "STORE_SECRET", "ca": str(s3.certificate), **store,
                },
                "lake": {
                    "type": "jdbc", "uri": f"jdbc:sqlite:{tmp_path}/catalog.db?busy_timeout=30000",
                    "warehouse": f"s3://{bucket}/lake",
                },
                "merge": {"driver_memory": "1g"},
                "verify": {"wait": "0s"},
            }  # fmt: skip
            (tmp_path / "sources" / "shop.yaml").write_text(yaml.safe_dump(document))
            command = [sys.executable, "-m", "cdc_lib.cli", "--sources", str(tmp_path / "sources"), *words]
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900)
            assert done.returncode == code, f"{words}\n{done.stdout}\n{done.stderr}"
            return done

        yield _cdc


def test_a_run_and_a_read_over_tls(cdc, source, tmp_path):
    """By boto3, Spark and PyIceberg; with another authority the run stops before it reads anything, and says how to go on."""
    write_certificate(tmp_path / "other.pem", tmp_path / "other.key")
    refused = cdc("run", "shop", code=2, ca=str(tmp_path / "other.pem"))
    assert "is not accepted: certificate verify failed" in refused.stderr
    assert "store.ca" in refused.stderr
    cdc("run", "shop")
    source.execute("UPDATE shop.a SET v = 'z' WHERE id = 2")
    cdc("run", "shop")
    assert json.loads(cdc("get", "shop", "shop.a", "2", "--json").stdout)["v"] == "z"
