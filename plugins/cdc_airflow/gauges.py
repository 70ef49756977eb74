"""Figures of a source as metrics of Airflow's own: they go where ``[metrics]`` of its configuration sends them.

Where that takes tags (Datadog, InfluxDB, OpenTelemetry) a figure is ``cdc.<figure>`` with the tags ``source``, ``table`` and ``op``.
Plain StatsD has no tags: there the source's name is a part of the name, and figures of single tables are not sent.
"""

from __future__ import annotations

import re

from cdc_airflow.airflow_versions import Stats, conf

TAGGED = ("statsd_datadog_enabled", "statsd_influxdb_enabled", "otel_on")
"""Options of ``[metrics]`` each of which takes tags."""

_NO_NAME = re.compile(r"[^a-zA-Z0-9_.-]")


def show(source: str, **figures: float | None) -> None:
    """Give each figure as a gauge; one that is not known is left out.

    Args:
        source: the source's name.
        **figures: the values by their names.
    """
    for figure, value in figures.items():
        if value is not None:
            name, tags = _named(source, figure, {})
            Stats.gauge(name, value, tags=tags)


def count(source: str, figure: str, more: int, **tags: str) -> None:
    """Add to a counter; nothing is sent for nothing.

    Args:
        source: the source's name.
        figure: name of the counter.
        more: what is added.
        **tags: further tags. A counter with such is not sent where there are no tags.
    """
    if more and (takes_tags() or not tags):
        name, found = _named(source, figure, tags)
        Stats.incr(name, more, tags=found)


def takes_tags() -> bool:
    """Whether Airflow's metrics go to something that has tags."""
    return any(conf.getboolean("metrics", option, fallback=False) for option in TAGGED)


def _named(source: str, figure: str, tags: dict[str, str]) -> tuple[str, dict[str, str] | None]:
    """Return the name and the tags of a figure. A character that could end a tag or a line becomes an underscore."""
    if takes_tags():
        plain = {tag: _NO_NAME.sub("_", value) for tag, value in tags.items()}
        return f"cdc.{figure}", {"source": source, **plain}
    name = _NO_NAME.sub("_", source.replace(".", "_"))
    return f"cdc.{name}.{figure}", None
