"""What the page's server answers, to whom, and what it does when stores and names are not as one would wish."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import httpx
import pytest
import yaml

from cdc_lib.model.table_name import TableName
from tests.harness.airflow.api_server import ApiServer
from tests.harness.airflow.one_dag_auth import CLERK
from tests.harness.airflow.page_answers import RESOURCES, ask
from tests.harness.airflow.page_source import PageSource

Make = Callable[..., PageSource]

HOSTILE = (
    TableName("<script>alert(1)</script>", "${jndi:ldap://x}"),
    TableName("../../etc", "passwd"),
    TableName("a`b", '" onload="x'),
)


@pytest.fixture(scope="module")
def shop(make: Make, server: ApiServer) -> PageSource:
    """A source with a bit of everything, whose DAGs Airflow knows."""
    changed = {"verify": {"schedule": "@daily", "tables": ["*.*"], "cover_every": "7d"}}
    tables = [TableName("shop", name) for name in ("orders", "items", "carts")]
    facts = {"windows": 5, "merged": 3, "in_flight": 2, "drained": 1, "drift": tables[1:2], "quarantined": tables[2:],
             "keeps": timedelta(hours=5)}  # fmt: skip
    source = make("shop", tables=tables, compared=2, failover=True, changed=changed, **facts)
    server.read_dags()
    return source


@pytest.fixture(scope="module")
def viewer(server: ApiServer, shop: PageSource) -> Iterator[httpx.Client]:
    with server.as_user("viewer") as client:
        yield client


def line(client: httpx.Client, source: PageSource) -> dict[str, Any]:
    """Return a source's line in the list."""

    def found() -> dict[str, Any] | None:
        lines = ask(client, "/sources", text=source.name)["sources"]
        return next((one for one in lines if one["dag_id"] == source.dag), None)

    return until(found)


def until(question: Callable[[], Any], seconds: float = 30) -> Any:
    """Ask until there is an answer: what was read is good for some seconds."""
    deadline = time.monotonic() + seconds
    while not (answer := question()) and time.monotonic() < deadline:
        time.sleep(0.3)
    return answer


@pytest.mark.parametrize("path", ["/sources", "/page.js", *(f"/sources/cdc_shop{one}" for one in RESOURCES)])
def test_nobody_reads_anything_without_logging_in(server: ApiServer, shop: PageSource, path: str):
    """Neither without a token nor with a wrong one."""
    with server.anonymous() as client:
        assert client.get(f"/cdc/page{path}").status_code == 401
        wrong = client.get(f"/cdc/page{path}", headers={"Authorization": "Bearer x.y.z"})
        assert wrong.status_code in {401, 403}


@pytest.mark.parametrize("path", ["/openapi.json", "/docs", "/redoc"])
def test_the_page_serves_no_openapi_document(server: ApiServer, path: str):
    with server.anonymous() as client:
        assert client.get(f"/cdc/page{path}").status_code == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_the_page_changes_nothing(viewer: httpx.Client, method: str):
    """It has no other method than GET."""
    for path in ("/sources", *(f"/sources/cdc_shop{one}" for one in RESOURCES)):
        assert viewer.request(method, f"/cdc/page{path}").status_code == 405


def test_a_viewer_sees_the_state_of_a_source(viewer: httpx.Client, shop: PageSource):
    """In the list and on its page."""
    found = line(viewer, shop)
    assert found["state"] == "failed"
    assert "shop.items has drift: 3 missing, 1 extra, 2 different, as of" in found["what"]
    assert found["lag_bytes"] == 4000  # of this epoch alone: from the failover on
    assert 0 < found["retention_left_seconds"] < 5 * 3600
    assert (found["tables"], found["quarantined"], found["in_flight"], found["epoch"]) == (3, 1, 2, 2)
    detail = ask(viewer, "/sources/cdc_shop")
    assert detail["drain"]["position"] == "binlog.000001:5004"
    assert not detail["drain"]["has_begun_only"]
    assert detail["catch_up_seconds"] == 120  # 3000 bytes are not drained
    assert detail["lake"]["position"] == "binlog.000001:3004"
    assert "standby" in detail["drain"]["server"]
    assert [one["kind"] for one in detail["epochs"]] == ["failover"]
    assert [one["level"] for one in detail["findings"]] == ["error", "warning", "warning"]
    assert detail["table_counts"] == {"drift": 1, "equal": 1, "merged": 2, "never": 1, "quarantined": 1}


