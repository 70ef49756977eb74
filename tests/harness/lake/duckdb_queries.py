"""Queries of DuckDB's Iceberg reader, in a process of its own, so that a test can run any version of DuckDB.

``CDC_TEST_DUCKDB`` names a version: it and its extensions are installed from the Python package index, into the folder of downloads.
Without it, the installed DuckDB downloads its extension from DuckDB's server.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

EXTENSIONS = ("avro", "iceberg")
FOR_CATALOGS = ("httpfs", *EXTENSIONS)
"""What DuckDB needs to ask an Iceberg REST catalog."""
PACKAGED = ("1.4.4", "1.5.5")
"""Versions whose extensions are in the Python package index; no newer one has them there."""
INSTALLED = ""
"""The version of the environment."""
ROOT = Path(__file__).parents[3]


class ExtensionMissing(Exception):
    """The Iceberg extension of this version of DuckDB cannot be installed here; the text says why."""


def versions() -> list[str]:
    """Return the versions that tests compare: CDC_TEST_DUCKDB alone; else the packaged ones, and the installed one if its extension loads.

    Raises:
        ExtensionMissing: that of CDC_TEST_DUCKDB cannot be installed.
    """
    if chosen := os.environ.get("CDC_TEST_DUCKDB"):
        installed(chosen)
        return [chosen]
    try:
        query(None, [])
    except ExtensionMissing:
        return list(PACKAGED)
    return [*PACKAGED, INSTALLED]


def installed(version: str, extensions: Sequence[str] = EXTENSIONS) -> Path | None:
    """Install a version of DuckDB and its extensions, once; returns the folder. None for the version of the environment."""
    if not version:
        return None
    more = [name for name in extensions if name not in EXTENSIONS]
    name = "-".join([version, *more, "python{}.{}".format(*sys.version_info)])
    folder = Path(os.environ.get("CDC_CACHE", Path.home() / ".cache" / "lakecdc")) / "duckdb" / name
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
    answer = _asked(folder, {"queries": list(queries), "setup": list(setup), "extensions": list(extensions)})
    return answer["version"], answer["results"]


def arrow_tables(folder: Path | None, queries: Sequence[str], setup: Sequence[str] = ()) -> list[pa.Table | str]:
    """Return the rows of each query as an Arrow table, with all types; of a query that DuckDB refuses, its error.

    Args:
        folder: of :func:`installed`.
        queries: as for :func:`query`.
        setup: statements before them.

    Raises:
        ExtensionMissing: the extension cannot be loaded.
    """
    with tempfile.TemporaryDirectory() as into:
        request = {"queries": list(queries), "setup": list(setup), "extensions": EXTENSIONS, "into": into}
        results = _asked(folder, request)["results"]
        return [error or _read(Path(into) / str(number)) for number, error in enumerate(results)]


def _read(path: Path) -> pa.Table:
    with pa.OSFile(str(path)) as file:
        return pa.ipc.open_stream(file).read_all()


def _asked(folder: Path | None, request: dict[str, Any]) -> dict[str, Any]:
    """Return what :func:`_main` answers in a process with this version of DuckDB."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(str(one) for one in (folder, ROOT) if one)}
    text = json.dumps({"into": "", **request, "folder": str(folder) if folder else ""})
    command = [sys.executable, "-m", "tests.harness.lake.duckdb_queries"]
    done = subprocess.run(command, cwd=ROOT, env=environment, input=text, capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(f"DuckDB failed: {done.stderr[-4000:]}")
    answer: dict[str, Any] = json.loads(done.stdout)
    if answer["missing"]:
        raise ExtensionMissing(f"DuckDB {answer['version']}: {answer['missing']}")
    return answer


def _written(connection: Any, query: str, path: Path) -> str:
    """Write the result of a query as a stream of Arrow; returns the error if DuckDB refuses it."""
    import duckdb

    try:
        done = connection.execute(query)
        # DuckDB 1.4 has the first name, 2.0 the second.
        result = (done.fetch_record_batch if hasattr(done, "fetch_record_batch") else done.to_arrow_reader)().read_all()
    except duckdb.Error as error:
        return str(error)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, result.schema) as stream:
        stream.write_table(result)
    return ""


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
            answer["results"] = [
                _written(connection, one, Path(request["into"]) / str(number))
                if request["into"]
                else connection.execute(one).fetchall()
                for number, one in enumerate(request["queries"])
            ]
    json.dump(answer, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(_main())
