"""What the commands that listen have in common: who has the token may send requests, or at a socket only the same user."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Annotated

import typer

from cdc_lib.cli.output import say
from cdc_lib.errors import ConfigError

LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})

Socket = Annotated[
    Path | None,
    typer.Option(
        "--socket", metavar="FILE", help="Listen at a socket of mode 0600 instead: for this user, without a token."
    ),
]
"""The option of both commands."""


def listening_token(host: str, token_env: str, socket: Path | None) -> str:
    """Return the token that clients have to send; empty at a socket. One is made and printed if none is given.

    Args:
        host: address to listen at.
        token_env: name of the environment variable with the token; empty for none.
        socket: to listen at instead.

    Raises:
        ConfigError: the variable is not set, or other machines can reach the address without a token.
    """
    token = os.environ.get(token_env, "") if token_env else ""
    if token_env and not token:
        raise ConfigError(f"the environment variable {token_env} is not set", hint="It holds the token of --token-env.")
    if socket is not None or token:
        return token
    if host not in LOOPBACK:
        raise ConfigError(
            f"--host {host} is reachable from other machines, and no token is set",
            hint="Give --token-env the name of an environment variable with a token, or listen at 127.0.0.1.",
        )
    token = secrets.token_urlsafe(24)
    say(f"clients send the token {token}; --token-env names a variable with one of your own")
    return token