def test_a_viewer_sees_windows_tables_cuts_moves_and_pictures(viewer: httpx.Client, shop: PageSource):
    windows = ask(viewer, "/sources/cdc_shop/windows")
    states = ["planned", "drained", "acked", "acked", "merged", "merged", "merged"]
    assert [one["state"] for one in windows["windows"]] == states
    tables = ask(viewer, "/sources/cdc_shop/tables")["tables"]
    assert [(one["table"], one["state"]) for one in tables] == [
        ("shop.carts", "quarantined"), ("shop.items", "merged"), ("shop.orders", "merged"),
    ]  # fmt: skip
    assert [one["verified"] and one["verified"]["clean"] for one in tables] == [None, False, True]
    changed = [one["changed"] for one in tables]
    assert (changed[0], changed[2]) == (None, None)
    assert [changed[1][name] for name in ("compared", "equal", "in_flight", "wrong")] == [9, 7, 2, 0]
    covered = [one["covered"] for one in tables]
    assert covered[0] is None
    assert [(one["ratio"], one["overdue"], one["wrong"], one["position"]) for one in covered[1:]] == [
        (0.9, True, 0, "binlog.000001:3004")
    ] * 2
    cuts = ask(viewer, "/sources/cdc_shop/cuts")
    assert [one["position"] for one in cuts["cuts"]] == [f"binlog.000001:{n}004" for n in (3, 2, 1)]
    moves = ask(viewer, "/sources/cdc_shop/moves")["moves"]
    assert [one["kind"] for one in moves] == ["ack", "failover", "ack", "ack", "ack", "ack", "start"]
    assert [one["kind"] for one in ask(viewer, "/sources/cdc_shop/moves", cursor="lake")["moves"]][-1] == "start"
    history = ask(viewer, "/sources/cdc_shop/history")
    assert [one["lag_seconds"] for one in history["points"]] == [20, 20, 20]
    assert [one["rows"] is None for one in history["points"]] == [True, False, False]
    assert sum(one["rows"] for one in history["bars"]) == sum(one["rows"] or 0 for one in history["points"])


CONF: dict[str, dict[str, Any]] = {
    "run": {},
    "verify": {},
    "backfill": {"tables": ["shop.orders"]},
    "snapshot": {"tables": ["shop.orders"], "where": "name <> 'it''s' -- <b>", "why": "a test"},
    "resume": {"table": "shop.`a``b<script>`"},
    "answer": {"table": "shop.`a``b<script>`", "answer": "keep", "position": "binlog.000003:120"},
    "rewind": {"position": "binlog.000001:4", "move": False},
}
"""What the page asks for with each kind of run."""


def test_who_may_run_the_dags_may_act_and_nobody_else(server: ApiServer, viewer: httpx.Client, shop: PageSource):
    """What the page says of each user is what Airflow then does, with what was asked for, and its audit log has the user."""
    assert ask(viewer, "/sources/cdc_shop/actions") == {"actions": []}
    with server.as_user("op") as client, server.anonymous() as nobody:
        actions = ask(client, "/sources/cdc_shop/actions")["actions"]
        assert [one["kind"] for one in actions] == list(CONF)
        for one in actions:
            path, body = f"/api/v2/dags/{one['dag_id']}/dagRuns", {"logical_date": None, "conf": CONF[one["kind"]]}
            assert nobody.post(path, json=body).status_code == 401
            assert viewer.post(path, json=body).status_code == 403
            assert client.post(path, json=body).status_code == 200
            (run,) = server.dag_runs(one["dag_id"])
            assert (run["triggering_user_name"], run["conf"].items() >= CONF[one["kind"]].items()) == ("op", True)
            log = server.get(f"/eventLogs?dag_id={one['dag_id']}&limit=50")["event_logs"]
            assert ("trigger_dag_run", "op") in {(event["event"], event["owner"]) for event in log}


def test_a_user_of_one_source_sees_and_runs_that_alone(server: ApiServer, shop: PageSource, make: Make):
    """The list, each part, the actions, and what Airflow's own API makes of a run."""
    make("stock", tables=[TableName("stock", "parts")])
    server.read_dags()
    run = {"logical_date": None, "conf": CONF["snapshot"]}
    with server.as_user("op") as op, server.as_user(CLERK) as clerk:
        assert until(lambda: {"cdc_shop", "cdc_stock"} <= {one["dag_id"] for one in ask(op, "/sources")["sources"]})
        assert {one["dag_id"] for one in ask(clerk, "/sources")["sources"]} == {"cdc_shop"}
        assert ask(clerk, "/sources", text="stock")["sources"] == []
        for part in RESOURCES:
            ask(clerk, f"/sources/cdc_stock{part}", 403)
            ask(clerk, f"/sources/cdc_shop{part}")
        actions = {one["dag_id"] for one in ask(clerk, "/sources/cdc_shop/actions")["actions"]}
        assert "cdc_shop.snapshot" in actions
        assert clerk.post("/api/v2/dags/cdc_shop.snapshot/dagRuns", json=run).status_code == 200
        assert clerk.post("/api/v2/dags/cdc_stock.snapshot/dagRuns", json=run).status_code == 403
        assert server.dag_runs("cdc_stock.snapshot") == []


