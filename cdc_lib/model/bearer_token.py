"""Who may send requests to a server of this package: those who have its token, or programs of the same machine."""

from __future__ import annotations

import hmac

OWN_NAMES = ("127.0.0.1", "localhost", "[::1]")
"""Names of this machine in a request to a server without a token.

A page of another site can pretend that its own name is an address of this machine (DNS rebinding), but not that it has one of these.
"""


def is_authorized(header: str, token: str) -> bool:
    """Whether a request has the token.

    Args:
        header: its ``Authorization``; empty if there is none.
        token: of the server; empty if it needs none.
    """
    given = header.removeprefix("Bearer ")
    return not token or hmac.compare_digest(given.encode(), token.encode())
