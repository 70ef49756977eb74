"""An ASGI application that is made when the first request comes: every component of Airflow reads plugins, one serves requests."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, MutableMapping
from functools import cached_property
from importlib import import_module
from typing import Any

Message = MutableMapping[str, Any]


class LazyApp:
    """Stands for the application that a function returns.

    Args:
        module: where the function is; imported with the first request.
        function: its name.
    """

    def __init__(self, module: str, function: str = "make_app") -> None:
        self._function = module, function
        self._making = threading.Lock()

    @cached_property
    def _made(self) -> Any:
        module, function = self._function
        return getattr(import_module(module), function)()

    async def __call__(
        self, scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
    ) -> None:
        """Answer a request."""
        with self._making:
            app = self._made
        await app(scope, receive, send)
