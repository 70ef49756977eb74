"""The endpoint of the figures, with Airflow's own simple auth manager: who gets which sources."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from airflow.api_fastapi.app import create_auth_manager, purge_cached_app
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from fastapi.testclient import TestClient
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from cdc_airflow.metrics_app import MetricsClient, make_app
from cdc_lib.config import load_sources
from cdc_lib.merge.cut import make_cut
from cdc_lib.model.merge_plan import MergePlan, TableCut
from cdc_lib.model.table_name import TableName
from cdc_lib.store import layout
from cdc_lib.store.cuts import publish
from cdc_lib.store.objects.local import LocalStore
from tests.harness.lake.batches import at

TOKEN = "a-token-of-some-length-9f3c"
HOSTILE = TableName('x"} 1\ncdc_source_up{source="evil', "t\\")
SOURCE = """
server: {{host: db.example, user: cdc, password_env: NOT_SET_ANYWHERE}}
tables: ["shop.*"]
store: {{url: "file://{folder}/{name}"}}
lake: {{type: jdbc, uri: "jdbc:sqlite:/x/cat.db", warehouse: "file:///x/lake"}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the sources shop, which has a cut, and stock, which has nothing yet."""
    sources = tmp_path / "sources"
    sources.mkdir()
    for name in ("shop", "stock"):
        (sources / f"{name}.yaml").write_text(SOURCE.format(folder=tmp_path, name=name))
    store, now = LocalStore(tmp_path / "shop"), datetime.now(UTC)
    cut = TableCut(HOSTILE, f"lake.{HOSTILE}", 1, 1)
    publish(store, make_cut(MergePlan("shop", 1, "m", at(4), at(4), ()), [], [cut], None, now, 1.0))
    return sources


@pytest.fixture
def client(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    monkeypatch.setenv("CDC_SOURCES", str(folder))
    monkeypatch.setenv("AIRFLOW__API_AUTH__JWT_SECRET", "s" * 64)
    monkeypatch.setenv("AIRFLOW__CDC__METRICS_TOKEN", TOKEN)
    monkeypatch.setenv("AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS", "False")
    create_auth_manager()
    with TestClient(make_app()) as client:
        yield client
    purge_cached_app()


def asked(client: TestClient, token: str | None = None) -> tuple[int, dict[str, set[str]]]:
    """Return the status, and of each source the names of its samples."""
    headers = {"Accept": "application/openmetrics-text"} | ({"Authorization": f"Bearer {token}"} if token else {})
    answer = client.get("/", headers=headers)
    if answer.status_code != 200:
        assert "cdc_" not in answer.text
        return answer.status_code, {}
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(answer.text):
        for one in family.samples:
            state = f"{one.name}={one.value:.0f}" if one.name == "cdc_source_up" else one.name
            found.setdefault(one.labels["source"], set()).add(state)
    return 200, found


def test_nobody_without_a_log_in_gets_an_answer(client: TestClient, monkeypatch: pytest.MonkeyPatch):
    """Neither with a wrong token, nor with an empty one where none is set."""
    assert asked(client) == (401, {})
    assert asked(client, TOKEN + "x")[0] == 403
    monkeypatch.setenv("AIRFLOW__CDC__METRICS_TOKEN", "")
    assert asked(client) == (401, {})
    assert asked(client, TOKEN)[0] == 403
    assert client.get("/", headers={"Authorization": "Bearer "}).status_code == 401
    assert client.get("/openapi.json").status_code == 404
    assert client.post("/").status_code == 405


def test_the_token_sees_every_source(client: TestClient):
    """What is not known of the one that has nothing is left out; a hostile name makes no source of its own."""
    status, found = asked(client, TOKEN)
    assert status == 200
    assert found.keys() == {"shop", "stock"}
    assert found["stock"] == {"cdc_source_up=1"}
    assert {"cdc_source_up=1", "cdc_cut_age_seconds", "cdc_rows_merged_total"} <= found["shop"]


@pytest.mark.parametrize(("role", "seen"), [("viewer", ["shop", "stock"]), ("admin", ["shop", "stock"]), (None, [])])
def test_a_user_sees_the_sources_whose_dags_the_user_may_read(
    client: TestClient, folder: Path, role: str | None, seen: list[str]
):
    """As Airflow's auth manager says. Tokens of users are asked for at a whole Airflow, in the integration tests."""
    found = MetricsClient(SimpleAuthManagerUser(username="somebody", role=role)).may_read(list(load_sources(folder)))
    assert [one.source for one in found] == seen


def test_a_source_that_cannot_be_read_hides_no_other(client: TestClient, folder: Path, tmp_path: Path):
    """A wrong file, and a store with a damaged document: no message of theirs is in the answer."""
    (folder / "wrong.yaml").write_text("server: {prot: 1}\n")
    LocalStore(tmp_path / "stock").put(layout.cursor_key("stock", "drain"), b"not JSON")
    _, found = asked(client, TOKEN)
    assert found["wrong"] == found["stock"] == {"cdc_source_up=0"}
    assert "cdc_source_up=1" in found["shop"]
