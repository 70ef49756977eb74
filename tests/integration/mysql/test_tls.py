"""Servers whose certificate is checked: the right authority, a wrong one, none, another name, and a client's certificate."""

from __future__ import annotations

import pytest

from cdc_lib.config import Credentials, ServerConfig
from cdc_lib.errors import ConfigError, UnsupportedServer
from cdc_lib.model.position import Position
from cdc_lib.mysql.binlog_stream import binlog_dump
from cdc_lib.mysql.connection import connect
from cdc_lib.mysql.server_facts import facts_of
from cdc_lib.mysql.statements import rows_of
from tests.harness.servers import MariaDbServer, MySqlServer
from tests.harness.servers.certificate import write_certificate

SERVERS = {"mysql": MySqlServer, "mariadb": MariaDbServer}


@pytest.fixture(scope="module", params=SERVERS)
def secure(request, tmp_path_factory):
    """A server of each kind with a certificate for 127.0.0.1, which is also the authority of its clients."""
    folder = tmp_path_factory.mktemp("tls")
    write_certificate(folder / "ca.pem", folder / "key.pem", ["127.0.0.1"])
    (folder / "key.pem").chmod(0o600)
    settings = {"ssl-cert": f"{folder}/ca.pem", "ssl-key": f"{folder}/key.pem", "ssl-ca": f"{folder}/ca.pem"}
    with SERVERS[request.param](settings=settings) as server:
        yield server, folder


def config(server, host="127.0.0.1", user=None, **tls):
    return ServerConfig(host=host, port=server.port, user=user or server.cdc_user, password_env="UNUSED", tls=tls)


def test_the_right_authority_is_accepted_for_statements_and_for_the_binlog(secure):
    """The stream of the binlog is encrypted like any session."""
    server, folder = secure
    settings, credentials = config(server, ca=folder / "ca.pem"), Credentials(server.cdc_user, server.cdc_password)
    with connect(settings, credentials) as session:
        assert rows_of(session, "SHOW STATUS LIKE 'Ssl_version'")[0][1].startswith("TLSv1.")
    facts = facts_of(settings, credentials)
    with binlog_dump(settings, credentials, facts.identity, Position(facts.files[0][0], 4)) as stream:
        assert stream.read_into(memoryview(bytearray(1 << 16))) > 100


def test_a_wrong_authority_and_none_are_refused(secure, tmp_path):
    """With the settings to look at."""
    server, _ = secure
    write_certificate(tmp_path / "other.pem", tmp_path / "key.pem")
    for tls in ({"ca": tmp_path / "other.pem"}, {}):
        with pytest.raises(UnsupportedServer, match="certificate is not accepted: self-signed certificate") as caught:
            connect(config(server, **tls), Credentials(server.cdc_user, server.cdc_password))
        assert "server.tls.ca" in caught.value.hint


def test_another_name_than_that_of_the_certificate_is_refused(secure):
    """The address is the server's, and its authority is trusted; ``verify: false`` accepts it."""
    server, folder = secure
    log_in = Credentials(server.cdc_user, server.cdc_password)
    with pytest.raises(UnsupportedServer, match="certificate is not accepted: Hostname mismatch"):
        connect(config(server, host="localhost", ca=folder / "ca.pem"), log_in)
    connect(config(server, host="localhost", ca=folder / "ca.pem", verify=False), log_in).close()


def test_a_file_that_cannot_be_read_is_named(secure, tmp_path):
    server, _ = secure
    (tmp_path / "empty.pem").write_text("no certificate")
    for file in ("missing.pem", "empty.pem"):
        with pytest.raises(ConfigError, match=r"a file of server\.tls cannot be read"):
            connect(config(server, ca=tmp_path / file), Credentials(server.cdc_user, server.cdc_password))


def test_a_user_who_must_show_a_certificate_logs_in_with_it_only(secure):
    """``REQUIRE X509``: the file and its key are ``server.tls.cert`` and ``server.tls.key``."""
    server, folder = secure
    server.execute("CREATE USER shown@'%' IDENTIFIED BY 'w1th-paper' REQUIRE X509")
    log_in = Credentials("shown", "w1th-paper")
    shown = config(server, user="shown", ca=folder / "ca.pem", cert=folder / "ca.pem", key=folder / "key.pem")
    connect(shown, log_in).close()
    with pytest.raises(UnsupportedServer, match="denied"):
        connect(config(server, user="shown", ca=folder / "ca.pem"), log_in)