def test_a_run_that_its_form_refuses_is_not_made(server: ApiServer, shop: PageSource):
    """By Airflow, which says which field is wrong."""
    wrong = {
        "snapshot": ({"tables": []}, "tables"),
        "resume": ({"table": ""}, "table"),
        "answer": ({"table": "shop.orders", "answer": "drop"}, "answer"),
        "rewind": ({"move": "yes"}, "move"),
    }
    with server.as_user("op") as client:
        for kind, (conf, field) in wrong.items():
            before = server.dag_runs(f"cdc_shop.{kind}")
            answer = client.post(f"/api/v2/dags/cdc_shop.{kind}/dagRuns", json={"logical_date": None, "conf": conf})
            assert (answer.status_code, field in answer.json()["detail"]) == (400, True)
            assert server.dag_runs(f"cdc_shop.{kind}") == before


def test_the_page_knows_which_dags_are_paused_or_missing(server: ApiServer, shop: PageSource):
    """New DAGs are paused if they have a schedule or read the source; what runs on request alone would only wait."""
    with server.as_user("op") as client:

        def states() -> dict[str, str]:
            actions = ask(client, "/sources/cdc_shop/actions")["actions"]
            return {one["kind"]: one["state"] for one in actions if one["state"] != "ready"}

        born = {"run": "paused", "verify": "paused"}
        assert states() == born
        server.unpause("cdc_shop")
        server.pause("cdc_shop.rewind")
        assert states() == {"verify": "paused", "rewind": "paused"}
        server.unpause("cdc_shop.rewind")
        server.pause("cdc_shop")
        for dag in ("cdc_shop", "cdc_shop.resume"):
            server.request("DELETE", f"/api/v2/dags/{dag}")
        assert states() == {"run": "missing", "resume": "missing", "verify": "paused"}
        server.read_dags()
        assert states() == born


def test_another_site_cannot_act_with_a_users_cookie(server: ApiServer, shop: PageSource):
    """A form of another site can send text, and no JSON; the cookie that the browser keeps stays with this site."""
    body = '{"logical_date": null, "conf": {}}'
    with server.anonymous() as client:
        client.cookies.set("_token", server.token("op"))
        path = "/api/v2/dags/cdc_shop/dagRuns"
        for kind in ("text/plain", "application/x-www-form-urlencoded"):
            refused = client.post(path, content=body, headers={"Content-Type": kind, "Origin": "https://evil.example"})
            assert refused.status_code == 422
        preflight = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
        assert "access-control-allow-origin" not in client.options(path, headers=preflight).headers
        assert client.post(path, json={"logical_date": None}).status_code == 200  # the same cookie from the page itself


@pytest.mark.parametrize(
    "name",
    ["cdc_other", "shop", "%2e%2e%2f%2e%2e%2fetc", "cdc_..%2Fshop", "cdc_shop%2F..", "${x}", "%3Cscript%3E", "cdc_shop%00"],
)  # fmt: skip
def test_a_name_that_is_not_listed_leads_nowhere(viewer: httpx.Client, name: str):
    """It is no part of a path or key, and is not repeated."""
    for resource in RESOURCES:
        answer = viewer.get(f"/cdc/page/sources/{name}{resource}")
        assert answer.status_code == 404
        assert "script" not in answer.text


@pytest.mark.parametrize(
    ("resource", "query"),
    [
        ("tables", {"limit": 51}), ("tables", {"offset": -1}), ("tables", {"order": "1; DROP"}), ("tables", {"text": "x" * 201}),
        ("cuts", {"limit": 0}), ("moves", {"cursor": "../drain"}), ("windows", {"limit": 1000}),
    ],
)  # fmt: skip
def test_a_wrong_question_is_refused(viewer: httpx.Client, resource: str, query: dict[str, Any]):
    assert viewer.get(f"/cdc/page/sources/cdc_shop/{resource}", params=query).status_code == 422


def test_hostile_names_come_as_they_are_and_are_found_again(viewer: httpx.Client, make: Make):
    """As text of JSON; searching for one finds it."""
    source = make("hostile", tables=HOSTILE, compared=3, quarantined=HOSTILE[:1])
    line(viewer, source)
    tables = ask(viewer, f"/sources/{source.dag}/tables")["tables"]
    assert {one["table"] for one in tables} == set(HOSTILE)
    for name in HOSTILE:
        assert [one["table"] for one in ask(viewer, f"/sources/{source.dag}/tables", text=name)["tables"]] == [name]


