"""The class data sharing archive that Spark jobs map into memory instead of loading the classes from Spark's jars.

``python -m spark_jobs.runtime.build_class_archive`` builds it. It is valid for one Java and one class path: with another one,
or without the file, Java starts without it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

MADE_BY = "CDC_SPARK_ARCHIVE"
"""Environment variable: the file that Java writes when it exits; set only while the archive is built."""

_NO_LOG = ("-Xlog:cds*=off", "-Xlog:class+path=off")


def java_path() -> str | None:
    """Return the Java that Spark starts, with symbolic links resolved; None without Java."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    return os.path.realpath(java) if java else None


def archive_of(jars: Sequence[Path]) -> Path | None:
    """Return the path of the archive for a class path in this environment, which may not exist; None without Java.

    Args:
        jars: class path before Spark's own jars.
    """
    java = java_path()
    if java is None:
        return None
    identity = "\n".join((java, version("pyspark"), *map(str, jars)))
    return Path(sys.prefix) / "spark-classes" / f"{hashlib.sha256(identity.encode()).hexdigest()[:16]}.jsa"


def archive_options(jars: Sequence[Path]) -> list[str]:
    """Return the options with which Java uses the archive, or writes it; empty without an archive."""
    if target := os.environ.get(MADE_BY):
        return [f"-XX:ArchiveClassesAtExit={target}", *_NO_LOG]
    archive = archive_of(jars)
    if archive is None or not archive.is_file():
        return []
    return [f"-XX:SharedArchiveFile={archive}", *_NO_LOG]
