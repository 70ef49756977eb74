"""What is refused before a server is asked."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("cursor", "locate", "shop"), "name exactly one position"),
        (
            ("cursor", "locate", "shop", "--time", "2026-11-21T06:00:00Z", "--position", "b.1:4"),
            "name exactly one position",
        ),
        (("cursor", "locate", "shop", "--time", "yesterday"), "not a time with its zone"),
        (("cursor", "locate", "shop", "--position", "b"), "not file:offset"),
        (("cursor", "rewind", "shop"), "name exactly one position"),
        (("cursor", "rewind", "shop", "--undo", "--gtid", "0-1-1", "--position", "b.1:4"), "name exactly one position"),
        (("cursor", "failover", "shop", "--to", "nowhere"), "not HOST:PORT"),
        (("cursor", "failover", "shop", "--to", "db9:3306"), "is not a server of"),
    ],
)
def test_an_invalid_position_is_reported_with_the_valid_forms(cdc, arguments, message):
    """With exit status 2, as every mistake of a person."""
    result = cdc(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
