"""The page of benchmarks shows what was measured, and the full page says of each section how its figures were measured, or that nobody recorded it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.bench import page, report
from tests.bench.capacity import capacity
from tests.bench.lake.__main__ import PARTS
from tests.bench.newcomer import Step, figures_of
from tests.bench.readers import Measured
from tests.bench.report import (
    DRAIN,
    GO,
    JAVA,
    PEERS,
    PYTHON,
    RAW,
    Figure,
    Reading,
    figures,
    save,
    spread,
    stage_figures,
)
from tests.bench.summary import NOT_MEASURED, SHOWN, summary

PAGE = Path(__file__).parents[3] / "docs" / "benchmarks.md"
LABELS = ["Command", "Measured", "Commit", "Machine", "Versions", "Runs", "Warm-up", "Slices", "Spread"]


def sections(text: str) -> dict[str, list[str]]:
    """Return the labels of the list below each heading."""
    parts = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    lists = {part.partition("\n")[0]: re.findall(r"^\* ([A-Z][A-Za-z-]*): ", part, re.MULTILINE) for part in parts}
    return {heading: labels for heading, labels in lists.items() if heading != "Without figures"}


def results(folder: Path) -> dict[str, page.Document]:
    """Return what benchmarks save, from figures that nothing was measured for."""
    runs = [Measured(1000, 1.0 + n, 0.5 + n, 1 << 20) for n in range(3)]
    rows = {GO: 500, JAVA: 4000}
    readings = [
        Reading("W1", reader, 0.3, rows.get(reader, 1000), 4000, 5000, runs[0], runs) for reader in (RAW, *PEERS, DRAIN)
    ]
    drain = [*figures(readings), *stage_figures({"W1": {"frame": 0.1}})]
    positions = [
        Figure("the large file", 1.0, "MB"),
        Figure("walk over the large file", 2.0, "MB/s", RAW, 2.0),
        Figure(f"{RAW} of the large file", 1.0, "MB/s"),
        *(Figure(f"time: {what}", 1, "s", spread=(1, 2)) for what in ("file heads read", "bytes scanned", "wall")),
        *(Figure(f"ack, memory: {what}", 1, "ms") for what in ("p50", "p99")),
    ]
    shown = {
        "drain": drain,
        "tables": [Figure(f"{size} tables, {step}", 0.1, "CPU s") for size in (20, 40) for step in ("plan", "unit")],
        "positions": positions,
        **{name: [Figure("one", 1.5, "s", spread=(1.5, 2.5))] for name in ("memory", "ddl")},
        **{f"lake-{part}": [Figure("one", 1.5, "s")] for part in PARTS},
        "newcomer": figures_of([Step("3.3.2", "cdc init", 90, 2.25)]),
    }
    about = {
        "scale": 1,
        "tls": False,
        "files": 1,
        "rows": 1,
        "acks": 1,
        "load_before": 0.1,
        "runs": "3",
        "warm_up": "none",
        "not_measured": [{"workload": "W5", "reader": PYTHON, "why": "it read 0 row changes"}],
    }
    for name, found in shown.items():
        save(found, "mysql 9", about, folder / f"{name}.json")
    growth = {**report.about_the_run("none"), "load_before": 0.1, "changes": 1, "lines": ["| a |", "", "plot"]}
    (folder / "growth.json").write_text(json.dumps(growth))
    return {path.stem: json.loads(path.read_text()) for path in folder.glob("*.json")}


def test_each_section_that_is_made_says_how_it_was_measured(tmp_path):
    text = page.page(results(tmp_path))
    found = sections(text)
    assert len(found) == 16
    assert {heading: labels[: len(LABELS)] for heading, labels in found.items()} == dict.fromkeys(found, LABELS)
    assert "(1.5 to 2.5)" in text
    assert "| 3.3.2 | cdc init | 1.50 | 2.2 |" in text
    assert "0.50 (0.50 to 2.50)" in text  # CPU seconds of a reader, over its runs
    assert "`./dev bench reselect`, `./dev bench snapshot`" in text.partition("## Without figures")[2]


@pytest.mark.parametrize(
    "missing", ["command", "measured_at", "commit", "machine", "versions", "runs", "warm_up", "load_after"]
)
def test_what_a_file_of_results_does_not_hold_is_said(tmp_path, missing):
    document = results(tmp_path)["memory"]
    before = page.measured(document).count(page.NOT_RECORDED)
    del document[missing]
    assert page.measured(document).count(page.NOT_RECORDED) == before + 1


def test_the_page_is_made_from_the_kept_results():
    """A figure that is edited by hand, or a result that is not on the page, is found."""
    assert PAGE.read_text() == summary(page.results())


def test_each_figure_of_the_page_was_measured():
    """One whose benchmark was renamed or made at another size is found."""
    assert NOT_MEASURED not in PAGE.read_text()
    assert summary({}).count(f"| {NOT_MEASURED} |") == len(SHOWN)


def test_a_goal_that_is_missed_is_on_the_page():
    """Also one of a figure that is not in the table."""
    figure = {"name": "one", "value": 2, "unit": "s", "ratio": None, "goal": 1.0, "met": False}
    assert "Of 2.\n\n* made: one: 2 s, goal 1\n" in summary({"made": {"figures": [figure, {**figure, "met": True}]}})


def test_each_section_of_the_full_page_says_how_it_was_measured():
    found = sections(page.page(page.results()))
    assert len(found) > 20
    assert {heading: labels[: len(LABELS)] for heading, labels in found.items()} == dict.fromkeys(found, LABELS)


def test_each_reader_that_the_drain_is_compared_with_is_in_the_table(tmp_path):
    """The ratio in a peer's row is the drain's rows per CPU second as a multiple of the peer's."""
    text = page.page(results(tmp_path))
    cells = [
        [cell.strip() for cell in line.split("|")[2:5]] for line in text.splitlines() if line.startswith("| W1 | ")
    ]
    compared = {reader: ratio for reader, _, ratio in cells if reader in (RAW, *PEERS, DRAIN)}
    assert compared == {RAW: "", PYTHON: "1.00", GO: "2.00", JAVA: "0.25", DRAIN: ""}
    assert f"Not measured:\n\n* W5, {PYTHON}: it read 0 row changes\n\n" in text


def test_a_single_run_has_no_spread():
    assert spread([1.0]) is None
    assert spread([2.0, 1.23456, 3.0]) == (1.235, 3.0)
    assert spread([2.4, 1.6], 0) == (2, 2)


def test_the_cost_of_a_day_follows_from_the_drain_and_the_difference_of_two_merges():
    def of(figures: dict[str, float]) -> page.Document:
        return {"command": "one", "figures": [{"name": name, "value": value} for name, value in figures.items()]}

    # 100 MB with 1,000,000 changes in 0.5 s; 900,000 further changes cost 18 CPU s.
    drain = of({f"W2 {DRAIN}: {what}": value for what, value in (("speed", 200), ("wall", 0.5), ("rows read", 1e6), ("CPU", 0.36))})  # fmt: skip
    merges = {
        "5,000,000 rows, uniform keys, ours: CPU": 10.0,
        "5,000,000 rows, uniform keys, ours with 1,000,000 changes: CPU": 28.0,
    }
    [section] = capacity(drain, of(merges))
    assert "20.0 CPU s for a million changes with uniform keys" in section
    assert "| W2 | 10,000 million | 1.0 | 55.6 | 2.4 |" in section
    assert capacity(drain, of({"5,000,000 rows, uniform keys, ours: CPU": 10.0})) == []
