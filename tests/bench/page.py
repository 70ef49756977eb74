"""Writes ``docs/benchmarks.md`` from what the benchmarks saved under ``build/bench``: ``./dev bench page``."""

from __future__ import annotations

import json
import sys
from typing import Any

from tests.bench.processes import ROOT
from tests.bench.report import DRAIN, PEER, RAW
from tests.bench.stages import STAGES
from tests.bench.workloads import WORKLOADS

SAVED = ROOT / "build" / "bench"
PAGE = ROOT / "docs" / "benchmarks.md"

_PLAIN = {
    "memory": "Memory",
    "parallel": "Two processes",
    "reselect": "Rows read back by their keys",
    "snapshot": "A table read by SELECT",
    "verify": "A table compared with its source",
}
_LAKE = {
    "merges": "Merges into large tables",
    "reads": "Reading between compactions",
    "many": "Many small tables",
    "end-to-end": "From the binlog to the lake",
}

Document = dict[str, Any]


def main() -> int:
    """Write the page; a benchmark that was not run is named and left out."""
    documents = {path.stem: json.loads(path.read_text()) for path in sorted(SAVED.glob("*.json"))}
    if "drain" not in documents:
        print(f"bench: {SAVED / 'drain.json'} is not there; run ./dev bench drain first", file=sys.stderr)
        return 1
    parts = [_head(documents["drain"])]
    for name, command in (("drain", "./dev bench drain"), ("drain-mariadb", "./dev bench drain --server mariadb")):
        if name in documents:
            parts += [_drain(documents[name], command), _stages(documents[name])]
    parts += [_plain(_PLAIN[name], f"./dev bench {name}", documents[name]) for name in _PLAIN if name in documents]
    parts += [
        _plain(_LAKE[name], f"./dev bench lake {name}", documents[f"lake-{name}"])
        for name in _LAKE
        if f"lake-{name}" in documents
    ]
    if "positions" in documents:
        parts.append(_positions(documents["positions"]))
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text("\n\n".join(parts) + "\n")
    print(f"wrote {PAGE.relative_to(ROOT)}")
    return 0


def _head(document: Document) -> str:
    machine, versions = document["machine"], document["versions"]
    used = ", ".join(f"{name} {version}" for name, version in versions.items())
    return f"""# Benchmarks

Made by `./dev bench page` from the files that the benchmarks below wrote. Each heading names the command that measured what
stands under it. The machine had {machine["cores"]} cores and {machine["memory_gib"]} GiB of memory, shared with others (load
{document["load_before"]} before): compare within one table, not with other machines.

Versions: {used}."""


def _drain(document: Document, command: str) -> str:
    figures = {figure["name"]: figure for figure in document["figures"]}
    rows = []
    for workload in WORKLOADS:
        for reader in (RAW, PEER, DRAIN):
            rows += _row(figures, workload.name, reader)
    titles = "\n".join(f"* {w.name}: {w.title}, {w.rows:,} row changes at scale 1" for w in WORKLOADS)
    header = "| | reader | rows/CPU s | x peer | CPU s | wall s | speed x raw | MB/s | peak MiB |\n|---|---|--:|--:|--:|--:|--:|--:|--:|"
    return f"""## The drain of {document["versions"]["server"]}: `{command}`

Scale {document["scale"]}, TLS {"on" if document["tls"] else "off"}. All readers read the same binlog of the same server over the
loopback interface, in one run, each in a process of its own; of several runs the one with the least CPU counts. `{RAW}` copies
bytes and decodes nothing: the floor. `{PEER}`, the peer, decodes and throws away. This drain writes zstd Parquet and its
manifest.

{titles}

{header}
{chr(10).join(rows)}

{_chart(figures)}

{_verdict(document["figures"])}"""


def _row(figures: dict[str, Document], workload: str, reader: str) -> list[str]:
    name = f"{workload} {reader}"
    if f"{name}: wall" not in figures:
        return []

    def value(what: str, key: str = "value") -> str:
        found = figures.get(f"{name}: {what}", {}).get(key)
        return "" if found is None else f"{found:,.2f}" if isinstance(found, float) else f"{found:,}"

    per_cpu = "rows per CPU second"
    cells = [
        *(workload, reader, value(per_cpu), value(per_cpu, "ratio"), value("CPU"), value("wall")),
        *(value("wall", "ratio"), value("speed"), value("peak memory")),
    ]
    return [f"| {' | '.join(cells)} |"]


