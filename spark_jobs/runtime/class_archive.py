"""The file of loaded Java classes that each Spark job maps, so that it need not load them from Spark's jars.

``python -m spark_jobs.runtime.build_class_archive`` makes it. It is of use to one Java and one class path: where either is another, or nobody made
it, Java starts without.
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
"""Environment: the file that Java is to write when it ends; only while the archive is made."""

_QUIET = ("-Xlog:cds*=off", "-Xlog:class+path=off")


def java_path() -> str | None:
    """Return the Java that Spark starts, symbolic links followed; None where there is none."""
    home = os.environ.get("JAVA_HOME")
    found = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    return os.path.realpath(found) if found else None


def archive_of(jars: Sequence[Path]) -> Path | None:
    """Return where the archive for a class path lies, or would lie: in this environment; None without a Java.

    Args:
        jars: what is on the class path before Spark's own jars.
    """
    java = java_path()
    if java is None:
        return None
    told = "\n".join((java, version("pyspark"), *map(str, jars)))
    return Path(sys.prefix) / "spark-classes" / f"{hashlib.sha256(told.encode()).hexdigest()[:16]}.jsa"


def archive_options(jars: Sequence[Path]) -> list[str]:
    """Return the options with which Java uses the archive, or writes it; none where there is no archive."""
    if target := os.environ.get(MADE_BY):
        return [f"-XX:ArchiveClassesAtExit={target}", *_QUIET]
    archive = archive_of(jars)
    if archive is None or not archive.is_file():
        return []
    return [f"-XX:SharedArchiveFile={archive}", *_QUIET]
