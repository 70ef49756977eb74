"""Log-in by tokens of Amazon RDS, against a stand-in that checks their signatures; a real server answers all that follows."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest

from cdc_lib.config import Credentials, ServerConfig, credentials_from_environment
from cdc_lib.errors import ConfigError, UnsupportedServer
from cdc_lib.model.position import Position
from cdc_lib.mysql import rds_iam
from cdc_lib.mysql.binlog_stream import binlog_dump
from cdc_lib.mysql.connection import connect
from cdc_lib.mysql.server_facts import facts_of
from cdc_lib.mysql.statements import rows_of
from tests.harness.binlog.capture import Capture
from tests.harness.servers.certificate import write_certificate
from tests.harness.store.iam_server import IamServer

KEYS = ("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
REGION = "eu-central-1"


@pytest.fixture(autouse=True)
def aws(monkeypatch, tmp_path):
    """The AWS credentials of this process, and none of this machine."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEYS[0])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", KEYS[1])
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)
    rds_iam._client.cache_clear()
    yield
    rds_iam._client.cache_clear()


@pytest.fixture
def certificate(tmp_path):
    write_certificate(tmp_path / "ca.pem", tmp_path / "key.pem")
    return tmp_path / "ca.pem", tmp_path / "key.pem"


@pytest.fixture
def iam(mysql_server, certificate):
    with IamServer(mysql_server, KEYS, REGION, *certificate) as server:
        yield server


def settings(port, certificate, **changed):
    given = {
        "host": "localhost",
        "port": port,
        "user": "app",
        "rds_iam": {"region": REGION},
        "tls": {"ca": certificate[0]},
    }
    return ServerConfig.model_validate({**given, **changed})


def test_a_session_and_a_stream_of_the_binlog_begin_with_a_token(iam, certificate, mysql_server):
    """Its signature is right, and there is no password anywhere."""
    server = settings(iam.port, certificate)
    credentials = credentials_from_environment(server, {})
    assert credentials == Credentials("app", "")
    with connect(server, credentials) as session:
        assert rows_of(session, "SELECT CURRENT_USER()")[0][0].startswith(f"{mysql_server.cdc_user}@")
    facts = facts_of(server, credentials)
    with binlog_dump(server, credentials, facts.identity, Position(facts.files[0][0], 4)) as stream:
        assert stream.read_into(memoryview(bytearray(1 << 16))) > 100
    assert len(iam.answers) == 3
    assert set(iam.answers) == {""}


def test_each_connection_has_a_new_token(iam, certificate):
    """One that was made before is refused from some moment on; the next connection does not come with it."""
    server, credentials = settings(iam.port, certificate), Credentials("app", "")
    connect(server, credentials).close()
    time.sleep(1.1)  # tokens are dated in whole seconds
    iam.not_before = datetime.now(UTC).replace(microsecond=0)
    connect(server, credentials).close()
    assert iam.answers == ["", ""]
    assert len(set(iam.tokens)) == 2
    assert iam.fault_of(iam.tokens[0], "app") == "the token is an old one"


def test_a_snapshot_and_a_drain_log_in_by_tokens(iam, certificate, mysql_server, mysql_database, tmp_path):
    """Whole steps of the pipeline, with every connection that they open."""
    capture = Capture(mysql_server, mysql_database, tmp_path)
    capture.execute("CREATE TABLE a (id INT PRIMARY KEY)")
    capture.execute("INSERT INTO a VALUES (1), (2)")
    config = capture.config.model_copy(update={"server": settings(iam.port, certificate)})
    pipeline = type(capture.pipeline)(config, Credentials("app", ""), capture.store, capture.pipeline.cursors)
    for _ in range(2):
        for unit in pipeline.plan(by="test"):
            pipeline.drain(unit)
        pipeline.ack_drain(by="test")
        capture.execute("INSERT INTO a SELECT MAX(id) + 1 FROM a")
    assert pipeline.plan_merge(by="test") is not None
    assert len(iam.answers) > 4
    assert set(iam.answers) == {""}


@pytest.mark.parametrize("changed", [{"user": "other"}, {"rds_iam": {"region": "us-east-1"}}])
def test_a_token_for_something_else_is_refused(iam, certificate, changed):
    """The stand-in checks: a token of another region has another signature; one of another user names that user."""
    server = settings(iam.port, certificate, **changed)
    if "user" in changed:
        token = rds_iam.login_token(server, REGION, "other")
        assert iam.fault_of(token, "app") == "the token is for other"
        return
    with pytest.raises(UnsupportedServer, match="Access denied"):
        connect(server, Credentials("app", ""))
    assert iam.answers == ["wrong signature"]


def test_no_token_is_sent_to_a_server_that_is_not_known(mysql_server, certificate, tmp_path):
    """Neither without TLS nor to one with another certificate."""
    write_certificate(tmp_path / "other.pem", tmp_path / "other.key")
    with IamServer(mysql_server, KEYS, REGION, *certificate, tls=False) as server:
        with pytest.raises(UnsupportedServer, match=r"SSL|TLS"):
            connect(settings(server.port, certificate), Credentials("app", ""))
        assert server.tokens == []
    with IamServer(mysql_server, KEYS, REGION, tmp_path / "other.pem", tmp_path / "other.key") as server:
        with pytest.raises(UnsupportedServer, match="certificate is not accepted"):
            connect(settings(server.port, certificate), Credentials("app", ""))
        assert server.tokens == []


@pytest.mark.parametrize("tls", [None, {"verify": False}])
@pytest.mark.parametrize("encrypted", [False, True])
def test_no_password_is_shown_to_a_server_whose_certificate_is_not_checked(mysql_server, certificate, tls, encrypted):
    """The driver would send it as it is, to whoever asks for it."""
    with IamServer(mysql_server, KEYS, REGION, *certificate, tls=encrypted) as server:
        plain = settings(server.port, certificate, rds_iam=None, password_env="UNUSED", tls=tls)
        with pytest.raises(UnsupportedServer, match=r"asks for the password itself|SSL"):
            connect(plain, Credentials("app", "hunter2"))
        assert server.tokens == []


def test_a_process_without_aws_credentials_is_told_what_it_needs(iam, certificate, monkeypatch):
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(ConfigError, match="no log-in token for localhost") as caught:
        connect(settings(iam.port, certificate), Credentials("app", ""))
    assert "rds-db:connect" in caught.value.hint


@pytest.mark.parametrize(
    "changed",
    [{"tls": None}, {"tls": {"verify": False}}, {"password_env": "P"}, {"connection": "c"}, {"user": None}],
)
def test_a_source_file_that_would_send_tokens_to_anybody_is_refused(changed):
    given = {"host": "db", "user": "app", "rds_iam": {"region": REGION}, "tls": {}}
    assert ServerConfig.model_validate(given)
    with pytest.raises(ValueError, match=r"rds_iam|needs user"):
        ServerConfig.model_validate({**given, **changed})
