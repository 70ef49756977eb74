"""A message to people when a task fails or a deadline is missed."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from airflow.sdk import BaseHook, BaseNotifier
from airflow.sdk.log import mask_secret

from cdc_airflow.airflow_versions import AirflowFailException
from cdc_airflow.errors import described
from cdc_lib.errors import CdcError, ConfigError

if TYPE_CHECKING:
    from airflow.sdk import Context

_PATIENCE = 10
"""Seconds that the other side may take."""


class WebhookNotifier(BaseNotifier):
    """Posts ``{"text": ...}`` to an address, as incoming webhooks of chat programs take it.

    Args:
        conn_id: an Airflow connection of any type whose password is the address: whoever knows it may post.
        text: what is said; a template. Without it: the task, its run and its error with what to do.
    """

    template_fields: Sequence[str] = ("text",)

    def __init__(self, *, conn_id: str, text: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.conn_id = conn_id
        self.text = text

    def notify(self, context: Context) -> None:
        """Post the message; Airflow logs an error of it and goes on.

        Raises:
            ConfigError: the connection holds no address.
            OSError: the other side cannot be reached, or refuses.
        """
        self._post(BaseHook.get_connection(self.conn_id).password, self.text or message_of(context))

    async def async_notify(self, context: Context) -> None:
        """Post the message from the triggerer, as deadlines do; see :meth:`notify`."""
        connection = await BaseHook.aget_connection(self.conn_id)
        await asyncio.to_thread(self._post, connection.password, self.text or message_of(context))

    def _post(self, address: str | None, text: str) -> None:
        if not address or urlsplit(address).scheme not in ("http", "https"):
            raise ConfigError(
                f"the Airflow connection {self.conn_id} has no address to post to",
                hint="Its password is the address, and begins with https://.",
            )
        mask_secret(address)
        body = json.dumps({"text": text}).encode()
        request = urllib.request.Request(address, body, {"Content-Type": "application/json"})  # noqa: S310 - checked above
        with urllib.request.urlopen(request, timeout=_PATIENCE):  # noqa: S310 - checked above
            pass


def message_of(context: Context) -> str:
    """Return which task of which run failed, and why."""
    task = context.get("ti") or context.get("task_instance")
    subject = f"{task.dag_id} {task.task_id} in {task.run_id}" if task is not None else "A deadline was missed"
    error = context.get("exception")
    error = error.__cause__ if isinstance(error, AirflowFailException) and error.__cause__ else error
    if isinstance(error, CdcError):
        return "\n".join([subject, *described(error)])
    return f"{subject}\n{type(error).__name__}: {error}" if error is not None else subject
