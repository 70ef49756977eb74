"""Answers queries of DuckDB's Iceberg extension, one JSON line each; started by ``tests/bench/reading/readers.py``."""

from __future__ import annotations

import json
import sys
import time

from tests.harness.lake.duckdb_queries import EXTENSIONS


def main() -> int:
    """Answer with milliseconds, and id and note of each row."""
    import duckdb

    with duckdb.connect() as connection:
        for name in EXTENSIONS:
            place = f"duckdb_extension_{name}/extensions/v{duckdb.__version__}/{name}.duckdb_extension"
            connection.execute(f"LOAD '{sys.argv[1]}/{place}'")
        for line in sys.stdin:
            began = time.perf_counter()
            rows = connection.execute(json.loads(line)).fetch_arrow_table()
            took = (time.perf_counter() - began) * 1_000
            pairs = zip(rows.column("id").to_pylist(), rows.column("note").to_pylist(), strict=True)
            print(json.dumps([took, list(pairs)]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
