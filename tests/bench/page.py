"""Writes ``docs/benchmarks.md`` from the results of the benchmarks: ``./dev bench page``; the site makes the full page from the same.

The results of earlier runs are kept in ``tests/bench/results``; those in ``build/bench`` replace them.
"""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from typing import Any

from tests.bench.capacity import capacity
from tests.bench.processes import ROOT
from tests.bench.report import DRAIN, GO, JAVA, PEERS, PYTHON, RAW, comparison
from tests.bench.stages import STAGES
from tests.bench.summary import summary
from tests.bench.workloads import WORKLOADS

SAVED = ROOT / "build" / "bench"
RESULTS = ROOT / "tests" / "bench" / "results"
PAGE = ROOT / "docs" / "benchmarks.md"

WIDTH = 130
"""Characters of a line of the page."""
NOT_RECORDED = "not recorded"

_PLAIN = {
    "memory": "Memory",
    "parallel": "Two processes",
    "read": "Rows of a lake table by key, without Spark",
    "reselect": "Rows read back by their keys",
    "snapshot": "A table read by SELECT",
    "tunnel": "A window drained through an SSH server and a SOCKS proxy",
    "verify": "A table compared with its source",
    "ddl": "Many statements on tables, MySQL",
    "ddl-mariadb": "Many statements on tables, MariaDB",
    "airflow": "Runs of a DAG in Airflow",
    "xcom": "What runs of a source of many tables leave in Airflow",
    "parsing": "DAG files of many sources in Airflow",
    "freshness": "From the commit at the source to the cut of the lake",
    "ui": "Answers of the page in Airflow",
}
_LAKE = {
    "merges": "Merges into large tables",
    "loads": "First rows of a large table",
    "reads": "Reading between compactions",
    "many": "Many small tables",
    "start": "What shortens the start of Spark",
    "server": "Merges on one Spark server",
    "sources": "Many sources on one Spark server",
    "executors": "One merge on one, two and four executors",
    "end-to-end": "From the binlog to the lake",
}

Document = dict[str, Any]


def main() -> int:
    """Keep the new results, and write the page of the figures that matter."""
    RESULTS.mkdir(exist_ok=True)
    for path in sorted(SAVED.glob("*.json")):
        shutil.copy(path, RESULTS)
    documents = results()
    if not documents:
        print(f"bench: no results in {RESULTS} and {SAVED}; run ./dev bench drain first", file=sys.stderr)
        return 1
    PAGE.write_text(summary(documents))
    print(f"wrote {PAGE.relative_to(ROOT)}")
    return 0


