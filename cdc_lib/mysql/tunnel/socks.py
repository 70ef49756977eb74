"""Sessions through a SOCKS5 proxy; the proxy resolves the server's name."""

from __future__ import annotations

import socket

from python_socks import ProxyError, ProxyType
from python_socks.sync import Proxy

from cdc_lib.config import HopLogin, SocksConfig
from cdc_lib.errors import SourceUnavailable, TunnelRefused, TunnelUnavailable
from cdc_lib.mysql.tunnel.opened import Opened

_NOT_ALLOWED = 2
_UNREACHED = {1, 3, 4, 5, 6}
"""Replies about the server: general failure, network or host unreachable, connection refused, time to live expired."""


def open_socket(hop: SocksConfig, login: HopLogin, server: tuple[str, int], seconds: float) -> Opened:
    """Return a socket to a server.

    Args:
        hop: the proxy.
        login: at the proxy; without a user, none is offered.
        server: host, as the proxy resolves it, and port.
        seconds: the proxy gets to answer.

    Raises:
        TunnelUnavailable: the proxy does not answer.
        TunnelRefused: it refuses the log-in or the server.
        SourceUnavailable: it does not reach the server.
    """
    where: dict[str, str | int] = {"host": server[0], "port": server[1]}
    proxy = Proxy(ProxyType.SOCKS5, hop.host, hop.port, login.user or None, login.password or None, rdns=True)
    try:
        opened = proxy.connect(*server, timeout=seconds)
    except OSError as error:  # also the library's errors of a connection and of a time limit
        text = error.strerror or str(error)
        raise TunnelUnavailable(
            f"{hop.named} cannot be reached: {text}",
            hint="Check server.socks.host and server.socks.port, and that it runs.",
            **where,
        ) from error
    except ProxyError as error:
        if error.error_code in _UNREACHED:
            raise SourceUnavailable(
                f"{hop.named} answers, and does not reach the server: {error}",
                hint="Check server.host and server.port as the proxy sees them, and that the server runs.",
                **where,
            ) from error
        if error.error_code == _NOT_ALLOWED:
            hint = "Allow connections to this host and port at the proxy."
        else:
            hint = "Check the log-in under server.socks, and that it is a SOCKS5 proxy."
        raise TunnelRefused(f"{hop.named} refuses: {error}", hint=hint, **where) from error
    opened.settimeout(None)
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return Opened(opened, None)
