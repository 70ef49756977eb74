"""How sessions on the source are opened."""

from __future__ import annotations

import pytest

from cdc_lib.config import Credentials, ServerConfig
from cdc_lib.errors import UnsupportedServer
from cdc_lib.mysql.connection import connect
from cdc_lib.mysql.statements import rows_of
from tests.harness.servers import MariaDbServer, MySqlServer


def cipher(server, **tls):
    config = ServerConfig(host=server.host, port=server.port, user=server.cdc_user, password_env="UNUSED", **tls)
    connection = connect(config, Credentials(server.cdc_user, server.cdc_password))
    try:
        return rows_of(connection, "SHOW STATUS LIKE 'Ssl_cipher'")[0][1]
    finally:
        connection.close()


def test_a_session_is_encrypted_where_the_server_offers_it(any_server):
    """Also when the source file says nothing of TLS; the certificate is not looked at."""
    assert cipher(any_server)


@pytest.mark.parametrize(
    ("kind", "settings"),
    [(MySqlServer, {"tls-version": ""}), (MariaDbServer, {"ssl": "OFF", "ssl-cert": None, "ssl-key": None})],
    ids=["mysql", "mariadb"],
)
def test_a_server_without_tls_is_refused_only_where_the_source_file_asks_for_it(kind, settings):
    """No version of the driver decides that: some would log in without a word."""
    with kind(settings=settings) as server:
        assert not cipher(server)
        with pytest.raises(UnsupportedServer, match="doesn't support"):
            cipher(server, tls={"verify": False})


def test_an_untrusted_certificate_is_refused(any_server):
    """With ``tls:`` the server must be the one that it says it is; the test server signed its certificate automatically."""
    assert cipher(any_server, tls={"verify": False})
    with pytest.raises(UnsupportedServer, match="TLS"):
        cipher(any_server, tls={})
