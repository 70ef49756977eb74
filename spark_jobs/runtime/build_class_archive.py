"""Build the class data sharing archive of Spark jobs: ``python -m spark_jobs.runtime.build_class_archive [JARS]``, once per installation.

It holds the classes that are loaded when the SQL of merges and maintenance runs on a lake in a temporary folder.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from cdc_lib.config.source import SourceConfig
from cdc_lib.errors import CdcError, ConfigError
from spark_jobs.runtime.class_archive import MADE_BY, archive_of
from spark_jobs.runtime.jars import jar_paths
from spark_jobs.runtime.session import spark_session

STATEMENTS = Path(__file__).with_name("class_archive.sql")


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the archive for a set of jars, unless it exists."""
    parser = argparse.ArgumentParser(
        prog="python -m spark_jobs.runtime.build_class_archive", description="Let Spark jobs start sooner."
    )
    parser.add_argument(
        "jars",
        nargs="*",
        default=["iceberg", "sqlite"],
        help="iceberg sqlite (a lake in a folder, the default), iceberg s3 (a catalog elsewhere, the lake on S3) ...",
    )
    names = parser.parse_args(arguments).jars
    try:
        jars = jar_paths(names)
        if os.environ.get(MADE_BY):
            _work(jars)
        else:
            make(archive_of(jars), [sys.executable, "-m", "spark_jobs.runtime.build_class_archive", *names])
    except CdcError as error:
        print(f"spark_jobs.runtime.build_class_archive: {error}\n{error.hint}", file=sys.stderr)
        return 1
    return 0


def make(archive: Path | None, command: Sequence[str]) -> None:
    """Run a command whose JVM writes the archive; the file gets its name when it is complete.

    Raises:
        ConfigError: Java is missing, or the file could not be written.
    """
    if archive is None:
        raise ConfigError("there is no java on PATH, and no JAVA_HOME", hint="Install Java 17 or 21.")
    if archive.is_file():
        return
    archive.parent.mkdir(parents=True, exist_ok=True)
    target = archive.with_name(f"{archive.name}.{os.getpid()}")
    try:
        done = subprocess.run(command, env={**os.environ, MADE_BY: str(target)}, capture_output=True, text=True)
        if done.returncode != 0 or not target.is_file():
            raise ConfigError(
                f"Spark's classes could not be kept: {done.stderr.strip()[-1500:]}",
                hint="Look whether the folder can be written to and has 300 MB left; jobs run without, and start later.",
                file=str(archive),
            )
        target.rename(archive)
    finally:
        target.unlink(missing_ok=True)


def _work(jars: Sequence[Path]) -> None:
    with tempfile.TemporaryDirectory() as folder, spark_session(_lake(folder, jars)) as spark:
        for statement in STATEMENTS.read_text().split(";\n"):
            spark.sql(statement.replace("{catalog}", "lake")).collect()


def _lake(folder: str, jars: Sequence[Path]) -> SourceConfig:
    """Return the configuration of a lake in a folder, with all jars on the class path."""
    return SourceConfig.model_validate(
        {
            "source": "warm",
            "server": {"host": "127.0.0.1", "user": "nobody", "password_env": "UNUSED"},
            "tables": {"include": ["warm.*"]},
            "store": {"url": f"file://{folder}/store"},
            "lake": {
                "type": "jdbc",
                "catalog": "lake",
                "uri": f"jdbc:sqlite:{folder}/catalog.db",
                "warehouse": f"file://{folder}/warehouse",
            },
            "merge": {"driver_memory": "1g", "conf": {"spark.driver.extraClassPath": ":".join(map(str, jars))}},
        }
    )


if __name__ == "__main__":
    sys.exit(main())
