"""A request that gets an error as its answer."""

from __future__ import annotations


class RequestRefused(Exception):
    """A request is wrong, or asks for what does not exist.

    Args:
        status: of HTTP.
        kind: name of the error for programs.
        message: for people.
    """

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
