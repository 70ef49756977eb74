"""The page in a real Chromium, in Airflow's own pages, as a viewer and as an operator, wide, narrow, dark and by keyboard."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.models.taskinstancekey import TaskInstanceKey
from playwright.sync_api import Browser, Page, expect

from cdc_airflow.airflow_versions import IS_3_2
from cdc_airflow.links import CutLink, SourcePageLink, VerifyReportLink, WindowLink
from cdc_lib.model.table_name import TableName
from cdc_lib.store.objects.local import LocalStore
from tests.harness.airflow.api_server import ApiServer
from tests.harness.airflow.browser import NARROW, WIDE, chromium, logged_in
from tests.harness.airflow.one_dag_auth import CLERK
from tests.harness.airflow.page_source import PageSource

pytestmark = pytest.mark.skipif(not IS_3_2, reason="Airflow 3.1 shows no page")

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
    expect(viewer.get_by_role("heading", name="CDC sources")).to_be_visible()
    row = viewer.get_by_role("row").filter(has_text="shop")
    expect(row).to_contain_text("failed")
    expect(row).to_contain_text("shop.items has drift")
    expect(row).to_contain_text(re.compile(r"11\.0 h|10\.9 h"))
    picture(viewer, "cdc-sources")
    viewer.get_by_role("link", name="shop", exact=True).click()
    expect(viewer.get_by_role("heading", name="shop", exact=True)).to_be_visible()
    expect(viewer.get_by_text("drained in about 2 min")).to_be_visible()
    for title in ("The last day", "Windows", "Tables", "Cuts", "Moves of the cursor", "Epochs"):
        expect(viewer.get_by_role("heading", name=title, exact=True)).to_be_visible()
    expect(viewer.get_by_role("region", name="Cuts, latest first")).to_contain_text("binlog.000001:58004")
    expect(viewer.get_by_role("img", name="Lag at each cut")).to_be_visible()
    assert not is_wider_than_its_window(viewer)
    picture(viewer, "cdc-source")
    viewer.get_by_role("link", name="All sources").click()
    expect(viewer.get_by_role("heading", name="CDC sources")).to_be_visible()
    assert not faults


def test_the_dag_has_a_tab_with_its_source(viewer: Page, server: ApiServer):
    """On those of a source; another DAG's tab says that it has none."""
    show(viewer, server, "dags/cdc_shop")
    # By its address: the name is also part of other links, which may be there before the tab is.
    viewer.locator("a[href$='/dags/cdc_shop/plugin/cdc-source']").click()
    expect(viewer.get_by_role("heading", name="shop", exact=True)).to_be_visible()
    for other in ("verify", "rewind"):
        show(viewer, server, f"dags/cdc_shop.{other}/plugin/cdc-source")
        expect(viewer.get_by_role("heading", name="shop", exact=True)).to_be_visible()
    show(viewer, server, "dags/cdc_maintenance/plugin/cdc-source")
    expect(viewer.get_by_text("This DAG is not that of a CDC source.")).to_be_visible()


@pytest.mark.turns(3)
@pytest.mark.parametrize("link", [WindowLink, CutLink, VerifyReportLink])
def test_a_task_s_button_leads_to_its_part_of_the_page(viewer: Page, server: ApiServer, link: type[SourcePageLink]):
    """The part is in sight, also after those above it were loaded."""
    operator = SimpleNamespace(source_file="/sources/shop.yaml")
    address = link().get_link(operator, ti_key=TaskInstanceKey("cdc_shop", "task", "run"))
    show(viewer, server, address.partition("/plugin/")[1].strip("/") + "/" + address.partition("/plugin/")[2])
    part = viewer.locator(f"#{link.part}")
    expect(part.get_by_role("heading").first).to_be_visible()
    expect(viewer.get_by_text("Loading …")).to_have_count(0)
    viewer.wait_for_timeout(3_000)  # the last of its scrolls
    expect(part.get_by_role("heading").first).to_be_in_viewport()