def results() -> dict[str, Document]:
    """Return the kept results, by the stems of their files."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(RESULTS.glob("*.json"))}


def page(documents: dict[str, Document]) -> str:
    """Return the page of all figures; a benchmark without a file of results is named at its end.

    Args:
        documents: results of the benchmarks, by the stems of their files.
    """
    parts = [_HEAD]
    for name, command in (("drain", "./dev bench drain"), ("drain-mariadb", "./dev bench drain --server mariadb")):
        if name in documents:
            parts += [_drain(documents[name], command), _stages(documents[name])]
    parts += [_plain(_PLAIN[name], _command(name), documents[name]) for name in _PLAIN if name in documents]
    if "tables" in documents:
        parts.append(_tables(documents["tables"]))
    if "tables-mysql" in documents:
        parts.append(_real_tables(documents["tables-mysql"]))
    for name, title in _LAKE.items():
        if f"lake-{name}" in documents:
            parts.append(_plain(title, f"./dev bench lake {name}", documents[f"lake-{name}"]))
        if name == "merges" and {"drain", "lake-merges"} <= documents.keys():
            parts += capacity(documents["drain"], documents["lake-merges"])
    if "positions" in documents:
        parts.append(_positions(documents["positions"]))
    if "growth" in documents:
        parts.append(growth(documents["growth"]))
    if "newcomer" in documents:
        parts.append(_steps(documents["newcomer"]))
    names = (
        "drain",
        *_PLAIN,
        "tables",
        "tables-mysql",
        *(f"lake-{name}" for name in _LAKE),
        "positions",
        "growth",
        "newcomer",
    )
    missing = [f"`{_command(name)}`" for name in names if name not in documents]
    if missing:
        missing_text = textwrap.fill(f"Nothing is known yet of {', '.join(missing)}.", WIDTH, break_on_hyphens=False)
        parts.append(f"## Without figures\n\n{missing_text}")
    return "\n\n".join(parts) + "\n"


def _command(name: str) -> str:
    """Return the command of the benchmark that writes a file of results."""
    return f"./dev bench {name.replace('lake-', 'lake ').replace('-mariadb', ' --server mariadb').replace('-mysql', ' --server mysql')}"


def measured(document: Document) -> str:
    """Return how a file's figures were measured; facts that the file lacks are named as not recorded."""
    machine = document.get("machine")
    size = f"{machine['cores']} cores, {machine['memory_gib']} GiB of memory" if machine else NOT_RECORDED
    loads = (
        f"{document.get('load_before', NOT_RECORDED)} before",
        f"{document.get('load_after', NOT_RECORDED)} at the end",
    )
    versions = document.get("versions", {})
    has_spread = any(figure.get("spread") for figure in document.get("figures", ()))
    facts = {
        "Command": f"`{document['command']}`" if "command" in document else NOT_RECORDED,
        "Measured": document.get("measured_at") or NOT_RECORDED,
        "Commit": document.get("commit") or NOT_RECORDED,
        "Machine": f"{size}, shared with others; load {', '.join(loads)}",
        "Versions": ", ".join(f"{name} {of}" for name, of in versions.items() if of != "none") or NOT_RECORDED,
        "Runs": document.get("runs", NOT_RECORDED),
        "Warm-up": document.get("warm_up", NOT_RECORDED),
        "Slices": document.get("slices", "none; everything is read"),
        "Spread": "least and largest of the runs, in brackets" if has_spread else NOT_RECORDED,
    }
    return "\n".join(_wrapped(f"* {name}: {fact}.") for name, fact in facts.items())


def _wrapped(line: str) -> str:
    return "\n".join(textwrap.wrap(line, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False))


def growth(document: Document) -> str:
    """Return the section on the cost of the N-th small merge."""
    between = f"By the clock of the merges, {document['every']} s lie between two runs. " if "every" in document else ""
    listed, _, plots = "\n".join(document["lines"]).partition("\n\n")
    return (
        f"## The cost of the N-th merge: `{document['command']}`\n\n{measured(document)}\n\n"
        f"One table with a key, {document['changes']} changes and an empty window in each run, one Spark for all runs. {between}Seconds are of "
        f"the clock, `java` is Java's CPU seconds, `metadata` the bytes of the newest metadata file. Means over tenths of the runs.\n\n"
        f"{listed}\n\n```\n{plots}\n```"
    )


_HEAD = """# All benchmarks

This page is made from the files that the benchmarks wrote. Each heading names the command that printed the figures
under it. The list below each heading says how they were measured. Compare figures of one table only. The machine was shared with
others, and other machines give other figures.

A goal is a target of the project. No goal is a figure of another tool."""


_ABOUT_READERS = (
    "Scale {scale}, TLS {tls}. All readers read the same binlog of the same server over the loopback interface, each in a process "
    f"of its own. `{RAW}` copies bytes and decodes nothing. It is a comparison, not a limit: it writes a file, and can be slower than "
    f"a reader that decodes. `{PYTHON}`, `{GO}` (its BinlogSyncer) and `{JAVA}` (with which Debezium reads the binlog) "
    "decode every row and throw the values away. They run with their default settings. This drain writes zstd Parquet and its manifest. "
    "CPU seconds are those of all threads."
)


