"""What a request has to have before anything of its body is read: the token of the server, and a body of bounded length."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import HTTPException
from fastapi.responses import Response
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cdc_lib.model.bearer_token import is_authorized

LARGEST = 2 * 1024 * 1024
"""Bytes of a body at most."""

_TOO_LARGE = f"the body has more than {LARGEST} bytes"


class Door:
    """Middleware outside of the framework, which would read the body first.

    Args:
        app: what answers the requests that may enter.
        token: of the server; empty if it needs none.
        refuse: makes the answer to others of a status and a sentence.
    """

    def __init__(self, app: ASGIApp, token: str, refuse: Callable[[int, str], Response]) -> None:
        self._app, self._token, self._refuse = app, token, refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        headers = Headers(scope=scope) if scope["type"] == "http" else Headers()
        if scope["type"] == "http" and not is_authorized(headers.get("authorization", ""), self._token):
            answer = self._refuse(401, "the token is missing or wrong")
        elif int(headers.get("content-length", 0)) > LARGEST:
            answer = self._refuse(413, _TOO_LARGE)
        else:
            await self._app(scope, _bounded(receive), send)
            return
        answer.headers["Connection"] = "close"  # else the body would be read, to find the next request
        await answer(scope, receive, send)


def _bounded(receive: Receive) -> Receive:
    """Return the same for a body without a length in its headers."""
    length = 0

    async def bounded() -> Message:
        nonlocal length
        message = await receive()
        length += len(message.get("body", b""))
        if length > LARGEST:
            raise HTTPException(413, _TOO_LARGE, {"Connection": "close"})
        return message

    return bounded
