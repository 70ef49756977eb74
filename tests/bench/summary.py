"""The figures that matter, as ``docs/benchmarks.md`` shows them; all others are on the page that the site makes from the same files."""

from __future__ import annotations

from typing import Any

Document = dict[str, Any]

NOT_MEASURED = "not measured"
SHOWN = (
    ("Bulk inserts, drained: rows per CPU second", "drain", "W1 this drain: rows per CPU second"),
    ("Single-row transactions, drained: rows per CPU second", "drain", "W2 this drain: rows per CPU second"),
    ("200 tables in one window, drained: rows per CPU second", "drain", "W4 this drain: rows per CPU second"),
    ("One transaction of 2 GiB, drained: memory", "memory", "one transaction of 2048 MiB: peak memory"),
    ("Snapshot by one process", "snapshot", "1,000,000 rows, one process: rows a second"),
    ("First merge of 5,000,000 rows", "lake-loads", "5,000,000 first rows, load: wall"),
    ("Merge into 5,000,000 rows, in a running Spark", "lake-merges", "5,000,000 rows, uniform keys, warm, ours: wall"),
    ("Merge into 20 tables, on a Spark server", "lake-server", "20 tables with 50 changes each, on a Spark server: wall"),
    ("Commit to cut, a run each minute: 95 % within", "freshness", "20 tables, 500 transactions a second, a run each minute: 95 % within"),
    ("`get` by key of 5,000,000 rows, median", "read", "5,000,000 rows after 50 merges of 10,000 changes: a get, p50"),
    ("`cdc get` with the start of Python", "read", "5,000,000 rows after maintenance: cdc get, a new process, p50"),
    ("`cdc verify` of 4,000,000 rows", "verify", "4,000,000 rows: cdc verify, its comparison"),
    ("Reselect by an integer key", "reselect", "one integer: keys a second of one core"),
    ("Run in Airflow with changes in 5 tables", "airflow", "changes in 5 tables, with the scheduler's imports: wall"),
    ("DAG files of 200 sources, parsed", "parsing", "200 sources: all DAG files"),
    ("From `pip install` on a bare Debian to a verified table", "newcomer", "no Airflow: all steps: minutes"),
    ("The same with a new Airflow 3.3.2", "newcomer", "3.3.2: all steps: minutes"),
)  # fmt: skip
"""What a row is of, its file of results, and its figure there."""

_HEAD = """# Benchmarks

The [full page](benchmarks/all.md) of the site has all figures, with machine, commit, runs and spread.
`./dev bench page` makes both from `tests/bench/results`. The machine had two cores and other work: compare figures of one command only.

A goal is a target of the project."""


def summary(documents: dict[str, Document]) -> str:
    """Return the page.

    Args:
        documents: results of the benchmarks, by the stems of their files.
    """
    rows = [_row(documents, *shown) for shown in SHOWN]
    table = "\n".join(["| | figure | compared | command | measured |", "|---|--:|---|---|---|", *rows])
    missed = "\n".join(_missed(documents))
    of = [
        figure for document in documents.values() for figure in document.get("figures", ()) if figure["met"] is not None
    ]
    return f"{_HEAD}\n\n{table}\n\n## Goals that are missed\n\nOf {len(of)}.\n\n{missed or 'None.'}\n"


def _row(documents: dict[str, Document], title: str, stem: str, name: str) -> str:
    document = documents.get(stem, {})
    figure = next((figure for figure in document.get("figures", ()) if figure["name"] == name), None)
    if figure is None:
        return f"| {title} | {NOT_MEASURED} | | | |"
    compared = f"{figure['ratio']:g} x {figure['compared_to']}" if figure["ratio"] and figure["compared_to"] else ""
    value = f"{round(figure['value'], 2):,} {'' if title.endswith('second') else figure['unit']}".strip()
    command, _, _ = document["command"].partition(" --")
    return f"| {title} | {value} | {compared} | `{command}` | {document['measured_at'][:10]} |"


def _missed(documents: dict[str, Document]) -> list[str]:
    """Return a line for each figure that does not reach its goal."""
    return [
        f"* {stem}: {figure['name']}: {round(figure['value'], 2):,} {figure['unit']}"
        f"{f' ({ratio:g} x)' if (ratio := figure['ratio']) and figure['unit'] != 'x' else ''}, goal {figure['goal']:g}"
        for stem, document in documents.items()
        for figure in document.get("figures", ())
        if figure["met"] is False
    ]
