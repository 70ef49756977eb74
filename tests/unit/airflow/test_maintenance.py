from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cdc_airflow.dag_ids import MAINTENANCE
from cdc_airflow.factory import make_dags, make_maintenance
from cdc_airflow.operators.maintenance import CollectOperator
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor
from cdc_lib.store.cursors import ObjectCursorStore
from cdc_lib.store.objects.local import LocalStore
from tests.harness.lake.batches import IDENTITY, BatchWriter, at


def test_each_source_has_tasks_of_its_own_and_a_wrong_one_hides_no_other(sources: Path):
    """They wait for nothing: a store that is away keeps no other source from being collected."""
    (sources / "wrong.yaml").write_text("nonsense: 1\n")
    dag = make_maintenance(sources)[MAINTENANCE]
    assert sorted(dag.task_ids) == ["collect_shop", "collect_stock", "maintain_shop", "maintain_stock"]
    assert all(not task.upstream_task_ids and not task.downstream_task_ids for task in dag.tasks)
    assert all("**Mark success**" in task.doc_md and "**Retry, clear**" in task.doc_md for task in dag.tasks)
    assert dag.catchup is False


def test_a_source_that_decodes_windows_again_has_a_task_for_it(sources: Path):
    """As `verify.daily_windows` says; others have none."""
    file = sources / "shop.yaml"
    file.write_text(f"{file.read_text()}verify: {{daily_windows: 3}}\n")
    added = set(make_maintenance(sources)[MAINTENANCE].task_ids) - {
        "collect_shop",
        "collect_stock",
        "maintain_shop",
        "maintain_stock",
    }
    assert added == {"decode_again_shop"}


def test_without_sources_there_is_nothing_to_maintain(tmp_path: Path):
    """No empty DAG is shown."""
    assert make_maintenance(tmp_path) == {}


def test_a_worker_of_another_dag_does_not_build_it(sources: Path, monkeypatch: pytest.MonkeyPatch):
    """And one of its own builds nothing else."""
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", "cdc_stock")
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_TASK_ID", "plan")
    assert make_maintenance(sources) == {}
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", MAINTENANCE)
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_TASK_ID", "collect_shop")
    assert list(make_maintenance(sources)) == [MAINTENANCE]
    assert make_dags(sources) == {}


def test_the_task_removes_what_all_have_read_as_long_as_the_source_file_says(sources: Path, tmp_path: Path):
    """Old enough by its own setting; the rest stays, and the result says why."""
    path = sources / "shop.yaml"
    text = path.read_text()
    path.write_text(text.replace('/store"}', '/store", keep_batches_for: 30d}'))
    store = LocalStore(tmp_path / "store")
    writer, cursors = BatchWriter(store), ObjectCursorStore(store)
    days_ago = [datetime.now(UTC).timestamp() - 86_400 * days for days in (40, 20)]
    for (start, stop), age in zip([(4, 100), (100, 200)], days_ago, strict=True):
        os.utime(store.root / writer.window(start, stop, {}), (age, age))
    for name in (DRAIN, LAKE):
        cursors.swap(None, Cursor("shop", name, 0, 1, IDENTITY, at(200)))
    task = CollectOperator(task_id="collect_shop", source_file=str(path))
    result = task.execute({})
    assert (result["removed"], result["kept"]) == (1, {"younger than store.keep_batches_for": 1})
    assert len(list(store.list("shop/batches"))) == 1
    assert task.execute({})["removed"] == 0


def test_source_files_that_are_added_changed_or_removed_are_noticed(sources: Path):
    """Each parsing looks at the folder again; what a source left in its store stays."""
    (sources / "orders.yaml").write_text((sources / "shop.yaml").read_text())
    assert [name for name in sorted(make_dags(sources)) if "." not in name] == ["cdc_orders", "cdc_shop", "cdc_stock"]
    changed = (sources / "orders.yaml").read_text().replace("*/7", "*/9").replace("parallelism: 3", "parallelism: 5")
    (sources / "orders.yaml").write_text(changed)
    dag = make_dags(sources)["cdc_orders"]
    assert dag.get_task("drain").max_active_tis_per_dagrun == 5
    assert dag.schedule.endswith("/9 * * * *")
    (sources / "orders.yaml").unlink()
    assert [name for name in sorted(make_dags(sources)) if "." not in name] == ["cdc_shop", "cdc_stock"]
    assert sorted(make_maintenance(sources)[MAINTENANCE].task_ids) == [
        "collect_shop",
        "collect_stock",
        "maintain_shop",
        "maintain_stock",
    ]


@pytest.mark.parametrize("path", sorted((Path(__file__).parents[3] / "dags").glob("*.py")), ids=lambda path: path.name)
def test_airflow_looks_into_every_dag_file(path: Path):
    """It passes over files that do not hold both words, which save it from reading modules that make no DAG."""
    text = path.read_text().lower()
    assert "dag" in text
    assert "airflow" in text
