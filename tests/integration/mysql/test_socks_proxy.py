"""Servers that only a SOCKS5 proxy reaches."""

from __future__ import annotations

from contextlib import closing

import pytest

from cdc_lib.config import Credentials, HopLogin, ServerConfig
from cdc_lib.doctor.examine import examine
from cdc_lib.errors import SourceUnavailable, TunnelRefused, TunnelUnavailable
from cdc_lib.mysql.connection import connect
from cdc_lib.mysql.statements import rows_of
from tests.harness.binlog.capture import Capture
from tests.harness.network.socks_proxy import SocksProxy
from tests.harness.servers.process import free_port

NAMES = {"db.private": "127.0.0.1"}


def settings(server, proxy, **changed):
    given = {"host": "db.private", "port": server.port, "user": server.cdc_user, "password_env": "UNUSED"}
    return {**given, "socks": {"host": "127.0.0.1", "port": proxy.port}, **changed}


def said(server, proxy, *login, **changed):
    config = ServerConfig.model_validate(settings(server, proxy, **changed))
    credentials = Credentials(server.cdc_user, server.cdc_password, hop=HopLogin(*login))
    with closing(connect(config, credentials)) as session:
        return rows_of(session, "SELECT 6 * 7")[0][0]


def test_a_source_is_planned_and_drained_through_it(any_server, database, tmp_path):
    """The proxy resolves the server's name; doctor says that it opens connections."""
    with SocksProxy(NAMES) as proxy:
        capture = Capture(any_server, database, tmp_path, start="latest")
        changed = {**capture.config.model_dump(), "server": settings(any_server, proxy)}
        capture.config = type(capture.config).model_validate(changed)
        pipeline = type(capture.pipeline)(capture.config, capture.credentials, capture.store, capture.pipeline.cursors)
        pipeline.plan(by="test")
        capture.execute("CREATE TABLE t (id INT PRIMARY KEY, v LONGTEXT)")
        capture.execute("INSERT INTO t VALUES (1, REPEAT('x', 9000000))")
        for unit in pipeline.plan(by="test"):
            pipeline.drain(unit)
        assert pipeline.ack_drain(by="test")
        assert set(proxy.asked) == {"db.private"}
        texts = [one.what for one in examine(pipeline, 30.0, java=list)]
        assert f"the SOCKS proxy 127.0.0.1:{proxy.port} opens connections to db.private:{any_server.port}" in texts


def test_a_log_in_is_sent_if_the_source_file_names_one(mysql_server):
    with SocksProxy(NAMES, ("me", "s3cret")) as proxy:
        assert said(mysql_server, proxy, "me", "s3cret") == 42
        for wrong in ((), ("me", "wrong")):
            with pytest.raises(TunnelRefused, match=f"the SOCKS proxy 127.0.0.1:{proxy.port} refuses") as caught:
                said(mysql_server, proxy, *wrong)
            assert "log-in under server.socks" in caught.value.hint


def test_the_hop_that_failed_is_named(mysql_server):
    """The proxy, its rules, or the server behind it; only the last lets a standby take over."""
    with SocksProxy(NAMES) as proxy:
        with pytest.raises(TunnelRefused, match="refuses: Connection not allowed by ruleset") as refused:
            said(mysql_server, proxy, host="other.private")
        assert "Allow connections" in refused.value.hint
        with pytest.raises(SourceUnavailable, match="answers, and does not reach the server") as away:
            said(mysql_server, proxy, port=free_port())
        assert not isinstance(away.value, TunnelUnavailable)
        config = ServerConfig.model_validate(settings(mysql_server, proxy))
        session = connect(config, Credentials(mysql_server.cdc_user, mysql_server.cdc_password))
        proxy.stop()
        from cdc_lib.mysql.server_facts import read_identity

        with pytest.raises(SourceUnavailable, match="through the SOCKS proxy"):
            read_identity(session, config)
        session.close()
        with pytest.raises(TunnelUnavailable, match=f"the SOCKS proxy 127.0.0.1:{proxy.port} cannot be reached"):
            said(mysql_server, proxy)
