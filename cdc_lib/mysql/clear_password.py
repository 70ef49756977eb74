"""Methods of log-in that show the server the password itself: only a server whose certificate is checked may ask for them.

The driver sends the password to any server that asks, also without TLS: anybody between would have it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pymysql
from pymysql.connections import Connection
from pymysql.constants import CR


class _Refusal:
    """Ends the log-in; the driver makes one for each request."""

    def __init__(self, _connection: Connection[Any]) -> None:
        """Take what the driver passes."""

    def authenticate(self, _packet: object) -> None:
        """Refuse.

        Raises:
            pymysql.OperationalError: always.
        """
        raise pymysql.OperationalError(
            CR.CR_AUTH_PLUGIN_CANNOT_LOAD,
            "the server asks for the password in clear text, and its certificate is not checked",
        )


NOT_TO_STRANGERS: dict[str, Callable[[Connection[Any]], Any]] = {"mysql_clear_password": _Refusal, "dialog": _Refusal}
"""What the driver calls for these methods at a server that is not known; ``dialog`` is that of PAM."""
