"""What a server whose certificate is not checked gets of the password."""

from __future__ import annotations

from contextlib import closing

import pytest

from cdc_lib.config import Credentials, ServerConfig
from cdc_lib.config.tables import TablesConfig
from cdc_lib.doctor.examine import examine_server
from cdc_lib.errors import ConfigError, SourceError, UnsupportedServer
from cdc_lib.model.finding import Finding
from cdc_lib.mysql.connection import connect
from cdc_lib.mysql.statements import rows_of
from tests.harness.network.socks_proxy import SocksProxy
from tests.harness.network.thief import KEY, Thief, switch
from tests.harness.servers import MySqlServer
from tests.harness.servers.certificate import write_certificate

PASSWORD = "not-for-5trangers"
TABLES = TablesConfig(include=["*.*"])
FULL = b"\x01\x04"
SHA256, CACHING, NATIVE = "sha256_password", "caching_sha2_password", "mysql_native_password"

ATTACKS = {
    "sha256 in the first packet": (SHA256, [], True),
    "sha256 by a request": (NATIVE, [switch(SHA256)], True),
    "sha256 with the thief's key": (NATIVE, [switch(SHA256), KEY], False),
    "sha256 with the thief's key, first": (SHA256, [KEY], False),
    "caching_sha2 in full": (CACHING, [FULL], True),
    "caching_sha2 in full after a request": (NATIVE, [switch(CACHING), FULL], True),
    "caching_sha2 with the thief's key": (CACHING, [FULL, KEY], False),
    "caching_sha2 with the thief's key after a request": (NATIVE, [switch(CACHING), FULL, KEY], False),
    "caching_sha2 requested twice": (NATIVE, [switch(CACHING), switch(CACHING), FULL], True),
    "clear text": (NATIVE, [switch("mysql_clear_password")], True),
    "PAM": (NATIVE, [b"\xfedialog\0\x04Password: "], True),
    "the old scramble": (NATIVE, [switch("mysql_old_password")], False),
}


@pytest.fixture
def away():
    """A network that is not this machine's: a proxy's."""
    with SocksProxy({"db.private": "127.0.0.1"}) as proxy:
        yield {"host": "db.private", "socks": {"host": "127.0.0.1", "port": proxy.port}, "password_env": "UNUSED"}


@pytest.mark.parametrize("tls", [{}, {"tls": {"verify": False}}], ids=["by default", "unchecked"])
@pytest.mark.parametrize("attack", ATTACKS)
def test_a_server_that_nobody_checked_gets_no_password(away, tmp_path, attack, tls):
    """Neither in clear, nor for a key of its own; a scramble is all that goes out."""
    method, requests, encrypted = ATTACKS[attack]
    with Thief(tmp_path, method, requests, tls=encrypted) as thief:
        config = ServerConfig(port=thief.port, user="cdc", **away, **tls)
        with pytest.raises(SourceError):
            connect(config, Credentials("cdc", PASSWORD))
        assert not thief.has(PASSWORD)


@pytest.mark.parametrize("attack", ["caching_sha2 in full", "caching_sha2 with the thief's key", "sha256 by a request"])
def test_a_thief_does_not_get_what_is_for_another_key(away, mysql_server, tmp_path, attack):
    method, requests, encrypted = ATTACKS[attack]
    with Thief(tmp_path, method, requests, tls=encrypted) as thief:
        config = ServerConfig(port=thief.port, user="cdc", public_key=key_of(mysql_server, tmp_path), **away)
        with pytest.raises(SourceError):
            connect(config, Credentials("cdc", PASSWORD))
        assert not thief.has(PASSWORD)


@pytest.fixture(params=["with TLS", "without TLS"])
def stranger(request):
    """A server that has no password in its cache, as after each start."""
    with MySqlServer(settings={} if request.param == "with TLS" else {"tls-version": ""}) as server:
        yield server


