"""Airflow's API server and pages alone, for tests that run no task: ready sooner than all of Airflow."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Self

import httpx

from tests.harness.airflow.database import put_database
from tests.harness.airflow.one_dag_auth import CLERK
from tests.harness.airflow.standalone import ROOT, AirflowStandalone

USERS = {"viewer": "viewer", "op": "op", CLERK: "op"}
"""Users beside the administrator, and their roles."""


class ApiServer(AirflowStandalone):
    """The API server over a database of its own; DAGs are read when :meth:`read_dags` is called. No run goes on."""

    program = (sys.executable, "-m", "airflow", "api-server")
    components = ("metadatabase",)

    @classmethod
    def with_page(cls, home: Path) -> Self:
        """Return one with this project's DAGs and plugins and some users, over an empty folder of sources."""
        sources = home / "sources"
        sources.mkdir()
        env = {"CDC_SOURCES": str(sources), "CDC_TEST_PASSWORD": "not used", "PYTHONPATH": f"{ROOT}:{ROOT / 'plugins'}"}
        env["AIRFLOW__CORE__AUTH_MANAGER"] = "tests.harness.airflow.one_dag_auth.OneDagAuthManager"
        return cls(home, ROOT / "dags", ROOT / "plugins", env, users=USERS)

    def start(self) -> Self:
        """Make the database, and start."""
        put_database(self.home)
        return super().start()

    def read_dags(self) -> None:
        """Read the files of DAGs into the database, as the DAG processor does."""
        self._airflow("dags", "reserialize")

    def _airflow(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "airflow", *arguments]
        done = subprocess.run(command, env={**os.environ, **self.env}, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"airflow {' '.join(arguments)} failed\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")

    def as_user(self, user: str) -> httpx.Client:
        """Return a client with a user's token."""
        return httpx.Client(base_url=self.url, headers={"Authorization": f"Bearer {self.token(user)}"}, timeout=30)

    def anonymous(self) -> httpx.Client:
        """Return a client without any."""
        return httpx.Client(base_url=self.url, timeout=30)
