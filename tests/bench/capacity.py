"""What a day's binlog costs, on paper: computed for the page from the figures of the drain and of the merges."""

from __future__ import annotations

import re
from typing import Any

from tests.bench.report import DRAIN
from tests.bench.workloads import WORKLOADS

MB_A_DAY = 1_000_000
"""1 TB of binlog."""
MORE = 10
"""A merge of so many times the changes shows what a further change costs, without what each merge costs."""
_HOUR = 3600
_OURS = re.compile(r"([\d,]+) rows, (\w+) keys, ours: CPU")
_MANY = re.compile(r"([\d,]+) rows, (\w+) keys, ours with ([\d,]+) changes: CPU")

Document = dict[str, Any]


def capacity(drain: Document, merges: Document) -> list[str]:
    """Return the section, as a list of one; empty if the merges lack what it needs.

    Args:
        drain: results of ``./dev bench drain``.
        merges: results of ``./dev bench lake merges``.
    """
    figures = {figure["name"]: figure["value"] for figure in merges["figures"]}
    once = {match[2]: value for name, value in figures.items() if (match := _OURS.fullmatch(name))}
    many = {match[2]: (_int(match[3]), value) for name, value in figures.items() if (match := _MANY.fullmatch(name))}
    if not many:
        return []
    changes = max(number for number, _ in many.values()) // MORE
    further = {keys: (cpu - once[keys]) / (number - changes) for keys, (number, cpu) in many.items()}
    read = {figure["name"]: figure["value"] for figure in drain["figures"]}
    rows = [_row(read, workload.name, further) for workload in WORKLOADS if f"{workload.name} {DRAIN}: wall" in read]
    costs = ", ".join(
        f"{cost * 1e6:.1f} CPU s for a million changes with {keys} keys" for keys, cost in further.items()
    )
    columns = " | ".join(f"merge CPU h, {keys} keys" for keys in further)
    text = f"""### 1 TB of binlog a day, on paper

Computed from the figures of `{drain["command"]}` and `{merges["command"]}`; no such day was run. The workloads are those of the drain. A merge
costs the difference between one of {MORE * changes:,} changes and one of {changes:,}: {costs}, in a table of 12
columns. The fixed cost of each merge is left out, and so are compactions.

| | changes a day | drain CPU h | {columns} | cores in all |
|---|--:|--:|{"--:|" * len(further)}--:|
{chr(10).join(rows)}"""
    return [text]


def _row(read: dict[str, float], workload: str, further: dict[str, float]) -> str:
    name = f"{workload} {DRAIN}"
    megabytes = read[f"{name}: speed"] * read[f"{name}: wall"]
    changes = MB_A_DAY / megabytes * read[f"{name}: rows read"]
    drained = MB_A_DAY / megabytes * read[f"{name}: CPU"] / _HOUR
    merged = [changes * cost / _HOUR for cost in further.values()]
    cells = [f"{changes / 1e6:,.0f} million", f"{drained:.1f}", *(f"{hours:.1f}" for hours in merged)]
    return f"| {workload} | {' | '.join(cells)} | {(drained + max(merged)) / 24:.1f} |"


def _int(text: str) -> int:
    return int(text.replace(",", ""))
