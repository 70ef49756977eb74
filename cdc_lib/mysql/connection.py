"""Log-in to a MySQL or MariaDB server, with TLS where the source file asks for it."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import pymysql
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from pymysql.connections import Connection

from cdc_lib.config import Credentials, ServerConfig
from cdc_lib.config.start import FailoverConfig
from cdc_lib.errors import ConfigError, Context, SourceError, SourceUnavailable, TunnelUnavailable, UnsupportedServer
from cdc_lib.model.refusals import is_of_connection, is_passing, refused_for
from cdc_lib.mysql.clear_password import NOT_TO_STRANGERS, ONLY_SCRAMBLED, TO_ANY, Methods, PasswordWithheld
from cdc_lib.mysql.pymysql_private import TlsConnection, socket_of
from cdc_lib.mysql.rds_iam import login_token
from cdc_lib.mysql.tunnel.way import Way, failure_on_the_way, hop_of
from cdc_lib.mysql.unsupported import refuse_foreign

_LOG_IN_DENIED = {1045, 1698}
_ACCESS_DENIED = {1044, 1142, 1227, *_LOG_IN_DENIED}
_AUTHENTICATION_ERRORS = {2026, 2059, 2061}
_WRONG_TLS = "Check server.tls in the source file."
_WRONG_CERTIFICATE = "Name the file with the certificate of its authority in server.tls.ca, and the server in server.host as its certificate does."
_OTHER_PROGRAM = "Check that server.host and server.port are those of MySQL or MariaDB, and not of another program."
_WITHHELD = (
    "Name the file with the certificate of its authority in server.tls.ca, or that of its RSA key in server.public_key; or log in once as this "
    "user from a client that knows the server, such as mysql on its own machine: until it restarts, it then asks for no more than the scramble."
)
Session: TypeAlias = "Connection[Any]"
"""A session on the source."""

LOCK_SECONDS = 60
"""Lock wait timeout of a statement; shorter than the silence that counts as a broken connection."""

_SESSION = f"SET time_zone = '+00:00', lock_wait_timeout = {LOCK_SECONDS} /*!80030 , SESSION show_gipk_in_create_table_and_information_schema = ON */"
"""A generated invisible primary key is in the binlog, so MySQL must show it here too; MariaDB skips the comment."""

SILENCE_SECONDS = 120
"""How long the server may be silent before the connection counts as broken."""


def connect(server: ServerConfig, credentials: Credentials) -> Connection[Any]:
    """Open a session in UTC, utf8mb4, autocommit.

    Raises:
        SourceUnavailable: no response, or too many connections.
        TunnelUnavailable: the SSH server or SOCKS proxy on the way does not respond.
        TunnelRefused: it refuses, or its host key is not accepted.
        UnsupportedServer: the log-in or the TLS handshake is refused, or the server is not MySQL or MariaDB.
        ConfigError: a file of ``server.tls`` or ``server.public_key`` cannot be read, or there are no AWS credentials for ``server.rds_iam``.
    """
    way = Way(server, credentials.hop)
    options = _options(server, credentials)
    try:
        session = _log_in(way, options)
    except (pymysql.MySQLError, OSError) as error:
        raise way.failure() or _denied(error, server, credentials) or translated(error, server) from error
    known_by_name: Any = session  # the driver's stubs omit server_version
    try:
        refuse_foreign(str(known_by_name.server_version), host=server.host, port=server.port)
    except UnsupportedServer:
        session.close()
        raise
    return session


@dataclass(frozen=True, slots=True)
class Protection:
    """How a session gets to its server.

    Args:
        tls: version of TLS; empty without it.
        is_checked: the server's certificate and name were accepted.
        is_private: it stays on this machine, or goes through an SSH server.
    """

    tls: str
    is_checked: bool
    is_private: bool


def protection_of(session: Session) -> Protection:
    """Return how an open session of :func:`connect` gets to its server."""
    assert isinstance(session, _SourceConnection)
    sock = socket_of(session)
    tls = (sock.version() or "") if isinstance(sock, ssl.SSLSocket) else ""
    return Protection(tls, session.way.checks_certificate, session.way.is_known(sock))


def _log_in(way: Way, options: dict[str, Any]) -> _SourceConnection:
    try:
        return _SourceConnection(way, **options)
    except PasswordWithheld:
        if options["server_public_key"] is None:
            raise
    # A server takes no key inside TLS. After one log-in without TLS it has the password in its cache, and the scramble is enough.
    _SourceConnection(way, **options | {"tls": None, "plain": True}).close()
    return _SourceConnection(way, **options)


def _denied(error: Exception, server: ServerConfig, credentials: Credentials) -> UnsupportedServer | None:
    """Return the error of a log-in with a wrong user or password; None for another error. The server says no more of the cause."""
    if not isinstance(error, pymysql.MySQLError) or not error.args or error.args[0] not in _LOG_IN_DENIED:
        return None
    account = f"'{credentials.user}'@'%'"
    by = "WITH AWSAuthenticationPlugin AS 'RDS'" if server.rds_iam is not None else "BY '...'"
    return UnsupportedServer(
        f"the server refuses: {error.args[1]}",
        hint=f"The user is {credentials.user}; its password came from {credentials.password_from}. If the password was changed, put the new one "
        f"there. If the user is missing, on the server: CREATE USER {account} IDENTIFIED {by}; "
        f"GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO {account};",
        host=server.host,
        port=server.port,
    )


def _options(server: ServerConfig, credentials: Credentials) -> dict[str, Any]:
    password = credentials.password
    if server.rds_iam is not None:
        password = login_token(server, server.rds_iam.region, credentials.user)
    return {
        "host": server.host,
        "port": server.port,
        "user": credentials.user,
        "password": password,
        "charset": "utf8mb4",
        "connect_timeout": int(server.connect_timeout.total_seconds()),
        "read_timeout": SILENCE_SECONDS,
        "write_timeout": SILENCE_SECONDS,
        "autocommit": True,
        "init_command": _SESSION,
        "tls": _tls(server),
        "server_public_key": _public_key(server),
        "program_name": "lakecdc",
    }


def can_be_reached(server: ServerConfig, credentials: Credentials, rules: FailoverConfig) -> bool:
    """Whether a log-in succeeds within the number of attempts that the rules allow.

    Raises:
        UnsupportedServer: the log-in is refused, which a retry does not change.
        TunnelUnavailable: the hop on the way does not answer, which says nothing about the server.
        TunnelRefused: the hop refuses, which a retry does not change.
    """
    hop_error: TunnelUnavailable | None = None
    for attempt in range(rules.attempts):
        if attempt:
            time.sleep(rules.retry_delay.total_seconds())
        try:
            connect(server, credentials).close()
        except SourceUnavailable as error:
            hop_error = error if isinstance(error, TunnelUnavailable) else None
            continue
        return True
    if hop_error is not None:
        raise hop_error
    return False


class _SourceConnection(TlsConnection):
    """A connection over the hop that the source file names, if it names one.

    Args:
        way: to the server; its socket carries the TLS handshake, so the server's own name is checked.
        **options: as in :class:`TlsConnection`.
    """

    def __init__(self, way: Way, **options: Any) -> None:
        self.way = way
        super().__init__(**options)

    def connect(self, sock: Any = None) -> None:
        """Connect through the hop."""
        super().connect(sock if sock is not None else self.way.open())

    def refused_answer(self, why: str) -> UnsupportedServer:
        """Return the error of a server that does not speak the protocol: no retry makes it speak."""
        return not_spoken(why, self)

    def methods_of_log_in(self) -> Methods:
        """Let the password itself go out only to a server that is known by its certificate, or over a line that is known."""
        if self.way.checks_certificate:
            return TO_ANY
        return NOT_TO_STRANGERS if self.way.is_known(socket_of(self)) else ONLY_SCRAMBLED


def _public_key(server: ServerConfig) -> bytes | None:
    if server.public_key is None:
        return None
    try:
        content = server.public_key.read_bytes()
        load_pem_public_key(content)
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"the file of server.public_key cannot be read: {getattr(error, 'strerror', None) or 'it is no public key'}",
            hint="Write into it what SHOW STATUS LIKE 'Caching_sha2_password_rsa_public_key' shows on the server itself.",
            host=server.host,
            port=server.port,
        ) from error
    return content


def _tls(server: ServerConfig) -> ssl.SSLContext | None:
    if server.tls is None:
        return None
    try:
        context = ssl.create_default_context(cafile=str(server.tls.ca) if server.tls.ca else None)
        if server.tls.cert and server.tls.key:
            context.load_cert_chain(str(server.tls.cert), str(server.tls.key))
    except OSError as error:  # also a file without a certificate: the server is not at fault
        raise ConfigError(
            f"a file of server.tls cannot be read: {error.strerror or error}",
            hint="Check server.tls.ca, server.tls.cert and server.tls.key in the source file.",
            host=server.host,
            port=server.port,
        ) from error
    if not server.tls.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _refused_by_tls(cause: object) -> bool:
    # A connection that breaks during the handshake is an SSLError too, but the settings are not at fault.
    return isinstance(cause, ssl.SSLError) and not isinstance(cause, ssl.SSLEOFError | ssl.SSLZeroReturnError)


class _HostAndPort(Protocol):
    """Host and port of a server: a source's settings, or a connection."""

    @property
    def host(self) -> str: ...

    @property
    def port(self) -> int: ...


