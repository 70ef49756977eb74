"""Servers that only an SSH server reaches: every connection goes through it, and what fails on the way is named."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import time
from contextlib import closing

import pytest

from cdc_lib.config import Credentials, HopLogin, ServerConfig
from cdc_lib.config.server import Address
from cdc_lib.config.start import FailoverConfig
from cdc_lib.doctor.examine import examine
from cdc_lib.errors import ConfigError, SourceUnavailable, TunnelRefused, TunnelUnavailable, UnsupportedServer
from cdc_lib.model.position import Position
from cdc_lib.mysql.binlog_stream import binlog_dump
from cdc_lib.mysql.connection import can_be_reached, connect
from cdc_lib.mysql.server_facts import facts_of, read_identity
from cdc_lib.mysql.statements import rows_of
from cdc_lib.mysql.tunnel.ssh import close_tunnels
from cdc_lib.source import Source
from cdc_lib.store import layout
from tests.harness.binlog.capture import Capture
from tests.harness.network.bastion import PASSPHRASE, PASSWORD, SSHD, Bastion
from tests.harness.servers import MySqlServer
from tests.harness.servers.certificate import write_certificate
from tests.harness.servers.process import free_port

ONCE = FailoverConfig(attempts=1)


def settings(server, bastion, host="db.private", **changed):
    given = {"host": host, "port": server.port, "user": server.cdc_user, "password_env": "UNUSED"}
    return {**given, "ssh": bastion.section(), **changed}


def log_in(server, bastion, **hop):
    return Credentials(server.cdc_user, server.cdc_password, hop=HopLogin(bastion.user, **hop))


def said(server, bastion, login=None, **changed):
    """Ask the server something, through the bastion."""
    config = ServerConfig.model_validate(settings(server, bastion, **changed))
    with closing(connect(config, login or log_in(server, bastion))) as session:
        return rows_of(session, "SELECT 6 * 7")[0][0]


def read_to_end(stream, buffer):
    while stream.read_into(buffer):
        pass


def behind(bastion, server, database, folder, **changed):
    """A capture whose server is in the private network."""
    folder.mkdir()
    capture = Capture(server, database, folder)
    capture.credentials = log_in(server, bastion)
    config = type(capture.config).model_validate(
        {**capture.config.model_dump(), "server": settings(server, bastion, **changed)}
    )
    capture.config = config
    capture.pipeline = type(capture.pipeline)(config, capture.credentials, capture.store, capture.pipeline.cursors)
    return capture


def test_a_source_is_planned_drained_and_read_through_it_alone(any_server, database, bastion, tmp_path):
    """The name of the server is known to the bastion only, so nothing can have gone another way; the bytes are those of a direct drain."""
    capture = behind(bastion, any_server, database, tmp_path / "one")
    capture.execute("CREATE TABLE t (id INT PRIMARY KEY, v LONGTEXT)")
    capture.execute("INSERT INTO t VALUES (1, REPEAT('x', 9000000))")
    for unit in capture.pipeline.plan(by="test"):
        capture.pipeline.drain(unit)
    capture.pipeline.ack_drain(by="test")
    capture.execute("INSERT INTO t VALUES (2, REPEAT('y', 9000000)), (3, 'z')")
    units = capture.pipeline.plan(by="test")
    for unit in units:
        capture.pipeline.drain(unit)
    [window] = units
    direct = Capture(any_server, database, tmp_path / "direct")
    there = direct.drain(window)
    here = capture.manifest(layout.manifest_key(window))
    assert sum(file.rows for file in here.files) == 2
    assert [file.sha256 for file in here.files] == [file.sha256 for file in there.files]
    asked = bastion.asked()
    assert asked.count("log-in of tunnel") == 1  # one SSH connection for all sessions
    assert asked.count("db.private") >= 4
    assert {one for one in asked if not one.startswith("log-in")} == {"db.private"}


def test_the_name_of_the_server_itself_is_checked_by_tls(bastion, tmp_path):
    """Not that of the bastion, nor of the local end."""
    write_certificate(tmp_path / "ca.pem", tmp_path / "key.pem", ["db.private"])
    with MySqlServer(settings={"ssl-cert": f"{tmp_path}/ca.pem", "ssl-key": f"{tmp_path}/key.pem"}) as server:
        tls = {"ca": tmp_path / "ca.pem"}
        assert said(server, bastion, tls=tls) == 42
        with pytest.raises(UnsupportedServer, match="certificate is not accepted: Hostname mismatch"):
            said(server, bastion, host="other.private", tls=tls)


def test_a_host_key_must_be_known(mysql_server, bastion, tmp_path):
    """By a file or by its fingerprint; nothing is accepted at first sight, and no log-in is sent to a stranger."""
    strange = tmp_path / "strange"
    strange.write_text(
        "[127.0.0.1]:1 ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ6ZIWJs3dTuwUZ0v0eCwS3Fk5N2pPkOZ1v7Qp1n0n1a\n"
    )
    wrong = "SHA256:" + "A" * 43
    for trust in ({"known_hosts": strange}, {"known_hosts": None, "host_key": wrong}):
        with pytest.raises(TunnelRefused, match="the host key of the SSH server") as caught:
            said(mysql_server, bastion, ssh=bastion.section(**trust))
        assert bastion.fingerprint in caught.value.message
        assert f"ssh-keyscan -p {bastion.port}" in caught.value.hint
    with pytest.raises(ConfigError, match=r"cannot be checked: .*missing"):
        said(mysql_server, bastion, ssh=bastion.section(known_hosts=tmp_path / "missing"))
    assert not bastion.asked()
    pinned = bastion.section(known_hosts=None, host_key=bastion.fingerprint)
    assert said(mysql_server, bastion, ssh=pinned) == 42


def test_log_ins_by_key_passphrase_agent_and_password(mysql_server, bastion, tmp_path):
    text = (bastion.folder / "locked").read_text()
    locked, no_key = bastion.section(key_file=bastion.folder / "locked"), bastion.section(key_file=None, key_env="K")
    assert said(mysql_server, bastion, log_in(mysql_server, bastion, passphrase=PASSPHRASE), ssh=locked) == 42
    for wrong in ("", "wrong"):
        with pytest.raises(ConfigError, match=r"a key for the SSH server .* cannot be used") as caught:
            said(mysql_server, bastion, log_in(mysql_server, bastion, passphrase=wrong), ssh=locked)
        assert "passphrase" in caught.value.hint
    by_text = log_in(mysql_server, bastion, key=text, passphrase=PASSPHRASE)
    assert said(mysql_server, bastion, by_text, ssh=no_key) == 42
    by_word = bastion.section(key_file=None, password_env="P")
    assert said(mysql_server, bastion, log_in(mysql_server, bastion, password=PASSWORD), ssh=by_word) == 42
    with pytest.raises(TunnelRefused, match="refuses the log-in of tunnel"):
        said(mysql_server, bastion, log_in(mysql_server, bastion, password="wrong"), ssh=by_word)


def test_a_log_in_by_the_keys_of_an_agent(mysql_server, bastion, monkeypatch):
    by_agent = bastion.section(key_file=None, agent=True)
    monkeypatch.setenv("SSH_AUTH_SOCK", str(bastion.folder / "agent"))
    with pytest.raises(ConfigError, match=r"the SSH agent for .* does not answer"):
        said(mysql_server, bastion, ssh=by_agent)
    with subprocess.Popen(["ssh-agent", "-D", "-a", os.environ["SSH_AUTH_SOCK"]], stdout=subprocess.DEVNULL) as agent:
        try:
            while not (bastion.folder / "agent").exists():
                time.sleep(0.02)
            subprocess.run(["ssh-add", "-q", bastion.key], check=True)
            assert said(mysql_server, bastion, ssh=by_agent) == 42
        finally:
            agent.terminate()


def test_a_bastion_that_dies_is_named_and_a_retry_works(any_server, database, bastion):
    """Between two queries and within a stream of the binlog."""
    config, credentials = ServerConfig.model_validate(settings(any_server, bastion)), log_in(any_server, bastion)
    any_server.execute("CREATE TABLE t (v LONGTEXT)", database=database)
    for _ in range(6):
        any_server.execute("INSERT INTO t VALUES (REPEAT('x', 9000000))", database=database)
    facts = facts_of(config, credentials)
    name, buffer = f"the SSH server 127.0.0.1:{bastion.port}", memoryview(bytearray(1 << 20))
    session = connect(config, credentials)
    with binlog_dump(config, credentials, facts.identity, Position(facts.files[-1][0], 4)) as stream:
        assert stream.read_into(buffer)
        bastion.stop()
        with pytest.raises(TunnelUnavailable, match=f"the connection to {name} broke"):
            read_to_end(stream, buffer)
    with pytest.raises(TunnelUnavailable, match=f"the connection to {name} broke") as caught:
        read_identity(session, config)
    assert caught.value.retryable
    session.close()
    with pytest.raises(TunnelUnavailable, match=f"{name} cannot be reached"):
        connect(config, credentials)
    bastion.start()
    assert said(any_server, bastion) == 42


def test_a_bastion_that_falls_silent_is_noticed_by_keepalives(mysql_server, bastion):
    """The session waits for an answer of the server, which takes its time; a dead bastion sends no reset."""
    config = ServerConfig.model_validate(settings(mysql_server, bastion))
    with closing(connect(config, log_in(mysql_server, bastion))) as session:
        assert rows_of(session, "SELECT SLEEP(5)") == [(0,)]  # longer than three keepalives
        bastion.stop(signal.SIGSTOP)
        with pytest.raises(TunnelUnavailable, match="broke"):
            read_identity(session, config)


def test_another_server_takes_over_only_if_the_bastion_says_that_the_first_is_away(
    any_server, database, bastion, tmp_path
):
    """A bastion that does not answer says nothing about the servers behind it."""
    capture = behind(bastion, any_server, database, tmp_path / "one")
    closed = free_port()
    two = capture.config.model_copy(
        update={
            "server": capture.config.server.model_copy(update={"port": closed}),
            "standbys": (Address(host="other.private", port=any_server.port),),
            "failover": ONCE,
        }
    )
    source = Source.over(two, capture.store, capture.credentials)
    assert source.at_reachable().config.addresses[0] == ("other.private", any_server.port)
    with pytest.raises(SourceUnavailable, match="answers, and does not reach the server") as caught:
        connect(two.server, capture.credentials)
    assert not isinstance(caught.value, TunnelUnavailable)
    bastion.stop()
    with pytest.raises(TunnelUnavailable):
        source.at_reachable()
    with pytest.raises(TunnelUnavailable):
        can_be_reached(two.server, capture.credentials, ONCE)


def test_a_bastion_that_allows_no_connections_is_refused(mysql_server, tmp_path):
    with Bastion(tmp_path, forwards=False) as bastion:
        with pytest.raises(TunnelRefused, match="does not allow the connection") as caught:
            said(mysql_server, bastion)
        assert "PermitOpen" in caught.value.hint
        close_tunnels()


def test_doctor_says_which_hop_failed(any_server, database, bastion, tmp_path):
    """The bastion, the server behind it, or neither."""

    def texts(**changed):
        capture = behind(bastion, any_server, database, tmp_path / str(len(changed)), **changed)
        findings = examine(capture.pipeline, 30.0, java=list)
        return [(one.level, one.what) for one in findings if "the SSH server" in one.what]

    name = f"the SSH server 127.0.0.1:{bastion.port}"
    assert texts() == [("ok", f"{name} opens connections to db.private:{any_server.port}")]
    closed = texts(port=free_port())
    assert closed
    assert all(text.startswith(f"{name} answers, and does not reach the server") for _, text in closed)
    bastion.stop()
    away = texts(port=any_server.port, host="db.private", server_id=7)
    assert {level for level, _ in away} == {"error"}
    assert all(text.startswith(f"{name} cannot be reached") for _, text in away)


def _answer_of_child(config, credentials, answers):
    with closing(connect(config, credentials)) as session:
        answers.put(rows_of(session, "SELECT 6 * 7")[0][0])


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_forked_process_opens_its_own(mysql_server, bastion):
    """As Airflow starts its tasks; the parent's session goes on."""
    config, credentials = ServerConfig.model_validate(settings(mysql_server, bastion)), log_in(mysql_server, bastion)
    with closing(connect(config, credentials)) as session:
        context = multiprocessing.get_context("fork")
        answers = context.Queue()
        child = context.Process(target=_answer_of_child, args=(config, credentials, answers))
        child.start()
        assert answers.get(timeout=60) == 42
        child.join()
        assert child.exitcode == 0
        assert rows_of(session, "SELECT 6 * 7")[0][0] == 42
    assert bastion.asked().count("log-in of tunnel") == 2


@pytest.mark.skipif(SSHD is None, reason="OpenSSH's server is not installed")
def test_an_openssh_server_serves_too(mysql_server, tmp_path):
    """A session, many bytes both ways, and one that allows nothing."""
    (tmp_path / "open").mkdir()
    with Bastion(tmp_path / "open", kind="openssh") as bastion:
        config = ServerConfig.model_validate(settings(mysql_server, bastion, host="127.0.0.1"))
        with closing(connect(config, log_in(mysql_server, bastion))) as session:
            assert rows_of(session, "SELECT LENGTH(%s), REPEAT('y', 9000000)", ("x" * 9_000_000,))[0] == (
                9_000_000,
                "y" * 9_000_000,
            )
        close_tunnels()
    (tmp_path / "closed").mkdir()
    with Bastion(tmp_path / "closed", kind="openssh", forwards=False) as bastion:
        with pytest.raises(TunnelRefused, match="does not allow the connection"):
            said(mysql_server, bastion, host="127.0.0.1")
        close_tunnels()