def _drain(document: Document, command: str) -> str:
    figures = {figure["name"]: figure for figure in document["figures"]}
    rows = []
    for workload in WORKLOADS:
        for reader in (RAW, *PEERS, DRAIN):
            rows += _row(figures, workload.name, reader)
    text = textwrap.fill(
        _ABOUT_READERS.format(scale=document["scale"], tls="on" if document["tls"] else "off"),
        WIDTH,
        break_on_hyphens=False,
    )
    titles = "\n".join(f"* {w.name}: {w.title}, {w.rows:,} row changes at scale 1" for w in WORKLOADS)
    header = "| | reader | rows/CPU s | drain: x its rows/CPU s | CPU s | wall s | speed x raw | MB/s | peak MiB |\n|---|---|--:|--:|--:|--:|--:|--:|--:|"
    return f"""## The drain of {document["versions"]["server"]}: `{command}`

{measured(document)}

{text}

{titles}

{header}
{chr(10).join(rows)}
{_not_measured(document)}
{_chart(figures)}

{_verdict(document["figures"])}"""


def _not_measured(document: Document) -> str:
    """Return which readers were not measured, and why; empty if all were measured."""
    lines = [f"{entry['workload']}, {entry['reader']}: {entry['why']}" for entry in document.get("not_measured", ())]
    return "\n".join(["", "Not measured:", "", *(_wrapped(f"* {line}") for line in lines), ""]) if lines else ""


def _row(figures: dict[str, Document], workload: str, reader: str) -> list[str]:
    name = f"{workload} {reader}"
    if f"{name}: wall" not in figures:
        return []

    def value(what: str, key: str = "value") -> str:
        figure = figures.get(f"{name}: {what}", {})
        number = figure.get(key)
        text = "" if number is None else f"{number:,.2f}" if isinstance(number, float) else f"{number:,}"
        return text + _between(figure, ".2f") if key == "value" else text

    per_cpu = "rows per CPU second"
    ratio = figures.get(comparison(workload, reader), {}).get("ratio") if reader in PEERS else None
    compared = "" if ratio is None else f"{ratio:,.2f}"
    cells = [
        *(workload, reader, value(per_cpu), compared, value("CPU"), value("wall")),
        *(value("wall", "ratio"), value("speed"), value("peak memory")),
    ]
    return [f"| {' | '.join(cells)} |"]


def _between(figure: Document, form: str = "") -> str:
    """Return the spread over the runs, in brackets."""
    if not figure.get("spread"):
        return ""
    least, most = figure["spread"]
    return f" ({least:,{form}} to {most:,{form}})"


def _chart(figures: dict[str, Document]) -> str:
    """Return rows per CPU second as a multiple of mysql-replication's, as a Mermaid chart."""
    names = [w.name for w in WORKLOADS if figures.get(f"{w.name} {DRAIN}: rows per CPU second", {}).get("ratio")]
    if not names:
        return "No workload was read by both."
    bars = [figures[f"{name} {DRAIN}: rows per CPU second"]["ratio"] for name in names]
    return f"""```mermaid
xychart-beta
  title "rows per CPU second, as a multiple of {PYTHON}"
  x-axis [{", ".join(names)}]
  y-axis "times" 0 --> {round(max(bars) * 1.1)}
  bar [{", ".join(f"{bar:.1f}" for bar in bars)}]
```"""


def _verdict(figures: list[Document]) -> str:
    lines = ["Goals:", ""]
    for figure in figures:
        if figure["goal"] is not None:
            reached, spread = figure["value"], _between(figure)
            if figure["ratio"] is not None:
                reached, spread = figure["ratio"], ""
            verdict = "met" if figure["met"] else "not met"
            lines.append(f"* {figure['name']}: {reached:,}{spread} of {figure['goal']:g}, {verdict}")
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
        ratio = f", {figure['ratio']:g} x {figure['compared_to']}" if figure["ratio"] and figure["unit"] != "x" else ""
        value = f"{figure['value']:,}{_between(figure)} {figure['unit']}".rstrip()
        rows.append(f"| {figure['name']} | {value}{ratio} | {goal} | {verdict} |")
    table = f"| | | goal | |\n|---|--:|--:|---|\n{chr(10).join(rows)}"
    return f"## {title}: `{command}`\n\n{measured(document)}\n\n{table}\n{_not_measured(document)}".rstrip()


