"""Nothing is lost and nothing comes twice, wherever a step is killed; ``./dev chaos`` does this at length."""

from __future__ import annotations

import pytest

from tests.support.chaos.driver import Chaos
from tests.support.chaos.settings import chaos_config
from tests.support.chaos.trials import Trials

pytestmark = [
    pytest.mark.timeout(600),
    # py4j leaves its sockets to the Java process for the collector to close.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]


def test_twenty_kills_at_random_points_lose_nothing_and_double_nothing(mysql_server, tmp_path):
    """Plans, drains, merges and acks die; retries, cleared tasks, crashes and cut connections come in between."""
    config = chaos_config(mysql_server, "chaos", tmp_path, Trials.of(11))
    try:
        with Chaos(mysql_server, config, "chaos", tmp_path, 11, merge_kills=1, rows=200) as chaos:
            chaos.run(20)
    finally:
        mysql_server.execute("DROP DATABASE IF EXISTS chaos")
    assert chaos.killed.total >= 20
    steps = {label.partition(":")[0] for label in chaos.killed.counts}
    assert {"plan", "drain", "ack_drain"} <= steps
    assert chaos.events["rows compared"] > 200