def test_the_button_of_a_drain_shows_its_window_alone(viewer: Page, server: ApiServer, shop: PageSource):
    """One that is too old to be listed says so."""
    for window, expected in (
        (shop.window(57).id, "binlog.000001:57004"),
        ("forgotten", "is not one of the last hundred"),
    ):
        operator = SimpleNamespace(source_file="/sources/shop.yaml", window_id=window)
        address = WindowLink().get_link(operator, ti_key=TaskInstanceKey("cdc_shop", "drain", "run"))
        show(viewer, server, "plugin/" + address.partition("/plugin/")[2])
        expect(viewer.locator("#windows")).to_contain_text(expected)
        rows = viewer.get_by_role("region", name="Windows, latest first").get_by_role("row")
        expect(rows).to_have_count(2 if window != "forgotten" else 1)
    viewer.get_by_role("button", name="Show all windows").click()
    expect(rows).to_have_count(11)


def test_tables_are_searched_sorted_and_filtered(viewer: Page, server: ApiServer):
    show(viewer, server, "plugin/cdc/cdc_shop")
    tables = viewer.get_by_role("region", name="Tables", exact=True).last
    expect(tables.get_by_role("row")).to_have_count(7)
    viewer.get_by_label("Search tables").fill("ITEM")
    expect(tables.get_by_role("row")).to_have_count(2)
    expect(tables).to_contain_text("3 missing, 1 extra, 2 different")
    viewer.get_by_label("Search tables").fill("")
    viewer.get_by_label("Table state").select_option("quarantined")
    expect(tables.get_by_role("row")).to_have_count(2)
    expect(tables).to_contain_text("a value with no exact place in the lake")
    viewer.get_by_label("Table state").select_option("")
    expect(tables.get_by_role("row")).to_have_count(7)
    tables.get_by_role("button", name="Rows").click()
    expect(tables.get_by_role("row").nth(1)).to_contain_text("shop.stock")
    expect(tables.get_by_role("columnheader", name="Rows")).to_have_attribute("aria-sort", "descending")


def test_a_window_of_the_timeline_is_picked_by_keyboard(viewer: Page, server: ApiServer):
    """The keyboard reaches each window; what it is, is read aloud."""
    show(viewer, server, "plugin/cdc/cdc_shop")
    line = viewer.get_by_role("group", name="Windows, oldest first")
    expect(line.get_by_role("button")).to_have_count(62)
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


def test_a_viewer_has_nothing_to_act_with(viewer: Page, server: ApiServer):
    """Neither at the head of the page nor beside a table."""
    show(viewer, server, "plugin/cdc/cdc_shop")
    expect(viewer.get_by_role("region", name="Tables", exact=True).last).to_contain_text("shop.payments")
    viewer.wait_for_load_state("networkidle")
    assert viewer.get_by_role("group", name="Actions").count() == 0
    for name in ("Run now", "Verify", "Snapshot", "Backfill", "Resume", "Answer", "Rewind"):
        assert viewer.get_by_role("button", name=name).count() == 0


def test_a_user_of_one_source_finds_that_alone_and_acts_on_it(browser: Browser, server: ApiServer, shop: PageSource):
    """The role is an operator's. The other sources are in no list, and their addresses say why nothing is shown."""
    with logged_in(browser, server, CLERK) as page:
        faults = show(page, server, "plugin/cdc")
        expect(page.get_by_role("link", name="shop", exact=True)).to_be_visible()
        expect(page.get_by_role("row")).to_have_count(2)  # with the header
        show(page, server, "plugin/cdc/cdc_billing")
        expect(page.get_by_text("You may not see this.")).to_be_visible()
        assert page.get_by_role("region", name="Tables", exact=True).count() == 0
        picture(page, "cdc-not-yours")
        show(page, server, "plugin/cdc/cdc_shop")
        expect(page.get_by_role("group", name="Actions")).to_be_visible()
        expect(page.get_by_role("button", name="Snapshot shop.orders")).to_be_enabled()
        assert not faults


@pytest.fixture
def operator(browser: Browser, server: ApiServer, shop: PageSource) -> Iterator[Page]:
    """The page of the shop, as an operator sees it; its scripts must not fail."""
    with logged_in(browser, server, "op") as page:
        faults = show(page, server, "plugin/cdc/cdc_shop")
        expect(page.get_by_role("group", name="Actions")).to_be_visible()
        expect(page.get_by_role("button", name="Resume shop.payments")).to_be_visible()
        yield page
        assert not faults


