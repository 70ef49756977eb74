"""No change is lost or applied twice, wherever a step is killed; ``./dev chaos`` and ``./dev soak`` run longer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.chaos.driver import Chaos
from tests.chaos.scenarios import Scenarios
from tests.chaos.settings import chaos_config
from tests.chaos.site import Site
from tests.harness.servers import S3Server

pytestmark = [
    # py4j leaves its sockets for the garbage collector to close.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


def twelve_kills(site, folder, scenarios, s3=None):
    config = chaos_config(site, "chaos", folder, scenarios, s3)
    with Chaos(site, config, "chaos", folder, 11, merge_kills=1, rows=200, scenarios=scenarios) as chaos:
        chaos.run(12)
    assert chaos.killed.total >= 12
    steps = {label.partition(":")[0] for label in chaos.killed.counts}
    assert {"plan", "drain", "ack_drain"} <= steps
    assert chaos.events["rows compared"] > 200
    assert chaos.events["rows verified"] > 200
    assert chaos.events["rows read by key"] > 200


@pytest.mark.turns(1)
def test_twelve_kills_at_random_points_lose_and_duplicate_nothing(tmp_path):
    """Steps of all kinds are killed; servers crash and fail over, tables change and are snapshotted again, and verify finds no drift."""
    with Site("mysql with GTIDs", apart=True) as site:
        # Each of these four takes many seconds, and has tests of its own.
        chosen = replace(Scenarios.every(), ahead=False, copies=False, reverts=False, erasures=False)
        twelve_kills(site, tmp_path, chosen)


@pytest.mark.slow
def test_the_same_on_mariadb_and_s3(tmp_path):
    """The same sequence of actions, with other servers and another store."""
    with Site("mariadb", apart=True) as site, S3Server() as s3:
        twelve_kills(site, tmp_path, Scenarios.every(), s3)
