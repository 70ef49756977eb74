"""Servers from Debian's packages on any Debian: unpacked into the cache and never installed.

apt works in a separate folder, with the archive and the key that this machine already has and no record of what is
installed, so that everything down to the C library comes along and no root is needed. The programs are then run by
that C library's own loader.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from spark_jobs.runtime.jars import cache_dir, one_at_a_time

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


class PackagesNotFetched(Exception):
    """The server is not on PATH, and its packages could not be fetched."""


@dataclass(frozen=True, slots=True)
class DebianPackages:
    """Packages with all that they depend on.

    Args:
        folder: name of the folder in the cache.
        suite: Debian's suite, such as ``sid``.
        names: the packages.
    """

    folder: str
    suite: str
    names: tuple[str, ...]

    def installation(self) -> Path:
        """Return the folder with the unpacked packages, fetching them the first time.

        Raises:
            PackagesNotFetched: apt is missing or could not fetch them.
        """
        target = cache_dir() / self.folder
        if target.is_dir():
            return target
        cache_dir().mkdir(parents=True, exist_ok=True)
        with one_at_a_time(cache_dir() / f".{self.folder}.lock"):
            if not target.is_dir():
                with tempfile.TemporaryDirectory(dir=cache_dir(), prefix=f".{self.folder}-") as scratch:
                    _unpack(self._download(Path(scratch)), Path(scratch) / "root")
                    (Path(scratch) / "root").rename(target)
        return target

    def command(self, program: str) -> list[str]:
        """Return the command of one of the programs, without arguments."""
        root = self.installation()
        path = next(path for folder in ("sbin", "bin") if (path := root / "usr" / folder / program).exists())
        return [*self.loader(), str(path)]

    def loader(self, *more_libraries: Path) -> list[str]:
        """Return the command that runs a program with these libraries; the program follows it.

        Args:
            more_libraries: more folders of libraries.
        """
        root = self.installation()
        # Suites up to bookworm have libraries in /lib and in /usr/lib.
        folders = [*root.glob("usr/lib/*-linux-gnu"), *root.glob("lib/*-linux-gnu")]
        loader = next(path for folder in folders for path in folder.glob("ld-linux-*.so.*"))
        return [str(loader), "--library-path", ":".join(map(str, [*folders, *more_libraries]))]

    def _download(self, scratch: Path) -> list[Path]:
        archive = _archive_address()
        for folder in ("state/lists/partial", "cache/archives/partial", "empty"):
            (scratch / folder).mkdir(parents=True)
        (scratch / "status").touch()
        (scratch / "sources.list").write_text(f"deb [signed-by={KEYRING}] {archive} {self.suite} main\n")
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
        _apt(scratch, "install", "--yes", "--download-only", *self.names)
        return sorted((scratch / "cache" / "archives").glob("*.deb"))


def _apt(scratch: Path, *arguments: str) -> None:
    environment = {**os.environ, "APT_CONFIG": str(scratch / "apt.conf")}
    done = subprocess.run(["apt-get", "-qq", *arguments], env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise PackagesNotFetched(f"apt-get {arguments[0]} failed: {(done.stderr or done.stdout).strip()[-1500:]}")


def _archive_address() -> str:
    """Return the address of the Debian archive that this machine uses, as its own apt knows it."""
    if not shutil.which("apt-get"):
        raise PackagesNotFetched("put the server on PATH: it is fetched with apt, and there is none here")
    listed = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages"],
        capture_output=True,
        text=True,
    ).stdout
    for address in listed.split():
        if re.search(r"/debian/?$", address):
            return address
    raise PackagesNotFetched("put the server on PATH: this machine's apt has no Debian archive to fetch it from")


def _unpack(packages: list[Path], root: Path) -> None:
    root.mkdir()
    for package in packages:
        subprocess.run(["dpkg-deb", "-x", str(package), str(root)], check=True)