def started(page: Page, dag: str) -> str:
    """Wait until the page names the run that it started, and return its id."""
    link = page.get_by_role("link", name=re.compile("^manual__"))
    expect(link).to_have_attribute("href", re.compile(re.escape(f"/dags/{dag}/runs/manual__")))
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_role("alertdialog")).to_have_count(0)
    return str(link.text_content())


def conf_of(server: ApiServer, dag: str, run_id: str) -> dict[str, Any]:
    """Return what the run was made with; the operator made it."""
    (run,) = [one for one in server.dag_runs(dag) if one["dag_run_id"] == run_id]
    assert run["triggering_user_name"] == "op"
    return dict(run["conf"])


def test_an_operator_starts_runs_and_backfills_a_table(operator: Page, server: ApiServer):
    """The runs are Airflow's own, with the parameters that were typed. A button whose run would wait is off, and the page says why."""
    run_now = operator.get_by_role("button", name="Run now")
    expect(run_now).to_be_disabled()
    paused = operator.get_by_role("status").filter(has_text="Paused in Airflow: cdc_shop, cdc_shop.verify")
    expect(paused.get_by_role("link", name="cdc_shop", exact=True)).to_have_attribute(
        "href", re.compile("/dags/cdc_shop$")
    )
    server.unpause("cdc_shop")
    operator.reload()
    run_now.click()
    assert conf_of(server, "cdc_shop", started(operator, "cdc_shop")) == {}
    server.pause("cdc_shop")
    operator.get_by_role("button", name="Backfill shop.orders").click()
    form = operator.get_by_role("form", name="Backfill")
    expect(form.get_by_role("heading", name="Backfill shop.orders")).to_be_visible()
    form.get_by_label("From (UTC").fill("2026-11-01T10:30")
    form.get_by_label("Into").select_option("copy")
    picture(operator, "cdc-backfill")
    form.get_by_role("button", name="Start backfill").press("Enter")
    assert conf_of(server, "cdc_shop.backfill", started(operator, "cdc_shop.backfill")) == {
        "tables": ["shop.orders"], "from": "2026-11-01T10:30:00Z", "to": None, "into": "copy",
    }  # fmt: skip


def test_the_page_says_what_to_do_after_a_dag_was_deleted(
    browser: Browser, server: ApiServer, make: Callable[..., PageSource]
):
    """Its buttons are off, also beside a table; those of the other DAGs of the source are on."""
    make("deleted")
    server.read_dags()
    for dag in ("cdc_deleted", "cdc_deleted.backfill"):
        server.request("DELETE", f"/api/v2/dags/{dag}")
    with logged_in(browser, server, "op") as page:
        show(page, server, "plugin/cdc/cdc_deleted")
        missing = page.get_by_role("status").filter(has_text="Not in Airflow: cdc_deleted, cdc_deleted.backfill")
        expect(missing).to_contain_text("Then unpause the DAG of the source.")
        for name in ("Run now", "Backfill", "Backfill shop.orders"):
            expect(page.get_by_role("button", name=name, exact=True)).to_be_disabled()
        expect(page.get_by_role("button", name="Snapshot shop.orders")).to_be_enabled()
        picture(page, "cdc-deleted")


def test_a_snapshot_of_rows_is_asked_for_by_keyboard_alone(operator: Page, server: ApiServer):
    """The keyboard stays in the dialog; Escape leaves it without a run; the reason and the condition arrive as they were typed."""
    runs = len(server.dag_runs("cdc_shop.snapshot"))
    opener = operator.get_by_role("button", name="Snapshot shop.orders")
    opener.focus()
    operator.keyboard.press("Enter")
    dialog = operator.get_by_role("dialog", name="Snapshot shop.orders")
    expect(dialog.get_by_label("Rows")).to_be_focused()
    operator.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(opener).to_be_focused()
    assert len(server.dag_runs("cdc_shop.snapshot")) == runs
    operator.keyboard.press("Enter")
    expect(dialog.get_by_label("Rows")).to_be_focused()
    operator.keyboard.type("rows that")  # chooses the option with these words
    expect(dialog.get_by_role("button", name="Request snapshot")).to_be_disabled()
    expect(dialog.get_by_text("Name the keys or the condition.")).to_be_visible()
    operator.keyboard.press("Tab")
    operator.keyboard.type("note <> 'it''s \"<b>{{ x }}</b>\"'")
    operator.keyboard.press("Tab")
    operator.keyboard.type("lost in March & April")
    picture(operator, "cdc-snapshot")
    for _ in range(8):  # it goes round inside
        operator.keyboard.press("Tab")
        assert dialog.evaluate("(e) => e.contains(document.activeElement)")
    dialog.get_by_role("button", name="Request snapshot").focus()
    operator.keyboard.press("Enter")
    assert conf_of(server, "cdc_shop.snapshot", started(operator, "cdc_shop.snapshot")) == {
        "tables": ["shop.orders"], "key_from": "", "key_to": "",
        "where": "note <> 'it''s \"<b>{{ x }}</b>\"'", "why": "lost in March & April",
    }  # fmt: skip


