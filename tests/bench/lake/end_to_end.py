"""From the binlog to the committed lake table by ``cdc run``, with the start of all processes."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import yaml

from tests.bench.report import Figure
from tests.bench.usage import Usage, measure
from tests.bench.workloads import DATABASE, WORKLOADS, Workload, prepare
from tests.harness.servers import MariaDbServer, MySqlServer, SqlServer

CHOSEN = ("W1", "W2")
"""The workloads."""
PASSWORD = "CDC_BENCH_PASSWORD"


def end_to_end(flavor: str, scale: float = 1.0) -> tuple[list[Figure], str]:
    """Run each workload and return its figures, and the server's version."""
    with MySqlServer(settings={"max-binlog-size": "1G"}) if flavor == "mysql" else MariaDbServer() as server:
        prepare(server)
        figures = [
            figure for workload in WORKLOADS if workload.name in CHOSEN for figure in _figures(server, workload, scale)
        ]
        return figures, f"{server.flavor} {server.version}"


def source_file(folder: Path, server: SqlServer, tables: str, **settings: object) -> list[str]:
    """Write a source file ``bench`` and return the prefix of every ``cdc`` command."""
    document = {
        "server": {"host": server.host, "port": server.port, "user": server.cdc_user, "password_env": PASSWORD},
        "tables": [tables],
        "store": {"url": f"file://{folder}/store"},
        "lake": {
            "catalog": "lake",
            "type": "jdbc",
            "uri": f"jdbc:sqlite:{folder}/catalog.db?busy_timeout=30000",
            "warehouse": f"file://{folder}/lake",
        },
        **settings,
    }
    (folder / "bench.yaml").write_text(yaml.safe_dump(document))
    return [sys.executable, "-m", "cdc_lib.cli", "--sources", str(folder)]


def _figures(server: SqlServer, workload: Workload, scale: float) -> list[Figure]:
    rows = round(workload.rows * scale)
    for statement in workload.tables:
        server.execute(statement, database=DATABASE)
    workload.load(server, rows)
    with tempfile.TemporaryDirectory(prefix="lakecdc-bench-") as folder:
        cdc = source_file(Path(folder), server, f"{DATABASE}.*", start="latest", drain={"max_window_bytes": "1GiB"})
        env = {PASSWORD: server.cdc_password}
        measure([*cdc, "run", "bench"], env)  # records where it starts
        workload.run(server, rows)
        used, _ = measure([*cdc, "run", "bench"], env)
    return _named(workload.name, used)


def _named(name: str, used: Usage) -> list[Figure]:
    return [
        Figure(f"{name} from the binlog to the lake: CPU", used.cpu, "s"),
        Figure(f"{name} from the binlog to the lake: wall", used.wall, "s"),
        Figure(f"{name} from the binlog to the lake: peak memory of one process", used.peak_mib, "MiB"),
    ]
