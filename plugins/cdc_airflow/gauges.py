"""Figures of a source as gauges of Airflow's own metrics: they go where ``[metrics]`` of its configuration sends them.

A source's name is a part of the gauge's name, because plain StatsD has no tags.
"""

from __future__ import annotations

from airflow.sdk.observability import stats


def show(source: str, **figures: float | None) -> None:
    """Give each figure as the gauge ``cdc.<source>.<figure>``; one that is not known is left out.

    Args:
        source: the source's name.
        **figures: the values by their names.
    """
    name = stats.normalize_name_for_stats(source.replace(".", "_"), log_warning=False)
    for figure, value in figures.items():
        if value is not None:
            stats.gauge(f"cdc.{name}.{figure}", value)
