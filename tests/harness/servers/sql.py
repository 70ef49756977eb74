"""The common part of MySQL and MariaDB servers: start, users, connections, statements."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import socket
import tempfile
import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import pymysql
from pymysql.connections import Connection

from spark_jobs.runtime.jars import cache_dir, one_at_a_time
from tests.harness.servers.process import ServerOfTests, ServerProcess, free_port
from tests.harness.servers.versions import release

Settings = Mapping[str, str | int | None]

CAPTURE_SETTINGS: Settings = {
    "server-id": 1,
    "log-bin": "binlog",
    "binlog-checksum": "CRC32",
    "binlog-format": "ROW",
    "binlog-row-image": "FULL",
    "binlog-row-metadata": "FULL",
}
SMALL_AND_FAST: Settings = {
    "innodb-buffer-pool-size": "128M",
    "innodb-flush-log-at-trx-commit": 2,
    "sync-binlog": 0,
    "performance-schema": "OFF",
    "max-connections": 100,
}
_PURGE_SECONDS = 60
_CONNECT_SECONDS = 120
"""How long a server may take to greet a client; pymysql waits 10 s, which is too short on a busy machine."""
NEW_WORDS_SINCE = (8, 4)
OLD_WORDS = {
    "RESET BINARY LOGS AND GTIDS": "RESET MASTER",
    "CHANGE REPLICATION SOURCE TO": "CHANGE MASTER TO",
    "REPLICA": "SLAVE",
    "SOURCE_": "MASTER_",
}
"""Keywords of MySQL 8.4, and those of MariaDB and older MySQL; replaced in this order."""


class SqlServer(ServerOfTests):
    """A database server with a folder of its own, reachable at 127.0.0.1.

    ``root`` has no password; ``cdc_user`` has the least privileges that capture needs.

    Args:
        data_dir: folder of the data, kept after a stop; by default a temporary folder, removed with the server.
        port: TCP port; 0 takes a free one.
        settings: server variables by their option names, over the defaults; None removes a default.
        cdc_password: password of ``cdc_user``; random when not given.
    """

    flavor: str
    host = "127.0.0.1"
    cdc_user = "cdc"
    cdc_privileges: str
    default_settings: ClassVar[Settings]

    def __init__(
        self,
        data_dir: Path | None = None,
        port: int = 0,
        settings: Settings | None = None,
        cdc_password: str | None = None,
    ) -> None:
        self.port = port or free_port()
        self.cdc_password = cdc_password or secrets.token_hex(12)
        self._temporary = data_dir is None
        # A socket's path may be 107 bytes long: so it is not in the data folder.
        self._scratch = Path(tempfile.mkdtemp(prefix="lakecdc-"))
        self.data_dir = data_dir or self._scratch / "data"
        self.socket = self._scratch / "sql.sock"
        self.temporary_files = self._scratch / "tmp"
        self.log = self.data_dir.with_name(f"{self.data_dir.name}.log")
        options = {**self.default_settings, **(settings or {})}
        self._settings = [f"--{name}={value}" for name, value in options.items() if value is not None]
        self._requires_tls = options.get("require-secure-transport") == "ON"
        self._process: ServerProcess | None = None
        self.environment: Mapping[str, str] = {}
        self._release: tuple[int, ...] | None = None

    # --- what each flavor implements ---

    @abstractmethod
    def _server_command(self) -> list[str]:
        """Return the program and the options for the folders of its files."""

    @abstractmethod
    def _initialize(self, data_dir: Path) -> None:
        """Initialize an empty data folder. It is copied, so it must not contain an identity."""

    @abstractmethod
    def client_command(self, program: str) -> list[str]:
        """Return the command of one of the server's client programs, without arguments."""

    # --- start and stop ---

    def start(self) -> Self:
        """Start it; make the data folder and the users if they do not exist.

        Raises:
            ServerDidNotStart: it ended or was not ready in time; the message shows its log.
        """
        new = not self.data_dir.exists() or not any(self.data_dir.iterdir())
        # A MariaDB that starts removes what other servers have in a folder of temporary files that they share.
        self.temporary_files.mkdir(parents=True, exist_ok=True)
        if new:
            self._fill_data_dir()
        for stale in self._scratch.glob("sql.*"):  # a killed server's socket, its lock and pid file
            stale.unlink()
        command = [
            *self._server_command(),
            f"--datadir={self.data_dir}",
            f"--socket={self.socket}",
            f"--pid-file={self._scratch / 'sql.pid'}",
            f"--tmpdir={self.temporary_files}",
            f"--port={self.port}",
            f"--bind-address={self.host}",
            *self._settings,
        ]
        self._process = ServerProcess(self.flavor, command, self.log, self.environment)
        self._process.wait_until_ready(self._answers)
        if new:
            self._make_users()
        return self

    def stop(self) -> None:
        """Stop it; a server with a temporary data folder is killed, and the folder removed."""
        self._end(kill=self._temporary)
        shutil.rmtree(self._scratch, ignore_errors=True)

    def restart(self, *, kill: bool = False) -> None:
        """Stop it, or kill it as a power cut would, and start it with the same data."""
        self._end(kill=kill)
        self.start()

    # --- use ---

    def connect(self, user: str = "root", password: str = "", **options: Any) -> Connection[Any]:
        """Open a connection over TCP with autocommit; options are pymysql's.

        Root has no password, so its connections are not encrypted unless an option asks for it, or the server's settings: loading
        the system's certificate authorities for one connection takes more CPU time than most tests take otherwise.
        """
        plain = user == "root" and not self._requires_tls and not any(name.startswith("ssl") for name in options)
        defaults = {
            "autocommit": True,
            "charset": "utf8mb4",
            "ssl_disabled": plain,
            "connect_timeout": _CONNECT_SECONDS,
            **options,
        }
        return pymysql.connect(host=self.host, port=self.port, user=user, password=password, **defaults)

    def execute(self, sql: str, arguments: Sequence[Any] | None = None, database: str | None = None) -> list[Any]:
        """Run one statement as root in a new session and return its rows as tuples."""
        with self.connect(database=database) as connection, connection.cursor() as cursor:
            cursor.execute(sql, arguments)
            return list(cursor.fetchall())

    def purge_binlogs(self) -> None:
        """Remove all binlog files but the newest. A server keeps a file while a stream that was closed a moment ago still reads it."""
        deadline = time.monotonic() + _PURGE_SECONDS
        newest = self.execute("SHOW BINARY LOGS")[-1][0]
        while True:
            self.execute(f"PURGE BINARY LOGS TO '{newest}'")
            if self.execute("SHOW BINARY LOGS")[0][0] == newest:
                return
            assert time.monotonic() < deadline, "the server keeps binlog files"
            time.sleep(0.2)

    def variable(self, name: str) -> str | None:
        """Return a global variable's value as the server prints it."""
        rows = self.execute("SHOW GLOBAL VARIABLES LIKE %s", [name])
        return rows[0][1] if rows else None

    @property
    def version(self) -> str:
        """Return what ``SELECT VERSION()`` says."""
        return str(self.execute("SELECT VERSION()")[0][0])

    @property
    def release(self) -> tuple[int, ...]:
        """Return the numbers of :attr:`version`, such as ``(8, 0, 15)``. The server is asked once."""
        if self._release is None:
            self._release = release(self.version)
        return self._release

    def in_server_syntax(self, statement: str) -> str:
        """Translate a replication or binlog statement of MySQL 8.4 into the keywords of this server.

        MariaDB and MySQL before 8.0.22 use ``SLAVE`` and ``MASTER``; MySQL 8.4 has only the new keywords.
        """
        if self.flavor == "mysql" and self.release >= NEW_WORDS_SINCE:
            return statement
        for new, old in OLD_WORDS.items():
            statement = statement.replace(new, old)
        return statement

    # --- internal ---

    def _fill_data_dir(self) -> None:
        """Copy a data folder that was initialized once on this machine, because initializing takes seconds."""
        cache_dir().mkdir(parents=True, exist_ok=True)
        template = cache_dir() / f"data-{self.flavor}-{_identity(self._server_command())}"
        with one_at_a_time(cache_dir() / f".data-{self.flavor}.lock"):
            if not template.is_dir():
                with tempfile.TemporaryDirectory(dir=cache_dir(), prefix=f".data-{self.flavor}-") as scratch:
                    new = Path(scratch) / "data"
                    new.mkdir()
                    self._initialize(new)
                    new.rename(template)
        shutil.copytree(template, self.data_dir, dirs_exist_ok=True)

    def _answers(self) -> bool:
        with socket.socket(socket.AF_UNIX) as client:
            if client.connect_ex(str(self.socket)) != 0:
                return False
        pymysql.connect(**self._as_root_at_socket()).close()
        return True

    def _make_users(self) -> None:
        """Allow root over TCP, drop anonymous users, make ``cdc_user``; nothing of it is written to the binlog."""
        with pymysql.connect(**self._as_root_at_socket()) as connection, connection.cursor() as cursor:
            cursor.execute("SET sql_log_bin = 0")
            cursor.execute("SELECT CONCAT(QUOTE(user), '@', QUOTE(host)) FROM mysql.user WHERE user = ''")
            for (anonymous,) in cursor.fetchall():
                cursor.execute(f"DROP USER {anonymous}")
            cursor.execute("CREATE USER IF NOT EXISTS root@'127.0.0.1' IDENTIFIED BY ''")
            cursor.execute("GRANT ALL PRIVILEGES ON *.* TO root@'127.0.0.1' WITH GRANT OPTION")
            cursor.execute(f"CREATE USER {self.cdc_user}@'%%' IDENTIFIED BY %s", [self.cdc_password])
            cursor.execute(f"GRANT {self.cdc_privileges} ON *.* TO {self.cdc_user}@'%'")

    def _as_root_at_socket(self) -> dict[str, Any]:
        patience = {"connect_timeout": _CONNECT_SECONDS}
        return {"unix_socket": str(self.socket), "user": "root", "ssl_disabled": True, **patience}

    def _end(self, *, kill: bool) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill() if kill else process.stop()


def _identity(command: Sequence[str]) -> str:
    """Return a hash of a server command: it changes with the options and with the program files."""
    programs = [
        (path, (stat := Path(path).stat()).st_size, stat.st_mtime_ns) for path in command if Path(path).is_file()
    ]
    return hashlib.sha256(repr((list(command), programs)).encode()).hexdigest()[:16]


def run_as_root() -> list[str]:
    """Return the option that both servers need to run as root."""
    return ["--user=root"] if os.geteuid() == 0 else []
