"""Whether a catalog or a storage says that a log-in was valid and is over: the next attempt may have a new one."""

from __future__ import annotations

OVER = (
    "ExpiredToken",
    "AuthorizationExpired",
    *(f"{token}{word} expired" for token in ("token", "Token") for word in ("", " has", " is")),
    "expired token",
    "Expired token",
)
"""Names of AWS and of Iceberg's REST specification; words of catalogs and of OAuth servers."""


def is_over(text: str) -> bool:
    """Whether an error is about a token that is no longer valid.

    Args:
        text: of the error, with the names of its classes.
    """
    return any(word in text for word in OVER)
