"""Figures through Airflow's own metrics, as a StatsD listener gets them."""

from __future__ import annotations

import socket
from contextlib import ExitStack

import pytest

from cdc_airflow.gauges import count, show
from tests.harness.airflow.metrics import statsd_metrics


@pytest.fixture
def listener(monkeypatch):
    """Tell Airflow to send metrics here, with InfluxDB's tags or without; returns what gives the lines that came."""
    made = ExitStack()

    def start(*, tags):
        udp = made.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(("127.0.0.1", 0))
        udp.settimeout(5)
        options = {
            "ON": True,
            "HOST": "127.0.0.1",
            "PORT": udp.getsockname()[1],
            "PREFIX": "af",
            "INFLUXDB_ENABLED": tags,
        }
        for name, value in options.items():
            monkeypatch.setenv(f"AIRFLOW__METRICS__STATSD_{name}", str(value))
        made.enter_context(statsd_metrics())
        return lambda lines: [udp.recv(65536).decode() for _ in range(lines)]

    with made:
        yield start


def test_plain_statsd_gets_the_source_in_the_name_and_nothing_of_single_tables(listener):
    """It has no tags: tables of all sources would be one figure."""
    got = listener(tags=False)
    show("shop.eu", lag_seconds=3.5, retention_hours=None)
    count("shop.eu", "rows_merged", 7, table="shop.orders", op="c")
    show("shop.eu", quarantined_tables=0)
    assert got(2) == ["af.cdc.shop_eu.lag_seconds:3.5|g", "af.cdc.shop_eu.quarantined_tables:0|g"]


def test_tags_name_source_table_and_kind_of_change(listener):
    """Also of a table whose name would end a tag or begin another metric; nothing is counted for nothing."""
    got = listener(tags=True)
    show("shop", lag_seconds=3.5)
    count("shop", "rows_merged", 0, table="shop.orders", op="u")
    count("shop", "rows_merged", 7, table="shop.a,b=c|c\nevil:1|g", op="c")
    assert got(2) == [
        "af.cdc.lag_seconds,source=shop:3.5|g",
        "af.cdc.rows_merged,source=shop,table=shop.a_b_c_c_evil_1_g,op=c:7|c",
    ]
