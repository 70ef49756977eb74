from __future__ import annotations

from pathlib import Path

import pytest

from cdc_airflow import links
from cdc_airflow.airflow_versions import IS_3_2, TaskInstanceKey
from cdc_airflow.links import CutLink, SourcePageLink, SparkUiLink, VerifyReportLink, WindowLink
from cdc_airflow.operators import AckLakeOperator, DrainOperator, PlanOperator
from cdc_airflow.operators.backfill import BackfillOperator
from cdc_airflow.operators.merge import MergeOperator
from cdc_airflow.operators.verify import VerifyOperator
from cdc_airflow.server_job import ServerJob

KEY = TaskInstanceKey("cdc_shop", "drain", "run", 1, -1)


@pytest.mark.parametrize(
    ("kind", "name", "part"),
    [(WindowLink, "Window", "windows"), (CutLink, "Cut", "cuts"), (VerifyReportLink, "Verify report", "tables")],
)
def test_a_link_leads_to_the_page_of_the_tasks_source(
    monkeypatch: pytest.MonkeyPatch, kind: type[SourcePageLink], name: str, part: str
):
    """Below the address under which people reach Airflow."""
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://airflow.example/team/")
    task = PlanOperator(task_id="plan", source_file="/opt/sources/shop.yaml")
    link = kind()
    assert (link.name, link.get_link(task, ti_key=KEY)) == (
        name,
        f"https://airflow.example/team/plugin/cdc/cdc_shop#{part}",
    )


def test_the_link_of_a_drain_leads_to_its_window():
    """One that read snapshots, or whose window is not known yet, to all of them."""
    task = DrainOperator(task_id="drain", source_file="/opt/sources/shop.yaml", unit={})
    assert WindowLink().get_link(task, ti_key=KEY).endswith("/plugin/cdc/cdc_shop#windows")
    task.window_id = "shop/1-binlog.000001=4"
    assert WindowLink().get_link(task, ti_key=KEY).endswith("#windows=shop%2F1-binlog.000001%3D4")


def test_the_operators_have_the_links_of_what_they_do():
    """None has a link to a page that is not there; those that may run on a Spark server have one to its Spark."""
    found = {kind: [type(one) for one in kind.operator_extra_links] for kind in (DrainOperator, MergeOperator)}
    more = (AckLakeOperator, VerifyOperator, BackfillOperator)
    found |= {kind: [type(one) for one in kind.operator_extra_links] for kind in more}
    page = IS_3_2 and (Path(links.__file__).parent / "page" / "__init__.py").is_file()
    of_page = {DrainOperator: [WindowLink], MergeOperator: [CutLink], AckLakeOperator: [CutLink]}
    of_page |= {VerifyOperator: [VerifyReportLink], BackfillOperator: []}
    of_spark = (MergeOperator, VerifyOperator, BackfillOperator)
    assert found == {
        kind: [*(links if page else []), *([SparkUiLink] if kind in of_spark else [])]
        for kind, links in of_page.items()
    }


def test_the_link_to_spark_leads_where_the_server_says(sources: Path):
    """A job in a process of the task has none, nor one on a server whose pages are switched off; that is no error."""
    file = sources / "shop.yaml"
    task = MergeOperator(task_id="merge", source_file=str(file))
    link = SparkUiLink()
    assert (link.name, link.get_link(task, ti_key=KEY)) == ("Spark UI", "")
    file.write_text(file.read_text() + 'merge: {spark_server: {url: "http://127.0.0.1:1"}}\n')
    task._job = ServerJob(task.hook(), "a", spark_ui=None)
    assert link.get_link(task, ti_key=KEY) == ""
    task._job = ServerJob(task.hook(), "a", spark_ui="http://spark.example:4040")
    assert link.get_link(task, ti_key=KEY) == "http://spark.example:4040"


def test_no_link_leads_to_a_page_that_is_not_there(monkeypatch: pytest.MonkeyPatch):
    """The package may be installed without it."""
    monkeypatch.setattr(links, "HAS_PAGE", False)
    assert links.links(WindowLink, CutLink) == ()
    monkeypatch.setattr(links, "HAS_PAGE", True)
    assert [one.name for one in links.links(WindowLink, CutLink)] == ["Window", "Cut"]
