"""The MySQL or MariaDB server of the demo: named by the user, found on PATH, or downloaded."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

import pymysql

from demo.paths import HOME, DemoError, State, source_environment
from tests.harness.servers import MariaDbServer, MySqlServer, SqlServer, mysql_packages
from tests.harness.servers.process import free_port

URL_VARIABLE = "CDC_DEMO_MYSQL_URL"
KINDS: dict[str, type[SqlServer]] = {"mysql": MySqlServer, "mariadb": MariaDbServer}
RETENTION = {"binlog-expire-logs-seconds": 7 * 86_400}


@dataclass
class DemoServer:
    """A server that runs, and two ways to log in.

    Args:
        about: flavor, version and origin, for people.
        owner: pymysql's connection options of the shop's owner.
        user: user name of the product.
        password: the product's password.
        server: the process, if it is the demo's own.
    """

    about: str
    owner: dict[str, Any]
    user: str
    password: str
    server: SqlServer | None = None

    def connect(self) -> Any:
        """Open a connection as the shop's owner."""
        return pymysql.connect(**{**self.owner, "autocommit": True, "charset": "utf8mb4"})

    def environment(self, spark: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the variables of the source file, with those of a Spark server that runs."""
        return source_environment(self.owner["host"], self.owner["port"], self.user, self.password, spark)

    def stop(self) -> None:
        """Stop the server if it is the demo's own."""
        if self.server is not None:
            self.server.stop()


def start(state: State) -> DemoServer:
    """Start or reach the server, and save which one it is.

    Raises:
        DemoError: the user's server cannot be reached, or is not the one of the last run.
    """
    url = os.environ.get(URL_VARIABLE)
    kind = "url" if url else (state.server if state.server in KINDS else _kind_on_path())
    if state.made and kind != state.server:
        raise DemoError(
            f"the last demo ran on another server ({state.server}); ./dev demo-clean makes room for this one"
        )
    state.server = kind
    return _reach(url, state) if url else _run(KINDS[kind], state)


def _kind_on_path() -> str:
    return "mysql" if mysql_packages.on_path("mysqld") else "mariadb"


def _run(kind: type[SqlServer], state: State) -> DemoServer:
    origin = "on PATH" if _kind_on_path() == "mysql" or shutil.which("mariadbd") else "fetched"
    if not (state.port and _is_free(state.port)):
        if state.made:
            raise DemoError(
                f"port {state.port}, which the demo's database listens on, is taken; free it or ./dev demo-clean"
            )
        state.port = free_port()
    folder = HOME / "server" / state.server
    folder.parent.mkdir(parents=True, exist_ok=True)
    server = kind(folder, port=state.port, settings=RETENTION, cdc_password=state.password)
    try:
        server.start()
        state.save()
        owner = {"host": server.host, "port": server.port, "user": "root", "password": ""}
        about = f"{server.flavor} {server.version}, {origin}, at {server.host}:{server.port}"
        return DemoServer(about, owner, server.cdc_user, server.cdc_password, server)
    except BaseException:
        server.stop()
        raise


def _reach(url: str, state: State) -> DemoServer:
    owner = parse(url)
    try:
        with closing(pymysql.connect(**owner)) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT VERSION(), @@server_id, @@hostname")
            version, *names = cursor.fetchone() or ("", "", "")
    except pymysql.err.OperationalError as error:
        raise DemoError(f"cannot reach the server that {URL_VARIABLE} names: {error}") from error
    server_id = "/".join(map(str, names))
    if state.made and state.server_id != server_id:
        raise DemoError("the last demo ran on another server; ./dev demo-clean makes room for this one")
    state.server_id = server_id
    state.save()
    about = f"{version}, named by {URL_VARIABLE}, at {owner['host']}:{owner['port']}"
    return DemoServer(about, owner, owner["user"], owner["password"])


def parse(url: str) -> dict[str, Any]:
    """Parse ``mysql://user:password@host:port`` into pymysql's options.

    Raises:
        DemoError: it is not such a URL.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"mysql", "mariadb"} or not parts.hostname or not parts.username:
        raise DemoError(f"{URL_VARIABLE} must look like mysql://user:password@host:3306")
    return {
        "host": parts.hostname,
        "port": parts.port or 3306,
        "user": unquote(parts.username),
        "password": unquote(parts.password or ""),
    }


def _is_free(port: int) -> bool:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
