"""The readers of other projects that are not Python: programs in this folder, built once and kept in the cache."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from cdc_lib.errors import ConfigError
from spark_jobs.runtime.jars import cache_dir, jar_paths, locked_jars, one_at_a_time
from tests.harness.processes.go_programs import GoFailed, built

HERE = Path(__file__).parent
GO_SOURCE = HERE / "go_mysql"
JAVA_SOURCE = HERE / "BinlogReader.java"
JARS = "binlog-connector"
"""Name of the connector in ``jars.lock``."""


class ReaderMissing(Exception):
    """A reader is not on this machine and could not be built; the message says why."""


def go_mysql() -> list[str]:
    """Return the command that reads with go-mysql's BinlogSyncer.

    Raises:
        ReaderMissing: Go is missing, or modules could not be fetched.
    """
    version = _digest(GO_SOURCE / name for name in ("main.go", "go.mod", "go.sum"))
    try:
        return [str(built("gomysql", version, "the reader with go-mysql", ["install", "."], GO_SOURCE))]
    except GoFailed as error:
        raise ReaderMissing(f"it could not be built: {error}") from error


def go_mysql_version() -> str:
    """Return the version in ``go.mod``."""
    version = re.search(r"/go-mysql v(\S+)", (GO_SOURCE / "go.mod").read_text())
    assert version, "go.mod names no go-mysql"
    return version[1]


def binlog_connector() -> list[str]:
    """Return the command that reads with mysql-binlog-connector-java.

    Raises:
        ReaderMissing: the Java compiler is missing, or the jars could not be fetched.
    """
    try:
        jars = [str(path) for path in jar_paths([JARS])]
    except ConfigError as error:
        raise ReaderMissing(f"its jars could not be had: {error}") from error
    classes = _compiled(jars)
    return [_java(), "-cp", os.pathsep.join([str(classes), *jars]), JAVA_SOURCE.stem]


def binlog_connector_version() -> str:
    """Return the version in ``jars.lock``."""
    return next(jar.version for jar in locked_jars() if jar.name == JARS)


def _compiled(jars: list[str]) -> Path:
    """Return the folder of classes; starts the compiler as a module, for a Java without the ``javac`` command."""
    target = cache_dir() / f"binlog-connector-reader-{_digest([JAVA_SOURCE])}"
    cache_dir().mkdir(parents=True, exist_ok=True)
    with one_at_a_time(cache_dir() / ".binlog-connector-reader.lock"):
        if not target.is_dir():
            with tempfile.TemporaryDirectory(dir=cache_dir(), prefix=".binlog-connector-reader-") as scratch:
                classes = Path(scratch) / "classes"
                command = [_java(), "--module", "jdk.compiler/com.sun.tools.javac.Main", "-cp", os.pathsep.join(jars)]
                _run([*command, "-d", str(classes), str(JAVA_SOURCE)])
                classes.rename(target)
    return target


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise ReaderMissing("there is no Java") from error
    if done.returncode != 0:
        raise ReaderMissing(f"it could not be compiled: {(done.stdout + done.stderr).strip()[-1500:]}")


def _java() -> str:
    return str(Path(os.environ["JAVA_HOME"]) / "bin" / "java") if os.environ.get("JAVA_HOME") else "java"


def _digest(files: Iterable[Path]) -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:12]
