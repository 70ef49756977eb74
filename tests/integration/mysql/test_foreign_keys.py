"""Foreign keys are read from SHOW CREATE TABLE, whatever else it shows."""

from __future__ import annotations

from contextlib import closing

from cdc_lib.config import Credentials, ServerConfig
from cdc_lib.mysql.connection import connect
from cdc_lib.mysql.foreign_keys import cascades_of
from cdc_lib.mysql.server_facts import read_facts


def test_a_default_of_bytes_that_are_no_text_hides_no_foreign_key(mariadb_server, mariadb_database):
    """MariaDB shows the default of a BINARY column as it is."""
    server = mariadb_server
    columns = "id INT PRIMARY KEY, b BINARY(4) DEFAULT x'FF00', p INT"
    key = "FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE"
    server.execute("CREATE TABLE parent (id INT PRIMARY KEY)", database=mariadb_database)
    server.execute(f"CREATE TABLE child ({columns}, {key})", database=mariadb_database)
    config = ServerConfig(host=server.host, port=server.port, user=server.cdc_user, password_env="UNUSED")
    with closing(connect(config, Credentials(server.cdc_user, server.cdc_password))) as connection:
        found = cascades_of(connection, read_facts(connection, config), [(mariadb_database, "child")])
    assert [(key.child, key.parent) for key in found.keys] == [
        ((mariadb_database, "child"), (mariadb_database, "parent"))
    ]
    assert found.unseen == ()
