"""What the commands that listen have in common: an address that others can reach needs a token."""

from __future__ import annotations

import os

from cdc_lib.errors import ConfigError

LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


def listening_token(host: str, token_env: str) -> str:
    """Return the token that clients have to send; empty if they need none.

    Args:
        host: address to listen at.
        token_env: name of the environment variable with the token; empty for none.

    Raises:
        ConfigError: the variable is not set, or other machines can reach the address without a token.
    """
    token = os.environ.get(token_env, "") if token_env else ""
    if token_env and not token:
        raise ConfigError(f"the environment variable {token_env} is not set", hint="It holds the token of --token-env.")
    if host not in LOOPBACK and not token:
        raise ConfigError(
            f"--host {host} is reachable from other machines, and no token is set",
            hint="Give --token-env the name of an environment variable with a token, or listen at 127.0.0.1.",
        )
    return token
