"""What a hop gives back for one session."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import Protocol


class Breakable(Protocol):
    """A connection to a hop that several sessions share."""

    @property
    def failure(self) -> str:
        """Why it broke; empty while it works."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A socket to the server.

    Args:
        socket: connected; the caller closes it.
        tunnel: what the socket goes through; None where only the socket itself can break.
    """

    socket: socket.socket
    tunnel: Breakable | None
