"""Many small tables in one merge: with the start of Spark, and on a Spark server that is warm."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from cdc_lib.store import documents
from cdc_lib.store.objects.local import LocalStore
from tests.bench.lake.plain import ServerWithPlain
from tests.bench.lake.rounds import CHANGES, Rounds, compared_with_plain
from tests.bench.report import Figure
from tests.bench.usage import measure
from tests.harness.lake.batches import BIGINT, TEXT, BatchWriter, Row, table
from tests.harness.lake.running import lake_config
from tests.harness.servers import SqlServer

MANY = 200
"""Tables."""

GOAL = 20.0
"""Most seconds on two cores, on a warm Spark server."""

WARM_UP, TIMED = 3, 3
"""Merges on the server that are not counted, and that are."""


def many_tables(tables: int = MANY, changes: int = CHANGES) -> list[Figure]:
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
            command = [
                sys.executable,
                "-m",
                "tests.harness.lake.merge_job",
                f"{folder}/config.json",
                f"{folder}/plan.json",
            ]
            used, output = measure(command)
            if f" {tables}" not in output.partition("CUT")[2]:
                raise AssertionError(output)
            return used.wall, used.cpu, used.peak_mib

        first, second = merge(1000, "c"), merge(2000, "u")
    name = f"{tables} tables with {changes} changes each"
    return [
        Figure(f"{name}: first merge, which makes them", first[0], "s"),
        Figure(f"{name}: wall", second[0], "s"),
        Figure(f"{name}: CPU", second[1], "s"),
        Figure(f"{name}: peak memory of Java", second[2], "MiB"),
    ]


def many_tables_warm(folder: Path, server: SqlServer, tables: int = MANY) -> Iterator[Figure]:
    """Merge changes of all tables again and again on a Spark server, in turn with plain statements.

    Args:
        folder: for everything but the source.
        server: the source.
        tables: their number; the goal is for :data:`MANY`.
    """
    os.environ["CDC_PASSWORD"] = server.cdc_password
    with ServerWithPlain(folder, "--driver-memory", "2g") as spark:
        rounds = Rounds(server, folder, spark, tables, "many")
        for _ in range(WARM_UP):
            rounds.warm()
        yield from compared_with_plain(rounds, spark, TIMED, GOAL if tables == MANY else None)
