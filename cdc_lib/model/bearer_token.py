"""Who may send requests to a server of this package: those who have its token."""

from __future__ import annotations

import hmac


def is_authorized(header: str, token: str) -> bool:
    """Whether a request has the token.

    Args:
        header: its ``Authorization``; empty if there is none.
        token: of the server; empty if it needs none.
    """
    given = header.removeprefix("Bearer ")
    return not token or hmac.compare_digest(given.encode(), token.encode())