def test_several_tables_are_snapshotted_whole_and_rows_of_one_only(operator: Page, server: ApiServer):
    """The page says so before Airflow is asked."""
    operator.get_by_role("button", name="Snapshot", exact=True).click()
    dialog = operator.get_by_role("dialog", name="Snapshot tables")
    send = dialog.get_by_role("button", name="Request snapshot")
    expect(send).to_be_disabled()
    dialog.get_by_label("Tables").fill(" shop.orders \n\nshop.c*\n")
    dialog.get_by_label("Rows").select_option("keys")
    dialog.get_by_label("From key").fill("1")
    expect(dialog.get_by_text("Rows are read of one table at a time.")).to_be_visible()
    expect(send).to_be_disabled()
    dialog.get_by_label("Rows").select_option("all")
    send.click()
    found = conf_of(server, "cdc_shop.snapshot", started(operator, "cdc_shop.snapshot"))
    assert (found["tables"], found["key_from"]) == (["shop.orders", "shop.c*"], "")


def test_a_quarantined_table_is_resumed_after_it_is_confirmed(operator: Page, server: ApiServer):
    """It has no snapshot, which would be refused; other tables cannot be resumed."""
    assert operator.get_by_role("button", name="Snapshot shop.payments").count() == 0
    assert operator.get_by_role("button", name="Resume shop.orders").count() == 0
    operator.get_by_role("button", name="Resume shop.payments").click()
    dialog = operator.get_by_role("dialog", name="Resume shop.payments")
    expect(dialog.get_by_role("button", name="Cancel")).to_be_focused()
    picture(operator, "cdc-resume")
    dialog.get_by_role("button", name="Resume table").click()
    assert conf_of(server, "cdc_shop.resume", started(operator, "cdc_shop.resume")) == {"table": "shop.payments"}


def test_a_schema_change_is_answered_beside_its_table(
    browser: Browser, server: ApiServer, make: Callable[..., PageSource]
):
    """With its position, so that no later statement gets the answer; other tables have nothing to answer."""
    tables = [TableName("shop", name) for name in ("orders", "customers")]
    make("asking", tables=tables, asked=tables[:1])
    server.read_dags()
    with logged_in(browser, server, "op") as page:
        faults = show(page, server, "plugin/cdc/cdc_asking")
        page.get_by_role("button", name="Answer shop.orders").click()
        assert page.get_by_role("button", name="Answer shop.customers").count() == 0
        dialog = page.get_by_role("alertdialog", name="Answer for shop.orders")
        expect(dialog.get_by_text("The source ran TRUNCATE at binlog.000003:120")).to_be_visible()
        send = dialog.get_by_role("button", name="Record answer")
        expect(send).to_be_disabled()
        dialog.get_by_role("combobox", name="Answer").select_option("keep")
        picture(page, "cdc-answer")
        send.click()
        found = conf_of(server, "cdc_asking.answer", started(page, "cdc_asking.answer"))
        assert found == {"table": "shop.orders", "answer": "keep", "position": "binlog.000003:120"}
        assert not faults


