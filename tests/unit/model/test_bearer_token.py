"""Who may send requests to a server."""

from __future__ import annotations

import pytest

from cdc_lib.model.bearer_token import is_authorized


@pytest.mark.parametrize(
    ("header", "token", "authorized"),
    [
        ("", "", True),
        ("Bearer other", "", True),
        ("Bearer söcret", "söcret", True),
        ("Bearer secre", "secret", False),
        ("", "secret", False),
    ],
)
def test_only_requests_with_the_token_of_a_server_are_authorized(header: str, token: str, authorized: bool):
    """A server without a token takes all."""
    assert is_authorized(header, token) is authorized