def _tables(document: Document) -> str:
    """Return the section on many tables in cursors."""
    return f"""## Many tables in the cursors: `./dev bench tables`

{measured(document)}

CPU seconds of one step, over a real cursor store and without a server.

{_by_size(document["figures"])}

{_verdict(document["figures"])}"""


def _steps(document: Document) -> str:
    """Return the section on a newcomer's first hour."""
    values = {figure["name"]: figure["value"] for figure in document["figures"]}
    rows = [
        f"| {part} | {step} | {values[f'{part}: {step}: minutes']:.2f} | {values[f'{part}: {step}: CPU']} |"
        for part, _, step in (name.removesuffix(": CPU").partition(": ") for name in values if name.endswith(": CPU"))
    ]
    return f"""## A newcomer's first hour: `./dev bench newcomer`

{measured(document)}

Commands of the pages, typed into a new Debian with its packages, a home and a checkout, up to the first verified table: once without Airflow, and with an
Airflow of each version. MySQL runs beside it. Downloads are part of it; what the server takes, Docker, Kubernetes and a cluster are not.

| | step | minutes | CPU s |
|---|---|--:|--:|
{chr(10).join(rows)}"""


def _real_tables(document: Document) -> str:
    """Return the section on many tables of a server."""
    wall = [figure for figure in document["figures"] if figure["name"].endswith(": wall")]
    return f"""## Many tables of a server: `./dev bench tables --server mysql`

{measured(document)}

Seconds of one step. The tables have a few rows; two snapshots are read at a time (`drain.parallelism: 2`).

{_by_size(wall)}"""


def _by_size(figures: list[Document]) -> str:
    """Return a row for each step, and a column for each number of tables."""
    named = [(*figure["name"].removesuffix(": wall").split(" tables, ", 1), figure) for figure in figures]
    sizes, steps = list(dict.fromkeys(one[0] for one in named)), list(dict.fromkeys(one[1] for one in named))
    values = {(size, step): figure for size, step, figure in named}
    rows = []
    for step in steps:
        cells = (f"{values[size, step]['value']:.2f}" for size in sizes)
        rows.append(f"| {step} | {' | '.join(cells)} |")
    columns = " | ".join(f"{size} tables" for size in sizes)
    return f"| step | {columns} |\n|---|{'--:|' * len(sizes)}\n{chr(10).join(rows)}"


def _positions(document: Document) -> str:
    figures = {figure["name"]: figure for figure in document["figures"]}

    def table(heading: str, begin: str, columns: dict[str, str]) -> str:
        first, *others = columns
        rows = [f"| {heading} | {' | '.join(columns.values())} |", f"|---|{'--:|' * len(columns)}"]
        for what in [name.removesuffix(first) for name in figures if name.startswith(begin) and name.endswith(first)]:
            values = [figures[what + column] for column in (first, *others)]
            cells = [f"{figure['value']:,}{_between(figure)}" for figure in values]
            rows.append(f"| {what.removeprefix(begin)} | {' | '.join(cells)} |")
        return "\n".join(rows)

    walk = figures["walk over the large file"]
    searches = {": file heads read": "file heads read", ": bytes scanned": "MB received", ": wall": "wall s"}
    acks = {": p50": "p50 ms", ": p99": "p99 ms"}
    return f"""## Finding places, and moving cursors: `./dev bench positions`

{measured(document)}

{document["files"]} binlog files of a few hundred bytes each, and among them one of {figures["the large file"]["value"]} MB with
{document["rows"]:,} transactions of one row. Connections are counted in.

{table("searched by", "", searches)}

The first one walks over all headers of the large file, at {walk["value"]:,} MB/s; `{RAW}` copies that file at
{figures[f"{RAW} of the large file"]["value"]:,} MB/s, its start included: {walk["ratio"]:,} times as fast.

{document["acks"]} acks in each home, one after another:

{table("home", "ack, ", acks)}

Periodic writes to its home every few seconds and when it is closed; the acks in between stay in memory."""


if __name__ == "__main__":
    sys.exit(main())
