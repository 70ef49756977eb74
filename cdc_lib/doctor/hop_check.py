"""Checks the SSH server or SOCKS proxy on the way to the source."""

from __future__ import annotations

from collections.abc import Iterator

from cdc_lib.config import Credentials, ServerConfig
from cdc_lib.model.finding import Finding
from cdc_lib.mysql.tunnel.way import Way


def check_hop(server: ServerConfig, credentials: Credentials) -> Iterator[Finding]:
    """Yield a finding about the hop that the source file names; nothing if the server is reached directly.

    Raises:
        SourceError: the hop fails, or it does not reach the server; the message says which.
    """
    opened = Way(server, credentials.hop).open()
    if opened is not None and server.hop is not None:
        opened.close()
        yield Finding("ok", f"{server.hop.named} opens connections to {server.host}:{server.port}")
