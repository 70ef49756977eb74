"""Queries of DuckDB's Iceberg reader, in a process of its own, so that a test can run any version of DuckDB.

``CDC_TEST_DUCKDB`` names a version: it and its extensions are installed from the Python package index, into the folder of downloads.
Without it, the installed DuckDB downloads its extension from DuckDB's server.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

EXTENSIONS = ("avro", "iceberg")
FOR_CATALOGS = ("httpfs", *EXTENSIONS)
"""What DuckDB needs to ask an Iceberg REST catalog."""
ROOT = Path(__file__).parents[2]


class ExtensionMissing(Exception):
    """The Iceberg extension of this version of DuckDB cannot be installed here; the text says why."""


def installed(version: str, extensions: Sequence[str] = EXTENSIONS) -> Path | None:
    """Install a version of DuckDB and its extensions, once; returns the folder. None for the version of the environment."""
    if not version:
        return None
    more = [name for name in extensions if name not in EXTENSIONS]
    folder = (
        Path(os.environ.get("CDC_CACHE", Path.home() / ".cache" / "lakecdc")) / "duckdb" / "-".join([version, *more])
    )
    if not (folder / ".done").exists():
        packages = [f"duckdb=={version}", *(f"duckdb-extension-{name}=={version}" for name in extensions)]
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--upgrade", "--target", str(folder), *packages]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise ExtensionMissing(f"DuckDB {version} and its extensions: {done.stderr.strip().splitlines()[-1]}")
        (folder / ".done").touch()
    return folder


def query(
    folder: Path | None, queries: Sequence[str], setup: Sequence[str] = (), extensions: Sequence[str] = EXTENSIONS
) -> tuple[str, list[list[Any]]]:
    """Return DuckDB's version, and the rows of each query.

    Args:
        folder: of :func:`installed`.
        queries: whose results can be written as JSON.
        setup: statements before them.
        extensions: that are loaded.

    Raises:
        ExtensionMissing: the extension cannot be loaded.
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(str(one) for one in (folder, ROOT) if one)}
    request = json.dumps(
        {
            "folder": str(folder) if folder else "",
            "queries": list(queries),
            "setup": list(setup),
            "extensions": list(extensions),
        }
    )
    command = [sys.executable, "-m", "tests.harness.duckdb_queries"]
    done = subprocess.run(command, cwd=ROOT, env=environment, input=request, capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(f"DuckDB failed: {done.stderr[-4000:]}")
    answer = json.loads(done.stdout)
    if answer["missing"]:
        raise ExtensionMissing(f"DuckDB {answer['version']}: {answer['missing']}")
    return answer["version"], answer["results"]


def _main() -> int:
    import duckdb

    request = json.load(sys.stdin)
    answer: dict[str, Any] = {"version": duckdb.__version__, "missing": "", "results": []}
    with duckdb.connect() as connection:
        try:
            for name in request["extensions"]:
                if request["folder"]:
                    place = f"duckdb_extension_{name}/extensions/v{duckdb.__version__}/{name}.duckdb_extension"
                    connection.execute(f"LOAD '{request['folder']}/{place}'")
                else:
                    connection.execute(f"INSTALL {name}")
                    connection.execute(f"LOAD {name}")
        except duckdb.Error as error:
            answer["missing"] = str(error).splitlines()[0]
        else:
            for one in request["setup"]:
                connection.execute(one)
            answer["results"] = [connection.execute(one).fetchall() for one in request["queries"]]
    json.dump(answer, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(_main())
