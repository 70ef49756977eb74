"""What a query of Prometheus names: its metrics, and the labels that it looks at. It is read, not run."""

from __future__ import annotations

import re
from collections.abc import Iterable

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_SELECTOR = re.compile(r"\b(cdc_\w+)(?:\{([^}]*)\})?")
_MATCHER = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)")
_GROUPING = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)")
_SHOWN = re.compile(r"\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}")

Labels = dict[str, set[str]]
"""Labels by the name of a metric's samples."""


def labels_of(samples: Iterable[tuple[str, Iterable[str]]]) -> Labels:
    """Return which labels each name has, from names and labels of samples."""
    found: Labels = {}
    for name, labels in samples:
        found.setdefault(name, set()).update(labels)
    return found


def unknown_in(query: str, known: Labels) -> list[str]:
    """Return the metrics and labels of a query that there are not.

    A label of a grouping counts as known when one of the query's metrics has it.
    """
    bare = _STRING.sub('""', query)
    found = []
    mine: set[str] = set()
    for name, matchers in _SELECTOR.findall(bare):
        if name not in known:
            found.append(name)
            continue
        mine |= known[name]
        found += [f"{name}{{{label}}}" for label in _MATCHER.findall(matchers) if label not in known[name]]
    grouped = {label.strip() for labels in _GROUPING.findall(bare) for label in labels.split(",")} - {""}
    return found + sorted(grouped - mine)


def metrics_in(query: str) -> set[str]:
    """Return the metrics that a query names."""
    return {name for name, _ in _SELECTOR.findall(_STRING.sub('""', query))}


def shown_in(text: str) -> set[str]:
    """Return the labels that a legend or the text of an alert shows: ``{{source}}``, ``{{ $labels.source }}``."""
    return set(_SHOWN.findall(text))
