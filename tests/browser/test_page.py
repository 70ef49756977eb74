"""The page in a real Chromium, in Airflow's own pages, as a viewer and as an operator, wide, narrow, dark and by keyboard."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from cdc_lib.model.table_name import TableName
from cdc_lib.store.objects.local import LocalStore
from tests.harness.api_server import ApiServer
from tests.harness.browser import NARROW, WIDE, chromium, logged_in
from tests.harness.page_source import PageSource

pytestmark = pytest.mark.timeout(300)

SLOW = 60_000
"""Milliseconds that a busy machine may take to show something."""

HOSTILE = (
    TableName("<img src=x onerror=alert(1)>", "${7*7}"),
    TableName("../../etc", "passwd"),
    TableName("a`b", '" onload="x'),
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    with ApiServer.with_page(tmp_path_factory.mktemp("api")) as server:
        yield server


@pytest.fixture(scope="module")
def make(server: ApiServer) -> Callable[..., PageSource]:
    def make(name: str, **facts: Any) -> PageSource:
        return PageSource(server.home / "sources", LocalStore(server.home / "stores" / name), name, **facts).write()

    return make


@pytest.fixture(scope="module")
def shop(server: ApiServer, make: Callable[..., PageSource]) -> PageSource:
    """A source with a bit of everything, among others."""
    names = ("orders", "customers", "items", "payments", "refunds", "stock")
    tables = [TableName("shop", name) for name in names]
    source = make(
        "shop", tables=tables, windows=60, merged=58, in_flight=2, drained=1, compared=4, drift=tables[2:3],
        quarantined=tables[3:4], failover=True, every=timedelta(minutes=20), keeps=timedelta(hours=11),
        changed={"verify": {"schedule": "@daily", "tables": ["*.*"]}},
    )  # fmt: skip
    make("billing", tables=tables[:2], windows=20, merged=20, compared=2)
    make("hostile", tables=HOSTILE, compared=3)
    make("idle", windows=0, merged=0, compared=0)
    server.read_dags()
    return source


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def viewer(browser: Browser, server: ApiServer, shop: PageSource) -> Iterator[Page]:
    with logged_in(browser, server, "viewer") as page:
        yield page


def show(page: Page, server: ApiServer, path: str) -> list[str]:
    """Open a path and return the list in which errors of the page's scripts are gathered."""
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto(f"{server.url}/{path}")
    return faults


def picture(page: Page, name: str) -> None:
    """Keep a picture, all of the page's height, where ``CDC_SCREENSHOTS`` names a folder."""
    if folder := os.environ.get("CDC_SCREENSHOTS"):
        size = page.viewport_size
        assert size is not None
        height = page.evaluate("[...document.querySelectorAll('main')].pop().scrollHeight")
        page.set_viewport_size({"width": size["width"], "height": max(size["height"], min(height + 60, 4500))})
        page.screenshot(path=str(Path(folder) / f"{name}.png"))
        page.set_viewport_size(size)


def is_wider_than_its_window(page: Page) -> bool:
    """Whether the page itself would have to be moved sideways."""
    return bool(
        page.evaluate(
            "[...document.querySelectorAll('main'), document.documentElement].some((e) => e.scrollWidth > e.clientWidth)"
        )
    )


def test_the_navigation_leads_to_the_list_and_from_there_to_a_source(viewer: Page, server: ApiServer):
    """Without a full load of the page; and back."""
    faults = show(viewer, server, "")
    viewer.get_by_role("link", name="CDC").click()
    expect(viewer.get_by_role("heading", name="CDC sources")).to_be_visible(timeout=SLOW)
    row = viewer.get_by_role("row").filter(has_text="shop")
    expect(row).to_contain_text("failed", timeout=SLOW)
    expect(row).to_contain_text("shop.items has drift")
    expect(row).to_contain_text(re.compile(r"11\.0 h|10\.9 h"))
    picture(viewer, "cdc-sources")
    viewer.get_by_role("link", name="shop", exact=True).click()
    expect(viewer.get_by_role("heading", name="shop", exact=True)).to_be_visible(timeout=SLOW)
    for title in ("The last day", "Windows", "Tables", "Cuts", "Moves of the cursor", "Epochs"):
        expect(viewer.get_by_role("heading", name=title, exact=True)).to_be_visible()
    expect(viewer.get_by_role("region", name="Cuts, latest first")).to_contain_text("binlog.000001:58004", timeout=SLOW)
    expect(viewer.get_by_role("img", name="Lag at each cut")).to_be_visible(timeout=SLOW)
    assert not is_wider_than_its_window(viewer)
    picture(viewer, "cdc-source")
    viewer.get_by_role("link", name="All sources").click()
    expect(viewer.get_by_role("heading", name="CDC sources")).to_be_visible()
    assert not faults


