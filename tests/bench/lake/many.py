"""Many small tables in one merge, with the start of Spark."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from cdc_lib.store import documents
from cdc_lib.store.objects.local import LocalStore
from tests.bench.report import Figure
from tests.bench.usage import measure
from tests.harness.batches import BIGINT, TEXT, BatchWriter, Row, table
from tests.harness.lake import lake_config

GOAL = 40.0
"""Most seconds on two cores."""


def many_tables(tables: int = 200, changes: int = 50) -> list[Figure]:
    """Make the tables by a first merge, and measure the second."""
    schemas = [table(f"bench.t{number}", {"id": BIGINT, "name": TEXT}) for number in range(tables)]
    with tempfile.TemporaryDirectory(prefix="lakecdc-bench-") as folder:
        config = lake_config(Path(folder), source="shop")
        batches = BatchWriter(LocalStore(Path(folder) / "store"))
        (Path(folder) / "config.json").write_text(config.model_dump_json())

        def merge(start: int, op: str) -> tuple[float, float, int]:
            rows = {
                schema: [
                    Row(
                        "d" if op == "u" and number % 10 == 0 else op,
                        start + number,
                        {"id": number, "name": f"{op}{number}"},
                    )
                    for number in range(changes)
                ]
                for schema in schemas
            }
            plan = batches.plan(start + 1000, batches.window(start, start + 1000, rows))
            (Path(folder) / "plan.json").write_bytes(documents.dump(plan))
            command = [sys.executable, "-m", "tests.harness.merge_job", f"{folder}/config.json", f"{folder}/plan.json"]
            used, output = measure(command)
            if f" {tables}" not in output.partition("CUT")[2]:
                raise AssertionError(output)
            return used.wall, used.cpu, used.peak_mib

        first, second = merge(1000, "c"), merge(2000, "u")
    name = f"{tables} tables with {changes} changes each"
    return [
        Figure(f"{name}: first merge, which makes them", first[0], "s"),
        Figure(f"{name}: wall", second[0], "s", goal=GOAL, met=second[0] <= GOAL),
        Figure(f"{name}: CPU", second[1], "s"),
        Figure(f"{name}: peak memory of Java", second[2], "MiB"),
    ]
