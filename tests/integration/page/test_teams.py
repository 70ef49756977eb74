"""A real Airflow with teams: each bundle of DAGs is a team's, and the folder of the API server has the sources of all."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from cdc_airflow.airflow_versions import IS_3_2
from cdc_lib.model.table_name import TableName
from cdc_lib.store.objects.local import LocalStore
from tests.harness.airflow.api_server import ApiServer
from tests.harness.airflow.page_answers import RESOURCES, ask
from tests.harness.airflow.page_source import PageSource
from tests.harness.airflow.standalone import ROOT
from tests.harness.servers import S3Server

pytestmark = pytest.mark.skipif(not IS_3_2, reason="Airflow 3.1 has no teams")

OF = {"red": "orders", "blue": "invoices"}
"""The source of each team."""
USERS = {"rita": "op:red", "ben": "viewer:blue", "both": "op:red|blue"}


class TeamsServer(ApiServer):
    """An API server with the teams, which it asks for when it starts."""

    def prepare(self) -> None:
        """Make the teams."""
        for team in OF:
            self.airflow("teams", "create", team)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """The source ``unread`` is one whose DAG no processor has read yet."""
    home = tmp_path_factory.mktemp("teams")
    for team in OF:
        (home / team / "sources").mkdir(parents=True)
        shutil.copy(ROOT / "dags" / "cdc_sources.py", home / team)
    bundles = [
        {
            "name": team,
            "classpath": "airflow.dag_processing.bundles.local.LocalDagBundle",
            "kwargs": {"path": str(home / team)},
            "team_name": team,
        }
        for team in OF
    ]
    env = {
        "CDC_SOURCES": str(home / "sources"),
        "CDC_TEST_PASSWORD": "not used",
        "AIRFLOW__CORE__MULTI_TEAM": "True",
        "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST": json.dumps(bundles),
    }
    with S3Server(home / "s3") as s3, TeamsServer(home, ROOT / "dags", ROOT / "plugins", env, users=USERS) as server:
        login = {"login": s3.access_key, "password": s3.secret_key, "team_name": "red"}
        server.request("POST", "/api/v2/connections", {"connection_id": "red_keys", "conn_type": "cdc_store", **login})
        for team, name in OF.items():
            written(home, name, s3)
            shutil.copy(home / "sources" / f"{name}.yaml", home / team / "sources")
        for team in OF:
            server.read_dags(team, CDC_SOURCES=str(home / team / "sources"))
        written(home, "unread", s3)
        yield server


def written(home: Path, name: str, s3: S3Server) -> None:
    """Write a source, that of the team ``red`` with a store whose keys are those of a connection of the team."""
    folder = LocalStore(home / "stores" / name)
    source = PageSource(home / "sources", folder, name, tables=[TableName("shop", name)], merged=1).write()
    if name == OF["red"]:
        bucket = s3.make_bucket()
        for entry in folder.list(""):
            s3.client().put_object(Bucket=bucket, Key=entry.key, Body=folder.root.joinpath(entry.key).read_bytes())
        store = {"url": f"s3://{bucket}", "endpoint_url": s3.endpoint, "connection": "red_keys", "region": s3.region}
        replace(source, changed={"store": store}).write_file()


def listed(client: httpx.Client) -> set[str]:
    return {one["source"] for one in ask(client, "/sources")["sources"]}


def measured(client: httpx.Client) -> set[str]:
    text = client.get("/cdc-metrics/").text
    return {name for name in (*OF.values(), "unread") if f'cdc_source_up{{source="{name}"}} 1' in text}


@pytest.mark.parametrize("seen", [listed, measured])
def test_a_user_sees_the_sources_of_the_own_teams(server: ApiServer, seen: Callable[[httpx.Client], set[str]]):
    """In the list of the page, and among the figures for Prometheus."""
    found = {}
    for user in ("rita", "ben", "both"):
        with server.as_user(user) as client:
            found[user] = seen(client)
    assert found == {"rita": {"orders"}, "ben": {"invoices"}, "both": {"orders", "invoices"}}


def test_no_part_of_another_team_s_source_is_answered(server: ApiServer):
    with server.as_user("rita") as red, server.as_user("both") as both:
        for part in RESOURCES:
            ask(red, f"/sources/cdc_invoices{part}", 403)
            ask(red, f"/sources/cdc_unread{part}", 403)
            ask(red, f"/sources/cdc_orders{part}")
            ask(both, f"/sources/cdc_invoices{part}")


def test_actions_are_those_of_the_role_in_the_own_teams(server: ApiServer):
    with server.as_user("rita") as operator, server.as_user("ben") as viewer:
        assert "cdc_orders.snapshot" in {
            one["dag_id"] for one in ask(operator, "/sources/cdc_orders/actions")["actions"]
        }
        assert ask(viewer, "/sources/cdc_invoices/actions")["actions"] == []