def test_the_dag_has_a_tab_with_its_source(viewer: Page, server: ApiServer):
    """On that of a source, and of its verification; another DAG's tab says that it has none."""
    show(viewer, server, "dags/cdc_shop")
    viewer.get_by_role("link", name="CDC").last.click()
    expect(viewer.get_by_role("heading", name="shop", exact=True)).to_be_visible(timeout=SLOW)
    show(viewer, server, "dags/cdc_shop.verify/plugin/cdc-source")
    expect(viewer.get_by_role("heading", name="shop", exact=True)).to_be_visible(timeout=SLOW)
    show(viewer, server, "dags/cdc_maintenance/plugin/cdc-source")
    expect(viewer.get_by_text("This DAG is not that of a CDC source.")).to_be_visible(timeout=SLOW)


def test_tables_are_searched_sorted_and_filtered(viewer: Page, server: ApiServer):
    show(viewer, server, "plugin/cdc/cdc_shop")
    tables = viewer.get_by_role("region", name="Tables", exact=True).last
    expect(tables.get_by_role("row")).to_have_count(7, timeout=SLOW)
    viewer.get_by_label("Search tables").fill("ITEM")
    expect(tables.get_by_role("row")).to_have_count(2, timeout=SLOW)
    expect(tables).to_contain_text("3 missing, 1 extra, 2 different")
    viewer.get_by_label("Search tables").fill("")
    viewer.get_by_label("Table state").select_option("quarantined")
    expect(tables.get_by_role("row")).to_have_count(2, timeout=SLOW)
    expect(tables).to_contain_text("a value with no exact place in the lake")
    viewer.get_by_label("Table state").select_option("")
    expect(tables.get_by_role("row")).to_have_count(7, timeout=SLOW)
    tables.get_by_role("button", name="Rows").click()
    expect(tables.get_by_role("row").nth(1)).to_contain_text("shop.payments", timeout=SLOW)
    expect(tables.get_by_role("columnheader", name="Rows")).to_have_attribute("aria-sort", "descending")


def test_a_window_of_the_timeline_is_picked_by_keyboard(viewer: Page, server: ApiServer):
    """The keyboard reaches each window; what it is, is read aloud."""
    show(viewer, server, "plugin/cdc/cdc_shop")
    line = viewer.get_by_role("group", name="Windows, oldest first")
    expect(line.get_by_role("button")).to_have_count(62, timeout=SLOW)
    drained = line.get_by_role("button", name=re.compile("^drained"))
    drained.focus()
    viewer.keyboard.press("Enter")
    expect(drained).to_have_attribute("aria-pressed", "true")
    rows = viewer.get_by_role("region", name="Windows, latest first").get_by_role("row")
    expect(rows).to_have_count(2)
    expect(rows.nth(1)).to_contain_text("drained")
    viewer.keyboard.press("Enter")
    expect(rows).to_have_count(11)
    viewer.get_by_role("region", name="Windows, latest first").focus()
    assert viewer.evaluate("document.activeElement.getAttribute('role')") == "region"


def test_a_viewer_cannot_act(viewer: Page, server: ApiServer):
    """The buttons are there and say why they do nothing; tables have none."""
    show(viewer, server, "plugin/cdc/cdc_shop")
    for name in ("Run now", "Verify", "Backfill"):
        expect(viewer.get_by_role("group", name="Actions").get_by_role("button", name=name)).to_be_disabled(
            timeout=SLOW
        )
    assert viewer.get_by_role("button", name="Backfill shop.orders").count() == 0


