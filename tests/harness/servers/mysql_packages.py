"""Finds MySQL's programs: on PATH, else in Debian's packages, or the server of an older version in a jar."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
import tempfile
import zipfile
from pathlib import Path

from spark_jobs.runtime.jars import cache_dir, jar_paths, one_at_a_time
from tests.harness.servers.versions import MYSQL_JAR_LIBRARIES, MYSQL_JARS, MYSQL_PACKAGES, chosen


def command(program: str) -> list[str]:
    """Return the command of a client program of MySQL, such as ``mysql`` or ``mysqlbinlog``."""
    if path := on_path(program):
        return [path]
    return MYSQL_PACKAGES.command(program)


def server_command() -> list[str]:
    """Return the command of ``mysqld``, with the options for the folders of its files.

    Raises:
        UnknownVersion: the environment asks for a version that cannot be started.
        PackagesNotFetched: the packages could not be fetched.
        ConfigError: the jar could not be fetched.
    """
    version = chosen("mysql")
    if version is None and (path := on_path("mysqld")):
        return [path, "--no-defaults"]
    if version in MYSQL_JARS:
        root = _from_jar(version)
        loader = MYSQL_JAR_LIBRARIES.loader(root / "lib")
        own_files = [f"--basedir={root}", f"--lc-messages-dir={root}/share"]
        return [*loader, str(root / "bin" / "mysqld"), "--no-defaults", *own_files]
    root = MYSQL_PACKAGES.installation()
    return [
        *MYSQL_PACKAGES.command("mysqld"),
        "--no-defaults",
        f"--basedir={root}/usr",
        f"--lc-messages-dir={root}/usr/share/mysql",
        f"--character-sets-dir={root}/usr/share/mysql/charsets",
        f"--plugin-dir={root}/usr/lib/mysql/plugin",
    ]


def on_path(program: str) -> str | None:
    """Return MySQL's own program; MariaDB installs some under the same names."""
    path = shutil.which(program)
    if path and "MariaDB" in subprocess.run([path, "--version"], capture_output=True, text=True).stdout:
        return None
    return path


def _from_jar(version: str) -> Path:
    """Return the folder of the unpacked server, with ``bin``, ``lib`` and ``share``."""
    target = cache_dir() / f"mysql-{version}"
    if target.is_dir():
        return target
    (jar,) = jar_paths([MYSQL_JARS[version]])
    with one_at_a_time(cache_dir() / f".mysql-{version}.lock"):
        if not target.is_dir():
            with tempfile.TemporaryDirectory(dir=cache_dir(), prefix=f".mysql-{version}-") as scratch:
                root = Path(scratch) / "root"
                with (
                    zipfile.ZipFile(jar) as archive,
                    archive.open("mysql-Linux-amd64.tar.gz") as packed,
                    tarfile.open(fileobj=packed) as server,
                ):
                    server.extractall(root, filter="data")
                root.rename(target)
    return target
