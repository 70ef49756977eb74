"""A real MySQL server, its client and its mysqlbinlog."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import ClassVar

from tests.harness.servers import mysql_packages
from tests.harness.servers.process import ServerDidNotStart
from tests.harness.servers.sql import CAPTURE_SETTINGS, SMALL_AND_FAST, Settings, SqlServer, run_as_root


class MySqlServer(SqlServer):
    """MySQL with GTIDs: 9.7, or the version that ``CDC_TEST_MYSQL`` names."""

    flavor = "mysql"
    cdc_privileges = "SELECT, REPLICATION SLAVE, REPLICATION CLIENT, XA_RECOVER_ADMIN"
    default_settings: ClassVar[Settings] = {
        **CAPTURE_SETTINGS,
        **SMALL_AND_FAST,
        "gtid-mode": "ON",
        "enforce-gtid-consistency": "ON",
        "loose-innodb-redo-log-capacity": "64M",  # since 8.0.30
        "mysqlx": "OFF",
        "secure-file-priv": "",
    }

    def client_command(self, program: str) -> list[str]:
        """Return the command of ``mysql``, ``mysqlbinlog``, ``mysqldump`` and the like of 9.7, without arguments."""
        return mysql_packages.command(program)

    def _server_command(self) -> list[str]:
        return [*mysql_packages.server_command(), *run_as_root()]

    def _initialize(self, data_dir: Path) -> None:
        command = [*self._server_command(), "--initialize-insecure", f"--datadir={data_dir}"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise ServerDidNotStart(f"mysqld --initialize-insecure failed: {done.stderr.strip()[-2000:]}")
        (data_dir / "auto.cnf").unlink(missing_ok=True)  # each server makes a new UUID
