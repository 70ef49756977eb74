"""Plain MERGE INTO statements in the Java process of a Spark server, beside the merge jobs that it runs.

``python -m tests.bench.lake.plain`` is the server: that of ``cdc spark serve`` with one more address, which runs the statements.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import httpx
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel
from pyspark.sql import SparkSession

from cdc_lib.config import SourceConfig, load_source
from cdc_lib.lake.routing import lake_merges
from cdc_lib.merge.manifests import load_batches
from cdc_lib.model.lake_table import LakeName
from cdc_lib.store import layout
from cdc_lib.store.cuts import last_cut
from cdc_lib.store.objects.open import open_store
from spark_jobs.runtime.parallelism import cores_of, tables_at_once
from spark_jobs.runtime.session import table_session
from spark_jobs.server import __main__ as server
from spark_jobs.server.jobs import Jobs
from spark_jobs.sql import full_name
from tests.bench.usage import CommandFailed
from tests.harness.spark.server import RunningSparkServer

PATH = "/bench/plain"
_LONGEST = 1800
"""Seconds for the statements of one window."""
_COPY = (
    "CREATE TABLE {1} USING iceberg TBLPROPERTIES ('format-version' = '2', 'write.delete.mode' = 'merge-on-read', "
    "'write.update.mode' = 'merge-on-read', 'write.merge.mode' = 'merge-on-read') AS SELECT * FROM {0}"
)

_OTHER = "SELECT count(*) FROM ((TABLE {0} EXCEPT ALL TABLE {1}) UNION ALL (TABLE {1} EXCEPT ALL TABLE {0}))"


class PlainRequest(BaseModel):
    """What to run.

    Args:
        source_file: of the source.
        what: ``copy`` the lake tables, so that both ways begin with the same rows; ``merge`` a window; ``check`` that the copies equal the
            lake tables.
        manifest: key of the window's manifest.
    """

    source_file: Path
    what: Literal["copy", "merge", "check"]
    manifest: str = ""


class ServerWithPlain(RunningSparkServer):
    """A Spark server that also runs plain statements in its Java process."""

    def command(self) -> Sequence[str]:
        """Return its command, without the options."""
        return [sys.executable, "-m", "tests.bench.lake.plain", "--socket", str(self.socket)]

    def copy(self, source_file: Path) -> None:
        """Copy the lake tables of a source."""
        self._asked(PlainRequest(source_file=source_file, what="copy"))

    def merge(self, source_file: Path, manifest: str) -> float:
        """Merge a window into the copies, as many at once as the merge job does; return the seconds."""
        return self._asked(PlainRequest(source_file=source_file, what="merge", manifest=manifest))

    def check(self, source_file: Path) -> None:
        """Check that both ways left the same rows."""
        self._asked(PlainRequest(source_file=source_file, what="check"))

    def _asked(self, what: PlainRequest) -> float:
        with httpx.Client(transport=httpx.HTTPTransport(uds=str(self.socket)), timeout=_LONGEST) as client:
            answer = client.post(f"http://localhost{PATH}", json=what.model_dump(mode="json"))
        if answer.is_error:
            raise CommandFailed(f"{answer.status_code} {answer.text}: {self.log.read_text()[-3000:]}")
        return float(answer.json())


def run(spark: SparkSession, asked: PlainRequest) -> float:
    """Run what is asked for, and return the seconds."""
    config = load_source(asked.source_file)
    files = _files(config, asked.manifest) if asked.what == "merge" else {}
    local = threading.local()

    def work(name: LakeName) -> None:
        if not hasattr(local, "session"):
            local.session = table_session(spark, config)
        names = full_name(name), _copy_of(name)
        match asked.what:
            case "copy":
                local.session.sql(_COPY.format(*names))
            case "merge":
                _merge(local.session, _copy_of(name), files[name])
            case "check":
                [row] = local.session.sql(_OTHER.format(*names)).collect()
                if row[0]:
                    raise AssertionError(f"{row[0]} rows of {name} differ")

    names = list(files) or [lake.name for lake in lake_merges(config, _tables(config))]
    began = time.monotonic()
    with ThreadPoolExecutor(tables_at_once(config.merge, cores_of(spark))) as pool:
        list(pool.map(work, names))
    return time.monotonic() - began


def _tables(config: SourceConfig) -> list[str]:
    """Return the tables that the lake has."""
    cut = last_cut(open_store(config.store), config.source)
    return [one.table for one in cut.tables] if cut is not None else []


def _copy_of(name: LakeName) -> str:
    return full_name(replace(name, name=f"{name.name}_plain"))


def _files(config: SourceConfig, manifest: str) -> Mapping[LakeName, Sequence[str]]:
    """Return the URLs of a window's files by the lake table."""
    store = open_store(config.store)
    [batch] = load_batches(store, [manifest])
    found = defaultdict(list)
    for file in batch.manifest.files:
        [lake] = lake_merges(config, [file.table])
        found[lake.name].append(store.url(layout.beside(batch.key, file.path)))
    return found


def _merge(session: SparkSession, copy: str, files: Sequence[str]) -> None:
    """Merge as Iceberg's guide shows it: one statement for changes with one row per key."""
    session.read.parquet(*files).createOrReplaceTempView("changes")
    columns = session.table(copy).columns
    values = ", ".join(f"s.{column}" for column in columns)
    session.sql(
        f"MERGE INTO {copy} AS t USING changes AS s ON t.id = s.id"
        " WHEN MATCHED AND s._op = 'd' THEN DELETE"
        f" WHEN MATCHED THEN UPDATE SET {', '.join(f't.{column} = s.{column}' for column in columns)}"
        f" WHEN NOT MATCHED AND s._op <> 'd' THEN INSERT ({', '.join(columns)}) VALUES ({values})"
    )


def _with_plain(make_app: Callable[[Jobs, str], FastAPI]) -> Callable[[Jobs, str], FastAPI]:
    def made(jobs: Jobs, token: str) -> FastAPI:
        app = make_app(jobs, token)
        spark: Any = jobs._spark

        def plain(asked: PlainRequest) -> float:
            try:
                return run(spark, asked)
            except Exception as error:
                raise HTTPException(500, str(error)) from error  # the server prints it only after the answer

        plain.__annotations__ = {"asked": PlainRequest, "return": float}
        app.add_api_route(PATH, plain, methods=["POST"])
        return app

    return made


if __name__ == "__main__":
    server.make_app = _with_plain(server.make_app)
    sys.exit(server.main())