@contextmanager
def answering(connection: Session) -> Iterator[None]:
    """Translate the error of a broken connection; the error of a refused statement goes to the caller unchanged.

    Raises:
        SourceUnavailable: the connection broke, or the server ended it.
    """
    try:
        yield
    except (pymysql.err.OperationalError, pymysql.err.InterfaceError) as error:
        if not error.args or not is_of_connection(error.args[0]):
            raise
        raise translated(error, connection) from error


_LIMITS = {1040, 1203, 1226}
"""ER_CON_COUNT_ERROR, ER_TOO_MANY_USER_CONNECTIONS, ER_USER_LIMIT_REACHED: the server answers, and takes no more connections."""
_NO_MORE = (
    "The server takes no more connections: raise max_connections, or the limit of the user (ALTER USER ... WITH ...)."
)


def _unsupported(error: Exception, number: int, text: str) -> tuple[str, str] | None:
    """Return message and hint of what a retry does not change at the log-in; None for other errors."""
    if number in _ACCESS_DENIED:
        return f"the server refuses: {text}", "Run the GRANT statement that cdc doctor shows for this user."
    # The driver keeps the cause of a broken connection in this attribute.
    causes = (error, error.__cause__, getattr(error, "original_exception", None))
    if number in _AUTHENTICATION_ERRORS or any(map(_refused_by_tls, causes)):
        untrusted = next((cause for cause in causes if isinstance(cause, ssl.SSLCertVerificationError)), None)
        what = f"the server's certificate is not accepted: {untrusted.verify_message}" if untrusted else text
        hint = _WRONG_CERTIFICATE if untrusted else _WITHHELD if isinstance(error, PasswordWithheld) else _WRONG_TLS
        return f"log-in or TLS failed: {what}", hint
    return None