def test_five_thousand_tables_come_page_by_page(viewer: httpx.Client, make: Make):
    """And are searched and sorted at the server."""
    names = [TableName("big", f"t{number:05d}") for number in range(5000)]
    source = make("big", tables=names, windows=2, merged=2, compared=3)
    line(viewer, source)
    first = ask(viewer, f"/sources/{source.dag}/tables")
    assert (first["total"], len(first["tables"])) == (5000, 50)
    last = ask(viewer, f"/sources/{source.dag}/tables", offset=4990)
    assert [one["table"] for one in last["tables"]] == names[4990:]
    assert ask(viewer, f"/sources/{source.dag}/tables", text="T0123")["total"] == 10
    assert ask(viewer, f"/sources/{source.dag}/tables", state="equal")["total"] == 3
    most = ask(viewer, f"/sources/{source.dag}/tables", order="rows", descending=True)["tables"][0]
    assert (most["table"], most["rows"]) == (names[-1], 1000 + 7 * 4999)


def test_two_hundred_sources_of_one_store_are_one_list(viewer: httpx.Client, make: Make):
    """Two hundred files are read once."""
    for number in range(200):
        make(f"many{number:03d}", store="many", windows=1, merged=1, compared=1)
    found = until(lambda: (got := ask(viewer, "/sources", text="many"))["total"] == 200 and got, 90)
    assert {one["state"] for one in found["sources"]} == {"in_step"}
    page = ask(viewer, "/sources", text="many", offset=195, limit=50)
    assert [one["source"] for one in page["sources"]] == [f"many{number}" for number in range(195, 200)]


def away(source: PageSource, endpoint: str) -> PageSource:
    """Let a source's file name an S3 server."""
    file = source.sources / f"{source.name}.yaml"
    plain = yaml.safe_load(file.read_text())
    plain["store"] = {"url": "s3://bucket/x", "endpoint_url": endpoint, "region": "us-east-1",
                      "access_key_env": "CDC_TEST_PASSWORD", "secret_key_env": "CDC_TEST_PASSWORD"}  # fmt: skip
    file.write_text(yaml.safe_dump(plain))
    return source


def test_a_refusing_store_is_reported_and_delays_no_other_source(viewer: httpx.Client, make: Make):
    """Its own page too."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        source = away(make("refused"), f"http://127.0.0.1:{closed.getsockname()[1]}")
        found = until(lambda: (got := line(viewer, source))["state"] == "unreachable" and got)
        assert "store" in found["what"] or "object" in found["what"]
        for resource in ("", "/windows", "/tables", "/cuts", "/moves", "/history"):
            assert ask(viewer, f"/sources/{source.dag}{resource}", 503)["detail"]
        assert ask(viewer, "/sources/cdc_shop")["source"] == "shop"


def test_a_store_that_never_answers_does_not_hold_the_page(viewer: httpx.Client, make: Make):
    """Each answer comes at once: first that the store is read, then that it does not answer."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        source = away(make("silent"), f"http://127.0.0.1:{silent.getsockname()[1]}")
        until(lambda: any(one["dag_id"] == source.dag for one in viewer.get("/cdc/page/sources").json()["sources"]))
        answer = viewer.get(f"/cdc/page/sources/{source.dag}")
        assert answer.status_code == 503
        found = until(lambda: (got := line(viewer, source))["state"] == "unreachable" and got)
        assert found["what"]


def test_a_wrong_source_file_is_shown_with_its_fault(viewer: httpx.Client, server: ApiServer, make: Make):
    """And no other source suffers."""
    source = make("faulty")
    file = source.sources / "faulty.yaml"
    file.write_text(file.read_text().replace("schedule:", "shedule:"))
    found = until(lambda: (got := line(viewer, source))["state"] == "unreachable" and got)
    assert "shedule" in found["what"]
    assert "faulty" in ask(viewer, f"/sources/{source.dag}", 503)["detail"]
    file.unlink()
    assert until(lambda: viewer.get(f"/cdc/page/sources/{source.dag}").status_code == 404)


def test_an_answer_is_not_kept_by_anybody_on_the_way(viewer: httpx.Client, shop: PageSource):
    answer = viewer.get("/cdc/page/sources")
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-security-policy"] == "frame-ancestors 'self'"
    assert viewer.get("/cdc/page/page.js").headers["content-type"].startswith("text/javascript")


def test_the_page_never_needs_the_password_of_a_source(viewer: httpx.Client, shop: PageSource):
    """The server's name leads nowhere, and no answer holds what a source file may hold."""
    for path in ("/sources", *(f"/sources/cdc_shop{one}" for one in RESOURCES)):
        assert "CDC_TEST_PASSWORD" not in viewer.get(f"/cdc/page{path}").text