def test_a_rewind_is_looked_for_first_and_moves_only_when_it_is_confirmed(operator: Page, server: ApiServer):
    """A move needs a reason and a tick."""
    operator.get_by_role("button", name="Rewind").click()
    dialog = operator.get_by_role("alertdialog", name="Rewind shop")
    dialog.get_by_label("Time (UTC)").fill("2026-11-21T06:00:05")
    find = dialog.get_by_role("button", name="Find position")
    color = "(e) => getComputedStyle(e).backgroundColor"
    harmless = find.evaluate(color)
    find.click()
    found = conf_of(server, "cdc_shop.rewind", started(operator, "cdc_shop.rewind"))
    assert (found["time"], found["move"]) == ("2026-11-21T06:00:05Z", False)
    operator.get_by_role("button", name="Rewind").click()
    dialog.get_by_label("To", exact=True).select_option("position")
    dialog.get_by_label("Position").fill("binlog.000001:4")
    dialog.get_by_label("Do", exact=True).select_option("move")
    move = dialog.get_by_role("button", name="Move cursor")
    for missing in ("A move needs a reason.", "Confirm the move."):
        expect(dialog.get_by_text(missing)).to_be_visible()
        expect(move).to_be_disabled()
        dialog.get_by_label("Reason").fill("a test")
    dialog.get_by_label("Move the drain cursor of shop").press("Space")
    assert move.evaluate(color) != harmless  # red is for what changes something
    picture(operator, "cdc-rewind")
    move.click()
    found = conf_of(server, "cdc_shop.rewind", started(operator, "cdc_shop.rewind"))
    assert found == {
        "time": None, "position": "binlog.000001:4", "gtid": "", "undo": False, "move": True, "why": "a test",
    }  # fmt: skip


def test_what_airflow_refuses_is_said_in_the_dialog_and_what_was_typed_stays(operator: Page, server: ApiServer):
    operator.get_by_role("button", name="Rewind").click()
    dialog = operator.get_by_role("alertdialog", name="Rewind shop")
    dialog.get_by_label("To", exact=True).select_option("gtid")
    dialog.get_by_label("GTIDs").fill("0-1-100")
    operator.context.set_offline(True)
    dialog.get_by_role("button", name="Find position").click()
    expect(dialog.get_by_role("alert")).to_be_visible()
    expect(dialog.get_by_label("GTIDs")).to_have_value("0-1-100")
    operator.context.set_offline(False)
    dialog.get_by_role("button", name="Find position").click()
    assert conf_of(server, "cdc_shop.rewind", started(operator, "cdc_shop.rewind"))["gtid"] == "0-1-100"


@pytest.mark.turns(3)
@pytest.mark.parametrize(("size", "dark"), [(NARROW, False), (NARROW, True), (WIDE, True)])
def test_a_dialog_fits_its_window_in_both_themes(
    browser: Browser, server: ApiServer, shop: PageSource, size: tuple[int, int], dark: bool
):
    """All of it can be reached, and nothing is moved sideways."""
    with logged_in(browser, server, "op", size, dark=dark) as page:
        show(page, server, "plugin/cdc/cdc_shop")
        page.get_by_role("button", name="Rewind").click()
        dialog = page.get_by_role("alertdialog", name="Rewind shop")
        dialog.get_by_label("Do", exact=True).select_option("move")
        assert not is_wider_than_its_window(page)
        assert dialog.evaluate("(e) => e.scrollWidth <= e.clientWidth && e.getBoundingClientRect().right <= innerWidth")
        name = f"{size[0]}{'-dark' * dark}"
        picture(page, f"rewind-{name}")
        dialog.get_by_role("button", name="Cancel").click()
        expect(dialog).to_have_count(0)
        picture(page, f"operator-{name}")


@pytest.mark.parametrize("path", ["plugin/cdc", "plugin/cdc/cdc_shop"])
def test_the_page_fits_the_width_of_a_phone(browser: Browser, server: ApiServer, shop: PageSource, path: str):
    """Tables scroll alone."""
    with logged_in(browser, server, "viewer", NARROW) as page:
        show(page, server, path)
        wanted = (
            page.get_by_role("link", name="shop", exact=True)
            if path == "plugin/cdc"
            else page.get_by_role("heading", name="Epochs")
        )
        expect(wanted).to_be_visible()
        expect(page.get_by_role("region").first).to_be_visible()
        assert not is_wider_than_its_window(page)
        picture(page, f"narrow-{path.rpartition('/')[2]}")


