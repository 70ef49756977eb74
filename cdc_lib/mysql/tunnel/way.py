"""Opens the socket of a session through the hop that the source file names, and explains what failed on the way."""

from __future__ import annotations

import importlib
import importlib.util
import socket
from ipaddress import ip_address
from typing import Any

from cdc_lib.config import HopLogin, ServerConfig, SshConfig
from cdc_lib.errors import ConfigError, TunnelUnavailable

_LIBRARIES = {"ssh": "asyncssh", "socks": "python_socks"}


class Way:
    """The way of one session to its server.

    Args:
        server: its section of the source file.
        login: log-in at the hop.

    Attributes:
        hop: name of the hop, for messages; empty if the server is reached directly.
    """

    def __init__(self, server: ServerConfig, login: HopLogin) -> None:
        self._server = server
        self._login = login
        self._tunnel: Any = None
        self.hop = server.hop.named if server.hop is not None else ""

    def open(self) -> socket.socket | None:
        """Return a connected socket, None if the server is reached directly.

        Raises:
            TunnelUnavailable: the hop does not answer.
            TunnelRefused: the hop, or its host key, is refused.
            SourceUnavailable: the hop does not reach the server.
            ConfigError: a key cannot be read, or the extra is not installed.
        """
        server = self._server
        seconds = server.connect_timeout.total_seconds()
        if server.hop is None:
            return None
        kind = "ssh" if isinstance(server.hop, SshConfig) else "socks"
        opened = _module(kind).open_socket(server.hop, self._login, (server.host, server.port), seconds)
        ready: socket.socket = opened.socket
        self._tunnel = opened.tunnel
        return ready

    @property
    def checks_certificate(self) -> bool:
        """Whether the session begins only at a server whose certificate and name are accepted."""
        return self._server.tls is not None and self._server.tls.verify

    def is_known(self, sock: socket.socket | None) -> bool:
        """Whether the bytes stay on this machine, or go through an SSH server, whose host key is checked.

        Args:
            sock: to the server, or to the proxy before it.
        """
        if sock is None or self._server.hop is not None:
            return self._server.ssh is not None
        return sock.family == socket.AF_UNIX or ip_address(sock.getpeername()[0]).is_loopback

    def failure(self) -> TunnelUnavailable | None:
        """Return the error of a hop whose connection broke; None while it works."""
        why = self._tunnel.failure if self._tunnel is not None else ""
        if not why:
            return None
        return TunnelUnavailable(
            f"the connection to {self.hop} broke: {why}",
            hint="The task can be tried again. If it lasts, look at the log of that host.",
            host=self._server.host,
            port=self._server.port,
        )


def failure_on_the_way(session: object) -> TunnelUnavailable | None:
    """Return the error of a session whose hop broke; None without a hop, or while it works."""
    way = getattr(session, "way", None)
    return way.failure() if isinstance(way, Way) else None


def hop_of(server: object) -> str:
    """Return the name of the hop of a session or of a server's section; empty if there is none."""
    if isinstance(server, ServerConfig):
        return server.hop.named if server.hop is not None else ""
    way = getattr(server, "way", None)
    return way.hop if isinstance(way, Way) else ""


def _module(kind: str) -> Any:
    """Import the module of a kind of hop; its library is an optional dependency."""
    if importlib.util.find_spec(_LIBRARIES[kind]) is None:
        raise ConfigError(
            f"server.{kind} needs {_LIBRARIES[kind]}, which is not installed", hint='pip install "lakecdc[tunnel]"'
        )
    return importlib.import_module(f"cdc_lib.mysql.tunnel.{kind}")