def test_an_operator_starts_runs_and_backfills_a_table(browser: Browser, server: ApiServer, shop: PageSource):
    """The runs are Airflow's own, with the parameters that were typed, and its audit log names the user."""
    with logged_in(browser, server, "op") as page:
        faults = show(page, server, "plugin/cdc/cdc_shop")
        page.get_by_role("button", name="Run now").click(timeout=SLOW)
        expect(page.get_by_text("Started:")).to_be_visible(timeout=SLOW)
        run = page.get_by_role("link", name=re.compile("^manual__"))
        assert "/dags/cdc_shop/runs/manual__" in str(run.get_attribute("href"))
        page.get_by_role("button", name="Backfill shop.orders").click()
        form = page.get_by_role("form", name="Backfill")
        expect(form.get_by_label("Tables")).to_have_value("shop.orders")
        expect(form.get_by_label("Tables")).to_be_focused()
        form.get_by_label("From (UTC").fill("2026-11-01T10:30")
        form.get_by_label("Into").select_option("copy")
        picture(page, "cdc-backfill")
        page.keyboard.press("Tab")
        form.get_by_role("button", name="Start the backfill").press("Enter")
        expect(page.get_by_role("link", name=re.compile("^manual__"))).to_have_attribute(
            "href", re.compile("backfill"), timeout=SLOW
        )
        assert not faults
    (run,) = server.dag_runs("cdc_shop.backfill")
    assert run["conf"] == {"tables": ["shop.orders"], "from": "2026-11-01T10:30:00Z", "to": None, "into": "copy"}
    assert run["triggering_user_name"] == "op"
    log = server.get("/eventLogs?dag_id=cdc_shop.backfill&limit=50")["event_logs"]
    assert ("trigger_dag_run", "op") in {(one["event"], one["owner"]) for one in log}


@pytest.mark.parametrize("path", ["plugin/cdc", "plugin/cdc/cdc_shop"])
def test_a_telephone_shows_all_of_it_without_moving_sideways(
    browser: Browser, server: ApiServer, shop: PageSource, path: str
):
    """Tables scroll alone."""
    with logged_in(browser, server, "viewer", NARROW) as page:
        show(page, server, path)
        wanted = (
            page.get_by_role("link", name="shop", exact=True)
            if path == "plugin/cdc"
            else page.get_by_role("heading", name="Epochs")
        )
        expect(wanted).to_be_visible(timeout=SLOW)
        expect(page.get_by_role("region").first).to_be_visible(timeout=SLOW)
        assert not is_wider_than_its_window(page)
        picture(page, f"narrow-{path.rpartition('/')[2]}")


def test_the_dark_theme_is_followed(browser: Browser, server: ApiServer, shop: PageSource):
    """What Airflow's theme makes of its own text and ground, it makes of the page's."""
    colors = []
    for dark in (False, True):
        with logged_in(browser, server, "viewer", WIDE, dark=dark) as page:
            show(page, server, "plugin/cdc/cdc_shop")
            heading = page.get_by_role("heading", name="shop", exact=True)
            expect(heading).to_be_visible(timeout=SLOW)
            colors.append(heading.evaluate("(e) => getComputedStyle(e).color"))
            if dark:
                expect(page.get_by_role("img", name="Lag at each cut")).to_be_visible(timeout=SLOW)
                picture(page, "dark-source")
    assert colors[0] != colors[1]


def test_hostile_names_are_text(viewer: Page, server: ApiServer):
    """On the page of their source, and where they are searched for."""
    faults = show(viewer, server, "plugin/cdc/cdc_hostile")
    for name in HOSTILE:
        expect(viewer.get_by_role("cell", name=name, exact=True).first).to_be_visible(timeout=SLOW)
    assert viewer.locator("main img[src=x]").count() == 0
    viewer.get_by_label("Search tables").fill(HOSTILE[0])
    expect(viewer.get_by_role("region", name="Tables", exact=True).last.get_by_role("row")).to_have_count(
        2, timeout=SLOW
    )
    show(viewer, server, "plugin/cdc/%3Cscript%3E")
    expect(viewer.get_by_text("This DAG is not that of a CDC source.")).to_be_visible(timeout=SLOW)
    assert not faults


def test_a_source_without_anything_says_what_comes(viewer: Page, server: ApiServer):
    show(viewer, server, "plugin/cdc/cdc_idle")
    for text in (
        "No window was planned yet.",
        "No table is in the lake yet.",
        "No cut was published yet.",
        "No merge of the last day",
    ):
        expect(viewer.get_by_text(text)).to_be_visible(timeout=SLOW)


def test_a_server_that_goes_away_is_told_and_what_was_read_stays(viewer: Page, server: ApiServer):
    """And the page comes back with it."""
    show(viewer, server, "plugin/cdc/cdc_shop")
    expect(viewer.get_by_role("heading", name="Cuts")).to_be_visible(timeout=SLOW)
    viewer.context.set_offline(True)
    expect(viewer.get_by_text("What is shown here was read before.").first).to_be_visible(timeout=SLOW)
    expect(viewer.get_by_role("heading", name="shop", exact=True)).to_be_visible()
    viewer.context.set_offline(False)
    expect(viewer.get_by_text("What is shown here was read before.")).to_have_count(0, timeout=SLOW)