def _chart(figures: dict[str, Document]) -> str:
    """Return rows per CPU second as a multiple of the peer's, in the notation that code hosts draw."""
    names = [w.name for w in WORKLOADS if (figures.get(f"{w.name} {DRAIN}: rows per CPU second") or {}).get("ratio")]
    bars = [figures[f"{name} {DRAIN}: rows per CPU second"]["ratio"] for name in names]
    return f"""```mermaid
xychart-beta
  title "rows per CPU second, as a multiple of {PEER}"
  x-axis [{", ".join(names)}]
  y-axis "times" 0 --> {round(max(bars) * 1.1)}
  bar [{", ".join(f"{bar:.1f}" for bar in bars)}]
```"""


def _verdict(figures: list[Document]) -> str:
    lines = ["Goals:", ""]
    for figure in figures:
        if figure["goal"] is not None:
            reached = figure["ratio"] if figure["ratio"] is not None else figure["value"]
            verdict = "met" if figure["met"] else "not met"
            lines.append(f"* {figure['name']}: {reached:,} of {figure['goal']:g}, {verdict}")
    return "\n".join(lines)


def _stages(document: Document) -> str:
    seconds = {figure["name"]: figure["value"] for figure in document["figures"] if " stage " in figure["name"]}
    header = f"| | {' | '.join(STAGES)} |\n|---|{'--:|' * len(STAGES)}"
    rows = []
    for workload in WORKLOADS:
        of_stages = [seconds.get(f"{workload.name} stage {stage}") for stage in STAGES]
        if any(of_stages):
            rows.append(f"| {workload.name} | {' | '.join(f'{took or 0.0:.2f}' for took in of_stages)} |")
    meanings = "\n".join(f"* {stage}: {meaning}" for stage, meaning in STAGES.items())
    return f"""### Where its CPU seconds go

From the same command: one more drain of each workload, with the clocks of its threads read at each stage.

{header}
{chr(10).join(rows)}

{meanings}"""


def _plain(title: str, command: str, document: Document) -> str:
    rows = []
    for figure in document["figures"]:
        goal = "" if figure["goal"] is None else f"{figure['goal']:g}"
        verdict = "" if figure["met"] is None else "met" if figure["met"] else "not met"
        beside = f", {figure['ratio']:g} x {figure['compared_to']}" if figure["ratio"] and figure["unit"] != "x" else ""
        rows.append(f"| {figure['name']} | {figure['value']:,} {figure['unit']}{beside} | {goal} | {verdict} |")
    told = f"Load before: {document['load_before']}.\n\n" if "load_before" in document else ""
    return f"## {title}: `{command}`\n\n{told}| | | goal | |\n|---|--:|--:|---|\n{chr(10).join(rows)}"


def _positions(document: Document) -> str:
    figures = {figure["name"]: figure for figure in document["figures"]}

    def table(heading: str, begin: str, columns: dict[str, str]) -> str:
        first, *others = columns
        rows = [f"| {heading} | {' | '.join(columns.values())} |", f"|---|{'--:|' * len(columns)}"]
        for what in [name.removesuffix(first) for name in figures if name.startswith(begin) and name.endswith(first)]:
            cells = [f"{figures[what + column]['value']:,}" for column in (first, *others)]
            rows.append(f"| {what.removeprefix(begin)} | {' | '.join(cells)} |")
        return "\n".join(rows)

    walk = figures["walk over the large file"]
    searches = {": file heads read": "file heads read", ": bytes scanned": "MB received", ": wall": "wall s"}
    acks = {": p50": "p50 ms", ": p99": "p99 ms"}
    machine, versions = document["machine"], document["versions"]
    return f"""## Finding places, and moving cursors: `./dev bench positions`

{document["files"]} binlog files of a few hundred bytes each, and among them one of {figures["the large file"]["value"]} MB with
{document["rows"]:,} transactions of one row; {versions["server"]}, {machine["cores"]} cores, {machine["memory_gib"]} GiB. The machine was busy (load
{document["load_before"]} before): compare within one table; ratios count. Of several runs the fastest; connections are counted in.

{table("searched by", "", searches)}

The first one walks over all headers of the large file, at {walk["value"]:,} MB/s; `{RAW}` copies that file at
{figures[f"{RAW} of the large file"]["value"]:,} MB/s, its start included: {walk["ratio"]:,} times as fast.

{document["acks"]} acks in each home, one after another:

{table("home", "ack, ", acks)}

Periodic writes to its home every 5 seconds and when it is closed; the acks in between stay in memory."""


if __name__ == "__main__":
    sys.exit(main())
