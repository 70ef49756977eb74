"""Tries of a task after the first are counted for Prometheus."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from cdc_airflow.hooks import CdcHook
from cdc_airflow.operators import CdcOperator
from cdc_lib.status.prometheus import Exposition, figures_of


class DoneOperator(CdcOperator):
    """Does its work at once."""

    def work(self, hook: CdcHook, context: Any) -> str:  # noqa: ARG002 - the operator's signature
        """Return what a task returns."""
        return "done"


def tried(file: Path, number: int, task_id: str = "drain") -> None:
    task = DoneOperator(task_id=task_id, source_file=str(file))
    assert task.execute({"ti": SimpleNamespace(try_number=number)}) == "done"  # type: ignore[arg-type]


def counted(file: Path) -> dict[str, float]:
    """Return the samples by task, as a scrape of the endpoint or ``cdc metrics`` has them."""
    pipeline = CdcHook(file).lake_pipeline()
    figures = figures_of(pipeline)
    families = text_string_to_metric_families(Exposition([figures]).text())
    samples = [one for family in families for one in family.samples if one.name == "cdc_task_retries_total"]
    assert {one.labels["source"] for one in samples} <= {"shop"}
    return {one.labels["task_id"]: one.value for one in samples}


def test_tries_after_the_first_are_counted_by_task(sources: Path):
    """A first try is none; mapped tasks of one kind are counted together."""
    file = sources / "shop.yaml"
    tried(file, 1)
    assert counted(file) == {}
    for number, task_id in ((2, "drain"), (2, "drain"), (3, "drain"), (2, "merge")):
        tried(file, number, task_id)
    assert counted(file) == {"drain": 3, "merge": 1}


def test_a_store_that_refuses_the_count_keeps_no_task_from_its_work(
    sources: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """The log says that the figure lacks it."""
    file = sources / "shop.yaml"
    blocked = tmp_path / "blocked"
    blocked.write_text("a file, where the folder of the store would be")
    store = CdcHook(file).config.store.url
    file.write_text(file.read_text().replace(store, f"file://{blocked}/store"))
    tried(file, 2)
    assert "missing in cdc_task_retries_total" in capsys.readouterr().out
