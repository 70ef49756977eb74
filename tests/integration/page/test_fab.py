"""The page with the auth manager of Flask AppBuilder, whose roles name DAGs: what most installations have."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cdc_lib.model.table_name import TableName
from cdc_lib.store.objects.local import LocalStore
from tests.harness.airflow.api_server import ApiServer
from tests.harness.airflow.page_answers import RESOURCES, ask
from tests.harness.airflow.page_source import PageSource
from tests.harness.airflow.standalone import ROOT
from tests.harness.airflow.venv import fab_provider

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

PERMISSIONS = (
    (("can_read", "menu_access"), ("DAG:cdc_shop", "DAG Runs")),
    (("can_read",), ("Website",)),
    (("can_read", "can_edit"), ("DAG:cdc_shop.snapshot",)),
    (("can_create",), ("DAG Runs",)),
)
"""Of a role that reads the DAG of one source, and runs one of its DAGs."""


class FabServer(ApiServer):
    """An API server with that auth manager, its roles, and a role for one DAG."""

    def prepare(self) -> None:
        """Make its tables, the roles and the users; the DAGs are read before, so that roles can name them."""
        self.airflow("fab-db", "migrate")
        self.airflow("sync-perm")
        self.read_dags()
        self.airflow("roles", "create", "one_dag")
        for actions, resources in PERMISSIONS:
            self.airflow("roles", "add-perms", "one_dag", "-a", *actions, "-r", *resources)
        for user, role in (("admin", "Admin"), ("viewer", "Viewer"), ("op", "Op"), ("clerk", "one_dag")):
            names = ("-u", user, "-e", f"{user}@example.com", "-f", user, "-l", user)
            self.airflow("users", "create", *names, "-r", role, "-p", self.password)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FabServer]:
    home = tmp_path_factory.mktemp("fab")
    for name in ("shop", "stock"):
        PageSource(
            home / "sources", LocalStore(home / "stores" / name), name, tables=[TableName(name, "parts")]
        ).write()
    env = {
        "CDC_SOURCES": str(home / "sources"),
        "CDC_TEST_PASSWORD": "not used",
        "PYTHONPATH": f"{ROOT}:{ROOT / 'plugins'}:{fab_provider()}",
        "AIRFLOW__CORE__AUTH_MANAGER": "airflow.providers.fab.auth_manager.fab_auth_manager.FabAuthManager",
    }
    with FabServer(home, ROOT / "dags", ROOT / "plugins", env) as server:
        yield server


@pytest.mark.parametrize(
    ("user", "sources", "actions"),
    [("viewer", {"shop", "stock"}, set()), ("op", {"shop", "stock"}, None), ("clerk", {"shop"}, {"cdc_shop.snapshot"})],
)
def test_a_role_sees_and_runs_the_dags_that_it_names(
    server: FabServer, user: str, sources: set[str], actions: set[str] | None
):
    with server.as_user(user) as client:
        assert {one["source"] for one in ask(client, "/sources")["sources"]} == sources
        for name in ("shop", "stock"):
            for part in RESOURCES:
                ask(client, f"/sources/cdc_{name}{part}", 200 if name in sources else 403)
        asked = {one["dag_id"] for one in ask(client, "/sources/cdc_shop/actions")["actions"]}
        assert asked == actions if actions is not None else {"cdc_shop", "cdc_shop.rewind"} <= asked