def test_on_a_phone_each_row_is_a_card_in_view(browser: Browser, server: ApiServer, shop: PageSource):
    """No part of it is beside the screen; the name of its column is above each value."""
    with logged_in(browser, server, "viewer", NARROW) as page:
        for path, label in (("plugin/cdc", "Sources"), ("plugin/cdc/cdc_shop", "Tables")):
            show(page, server, path)
            grid = page.get_by_role("region", name=label, exact=True).last
            row = grid.get_by_role("row").filter(has_text="shop").last
            expect(row).to_be_visible()
            assert grid.evaluate("(e) => e.scrollWidth <= e.clientWidth")
            cell = row.get_by_role("cell").nth(2)
            assert (
                cell.evaluate("(e) => getComputedStyle(e, '::before').content")
                == {"Sources": '"Lag"', "Tables": '"Rows"'}[label]
            )


def test_headers_and_their_numbers_end_at_one_line(viewer: Page, server: ApiServer):
    """Also those of headers that sort."""
    show(viewer, server, "plugin/cdc/cdc_shop")
    tables = viewer.get_by_role("region", name="Tables", exact=True).last
    number = tables.get_by_role("row").nth(1).get_by_role("cell").nth(2).locator("span")
    expect(number).to_have_text("1,007")
    header = tables.get_by_role("button", name="Rows")
    ends = [one.evaluate("(e) => Math.round(e.getBoundingClientRect().right)") for one in (header, number)]
    assert ends[0] == ends[1]
    fonts = "(e) => [getComputedStyle(e).fontSize, getComputedStyle(e).fontWeight].join()"
    assert header.evaluate(fonts) == tables.get_by_role("columnheader", name="Mode").evaluate(fonts)


def test_before_the_first_merge_nothing_is_merged(viewer: Page, server: ApiServer):
    """Though the lake cursor has a position: where the first merge will begin."""
    show(viewer, server, "plugin/cdc/cdc_idle")
    merged = viewer.locator("dl > *").filter(has_text="Merged to")
    expect(merged).to_have_text("Merged tono merge yet")


def test_the_dark_theme_is_followed(browser: Browser, server: ApiServer, shop: PageSource):
    """What Airflow's theme makes of its own text and ground, it makes of the page's."""
    colors = []
    for dark in (False, True):
        with logged_in(browser, server, "viewer", WIDE, dark=dark) as page:
            show(page, server, "plugin/cdc/cdc_shop")
            heading = page.get_by_role("heading", name="shop", exact=True)
            expect(heading).to_be_visible()
            colors.append(heading.evaluate("(e) => getComputedStyle(e).color"))
            if dark:
                expect(page.get_by_role("img", name="Lag at each cut")).to_be_visible()
                picture(page, "dark-source")
    assert colors[0] != colors[1]


def test_hostile_names_are_text(viewer: Page, server: ApiServer):
    """On the page of their source, and where they are searched for."""
    faults = show(viewer, server, "plugin/cdc/cdc_hostile")
    for name in HOSTILE:
        expect(viewer.get_by_role("cell", name=name, exact=True).first).to_be_visible()
    assert viewer.locator("main img[src=x]").count() == 0
    viewer.get_by_label("Search tables").fill(HOSTILE[0])
    expect(viewer.get_by_role("region", name="Tables", exact=True).last.get_by_role("row")).to_have_count(2)
    show(viewer, server, "plugin/cdc/%3Cscript%3E")
    expect(viewer.get_by_text("This DAG is not that of a CDC source.")).to_be_visible()
    assert not faults


def test_a_source_without_anything_says_what_comes(viewer: Page, server: ApiServer):
    show(viewer, server, "plugin/cdc/cdc_idle")
    for text in (
        "No window was planned yet.",
        "No table is in the lake yet.",
        "No cut was published yet.",
        "No merge in the last day",
    ):
        expect(viewer.get_by_text(text)).to_be_visible()


def test_the_page_reports_a_lost_server_and_keeps_what_was_read(viewer: Page, server: ApiServer):
    """And the page comes back with it."""
    show(viewer, server, "plugin/cdc/cdc_shop")
    expect(viewer.get_by_role("heading", name="Cuts")).to_be_visible()
    viewer.context.set_offline(True)
    expect(viewer.get_by_text("What is shown here was read before.").first).to_be_visible()
    expect(viewer.get_by_role("heading", name="shop", exact=True)).to_be_visible()
    viewer.context.set_offline(False)
    expect(viewer.get_by_text("What is shown here was read before.")).to_have_count(0)
