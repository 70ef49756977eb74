"""Real MySQL on any Debian: its packages from the unstable suite, unpacked into the cache and never installed.

apt works in a folder of its own, with the archive and the key that this machine already has and no record of what is
installed, so that everything down to the C library comes along and no root is needed. The programs are then run by
that C library's own loader.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from spark_jobs.runtime.jars import cache_dir, one_at_a_time

PACKAGES = ("mysql-server-core", "mysql-client-core")
SUITE = "sid"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


class NoMySqlHere(Exception):
    """There is no mysqld on PATH, and its packages could not be had."""


def command(program: str) -> list[str]:
    """Return how a program of MySQL, such as ``mysqld`` or ``mysqlbinlog``, is called."""
    if found := _on_path(program):
        return [found]
    root = installation()
    libraries = next(root.glob("usr/lib/*-linux-gnu"))
    loader = next(libraries.glob("ld-linux-*.so.*"))
    path = next(path for folder in ("sbin", "bin") if (path := root / "usr" / folder / program).exists())
    return [str(loader), "--library-path", str(libraries), str(path)]


def own_files_options() -> list[str]:
    """Return the options that tell ``mysqld`` where its files are; none when it stands on PATH."""
    if _on_path("mysqld"):
        return []
    root = installation()
    return [
        f"--basedir={root}/usr",
        f"--lc-messages-dir={root}/usr/share/mysql",
        f"--character-sets-dir={root}/usr/share/mysql/charsets",
        f"--plugin-dir={root}/usr/lib/mysql/plugin",
    ]


def installation() -> Path:
    """Return the folder with the unpacked packages, fetching them the first time.

    Raises:
        NoMySqlHere: apt is missing or could not fetch them.
    """
    target = cache_dir() / f"mysql-{SUITE}"
    if target.is_dir():
        return target
    cache_dir().mkdir(parents=True, exist_ok=True)
    with one_at_a_time(cache_dir() / ".mysql.lock"):
        if not target.is_dir():
            with tempfile.TemporaryDirectory(dir=cache_dir(), prefix=".mysql-") as scratch:
                _unpack(_download(Path(scratch)), Path(scratch) / "root")
                (Path(scratch) / "root").rename(target)
    return target


def _on_path(program: str) -> str | None:
    """Return MySQL's own program; MariaDB installs some under the same names."""
    found = shutil.which(program)
    if found and "MariaDB" in subprocess.run([found, "--version"], capture_output=True, text=True).stdout:
        return None
    return found


def _download(scratch: Path) -> list[Path]:
    archive = _archive_address()
    for folder in ("state/lists/partial", "cache/archives/partial", "empty"):
        (scratch / folder).mkdir(parents=True)
    (scratch / "status").touch()
    (scratch / "sources.list").write_text(f"deb [signed-by={KEYRING}] {archive} {SUITE} main\n")
    (scratch / "apt.conf").write_text(
        f'Dir::Etc::sourcelist "{scratch}/sources.list";\n'
        f'Dir::Etc::sourceparts "{scratch}/empty";\n'
        f'Dir::Etc::preferencesparts "{scratch}/empty";\n'
        f'Dir::State "{scratch}/state";\n'
        f'Dir::State::status "{scratch}/status";\n'
        f'Dir::Cache "{scratch}/cache";\n'
        'APT::Sandbox::User "root";\n'
        'APT::Install-Recommends "false";\n'
        'Acquire::Languages "none";\n'
        "#clear DPkg::Post-Invoke;\n"
    )
    _apt(scratch, "update")
    _apt(scratch, "install", "--yes", "--download-only", *PACKAGES)
    return sorted((scratch / "cache" / "archives").glob("*.deb"))


def _apt(scratch: Path, *arguments: str) -> None:
    environment = {**os.environ, "APT_CONFIG": str(scratch / "apt.conf")}
    done = subprocess.run(["apt-get", "-qq", *arguments], env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise NoMySqlHere(f"apt-get {arguments[0]} failed: {(done.stderr or done.stdout).strip()[-1500:]}")


def _archive_address() -> str:
    """Return the address of the Debian archive that this machine uses, as its own apt knows it."""
    if not shutil.which("apt-get"):
        raise NoMySqlHere("put mysqld on PATH: MySQL is fetched with apt, and there is none here")
    listed = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages"],
        capture_output=True,
        text=True,
    ).stdout
    for address in listed.split():
        if re.search(r"/debian/?$", address):
            return address
    raise NoMySqlHere("put mysqld on PATH: this machine's apt has no Debian archive to fetch MySQL from")


def _unpack(packages: list[Path], root: Path) -> None:
    root.mkdir()
    for package in packages:
        subprocess.run(["dpkg-deb", "-x", str(package), str(root)], check=True)
