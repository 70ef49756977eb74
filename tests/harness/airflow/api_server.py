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
        self.prepare()
        return super().start()

    def prepare(self) -> None:
        """Do with the new database what the server needs when it starts: here nothing."""

    def read_dags(self, bundle: str = "dags-folder", **env: str) -> None:
        """Read the files of a bundle of DAGs into the database, as its DAG processor does, which has variables of its own."""
        self.airflow("dags", "reserialize", "--bundle-name", bundle, **env)

    def airflow(self, *arguments: str, **env: str) -> None:
        """Run a command of Airflow.

        Raises:
            RuntimeError: it failed.
        """
        command = [sys.executable, "-m", "airflow", *arguments]
        environment = {**os.environ, **self.env, **env}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"airflow {' '.join(arguments)} failed\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")

    def as_user(self, user: str) -> httpx.Client:
        """Return a client with a user's token."""
        return httpx.Client(base_url=self.url, headers={"Authorization": f"Bearer {self.token(user)}"}, timeout=30)

    def anonymous(self) -> httpx.Client:
        """Return a client without any."""
        return httpx.Client(base_url=self.url, timeout=30)