def not_spoken(why: str, server: _HostAndPort) -> UnsupportedServer:
    """Return the error of a server that does not speak the protocol."""
    return UnsupportedServer(
        f"the server does not speak MySQL's protocol: {why}", hint=_OTHER_PROGRAM, host=server.host, port=server.port
    )


def translated(error: Exception, server: _HostAndPort, table: str = "") -> SourceError:
    """Translate a driver's error into an error of this project.

    Args:
        error: of the driver.
        server: on which it occurred.
        table: ``database.table`` that the statement reads; empty if it reads no captured table.
    """
    number = error.args[0] if error.args and isinstance(error.args[0], int) else 0
    text = str(error.args[1]) if len(error.args) > 1 else str(error)
    context: dict[str, Context] = {"host": server.host, "port": server.port}
    refused: SourceError | None = failure_on_the_way(server)
    if refused is None and table and isinstance(error, pymysql.MySQLError) and not is_of_connection(number):
        refused = refused_for(table, number, text)
    if refused is not None:
        return refused
    if (unsupported := _unsupported(error, number, text)) is not None:
        return UnsupportedServer(unsupported[0], hint=unsupported[1], **context)
    if not isinstance(error, pymysql.MySQLError) or is_of_connection(number):
        return SourceUnavailable(
            f"the server cannot be reached{f' through {hop}' if (hop := hop_of(server)) else ''}: {text}",
            hint=_NO_MORE
            if number in _LIMITS
            else "Check server.host and server.port, and that it runs. "
            "If another server took over, name it under standbys: the next run goes on there.",
            **context,
        )
    if is_passing(number):
        return SourceUnavailable(
            f"the server answers with an error: {text} ({number})", hint="The task can be tried again.", **context
        )
    return SourceError(f"the server answers with an error: {text} ({number})", hint="", **context)