def key_of(server, folder):
    text = server.execute("SHOW STATUS LIKE 'Caching_sha2_password_rsa_public_key'")[0][1]
    (folder / "public_key.pem").write_text(text)
    return folder / "public_key.pem"


def test_the_first_log_in_is_that_of_a_client_that_knows_the_server(stranger, away):
    """Then the server has the password in its cache; the message names the ways out."""
    log_in = Credentials("cdc", stranger.cdc_password)
    config = ServerConfig(port=stranger.port, user="cdc", **away)
    stranger.execute("FLUSH PRIVILEGES")  # empties the cache
    with pytest.raises(UnsupportedServer, match="asks for the password itself, and its certificate is not") as refused:
        connect(config, log_in)
    assert all(way in refused.value.hint for way in ("server.tls.ca", "server.public_key", "log in once"))
    here = ServerConfig(host=stranger.host, port=stranger.port, user="cdc", password_env="UNUSED")
    connect(here, log_in).close()  # over the loopback interface
    with closing(connect(config, log_in)) as session:
        assert rows_of(session, "SELECT CURRENT_USER()")[0][0] == "cdc@%"


def test_the_key_that_the_source_file_names_hides_the_password(stranger, away, tmp_path):
    """The session is encrypted afterwards, if the server offers it."""
    config = ServerConfig(port=stranger.port, user="cdc", public_key=key_of(stranger, tmp_path), **away)
    stranger.execute("FLUSH PRIVILEGES")
    with closing(connect(config, Credentials("cdc", stranger.cdc_password))) as session:
        encrypted = rows_of(session, "SHOW STATUS LIKE 'Ssl_version'")[0][1]
        offered = stranger.execute("SHOW VARIABLES LIKE 'tls_version'")[0][1]
        assert bool(encrypted) is bool(offered)


@pytest.mark.parametrize("content", [None, "no key"])
def test_a_key_that_cannot_be_read_is_named(tmp_path, content):
    if content is not None:
        (tmp_path / "key.pem").write_text(content)
    config = ServerConfig(host="h", user="cdc", password_env="UNUSED", public_key=tmp_path / "key.pem")
    with pytest.raises(ConfigError, match=r"the file of server\.public_key cannot be read") as caught:
        connect(config, Credentials("cdc", "x"))
    assert "SHOW STATUS" in caught.value.hint


def test_mariadb_takes_its_scramble_everywhere(mariadb_server, away):
    config = ServerConfig(port=mariadb_server.port, user="cdc", **away)
    connect(config, Credentials("cdc", mariadb_server.cdc_password)).close()


def test_doctor_says_who_may_be_on_the_way(mysql_server, away):
    """For every source: on this machine, over an unchecked line, and with a certificate that is checked."""
    log_in = Credentials("cdc", mysql_server.cdc_password)
    here = {"host": mysql_server.host, "password_env": "UNUSED"}
    connect(ServerConfig(port=mysql_server.port, user="cdc", **here), log_in).close()

    def line(**settings):
        found = examine_server(ServerConfig(port=mysql_server.port, user="cdc", **settings), TABLES, log_in)
        return next((one.level, one.what) for one in found if "sessions are" in one.what)

    assert line(**here)[0] == "ok"
    severity, what = line(**away)
    assert (severity, "TLSv1.3, and the server's certificate is not checked" in what) == ("warning", True)


def test_doctor_says_that_a_certificate_is_checked(tmp_path, away):
    write_certificate(tmp_path / "ca.pem", tmp_path / "key.pem", ["db.private"])
    settings = {"ssl-cert": f"{tmp_path}/ca.pem", "ssl-key": f"{tmp_path}/key.pem", "ssl-ca": f"{tmp_path}/ca.pem"}
    with MySqlServer(settings=settings) as server:
        config = ServerConfig(port=server.port, user="cdc", tls={"ca": tmp_path / "ca.pem"}, **away)
        found = examine_server(config, TABLES, Credentials("cdc", server.cdc_password))
    assert Finding("ok", "sessions are encrypted by TLSv1.3, and the server's certificate is checked") in found
