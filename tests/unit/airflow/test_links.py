from __future__ import annotations

from pathlib import Path

import pytest
from airflow.sdk.types import TaskInstanceKey

from cdc_airflow import links
from cdc_airflow.links import CutLink, SourcePageLink, VerifyReportLink, WindowLink
from cdc_airflow.merge import MergeOperator
from cdc_airflow.operators import AckLakeOperator, DrainOperator, PlanOperator
from cdc_airflow.verify import VerifyOperator

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


def test_the_operators_have_the_links_of_what_they_do():
    """None has a link where there is no page."""
    found = {kind: [type(one) for one in kind.operator_extra_links] for kind in (DrainOperator, MergeOperator)}
    found |= {kind: [type(one) for one in kind.operator_extra_links] for kind in (AckLakeOperator, VerifyOperator)}
    page = (Path(links.__file__).parent / "page" / "__init__.py").is_file()
    wanted = {DrainOperator: [WindowLink], MergeOperator: [CutLink], AckLakeOperator: [CutLink]}
    wanted[VerifyOperator] = [VerifyReportLink]
    assert found == (wanted if page else {kind: [] for kind in wanted})


def test_no_link_leads_to_a_page_that_is_not_there(monkeypatch: pytest.MonkeyPatch):
    """The package may be installed without it."""
    monkeypatch.setattr(links, "HAS_PAGE", False)
    assert links.links(WindowLink, CutLink) == ()
    monkeypatch.setattr(links, "HAS_PAGE", True)
    assert [one.name for one in links.links(WindowLink, CutLink)] == ["Window", "Cut"]
