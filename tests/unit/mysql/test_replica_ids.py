"""What the doctor says of a server_id in the source file."""

from __future__ import annotations

import pytest

from cdc_lib.mysql.replica_ids import judge_replica_id


@pytest.mark.parametrize(
    ("own", "level", "words"),
    [
        (1, "warning", "the server's own"),
        (7, "warning", "a replica's"),
        (9, "ok", "in parallel end each other's dumps"),
    ],
)
def test_an_id_that_another_server_has_is_a_warning(own, level, words):
    """The server ends one of two dumps with one id."""
    (found,) = judge_replica_id(own, 1, [7, 8])
    assert (found.level, words in found.what) == (level, True)


def test_a_derived_id_needs_no_finding():
    """Ids are derived from host, port and position."""
    assert not list(judge_replica_id(None, 1, [7]))
