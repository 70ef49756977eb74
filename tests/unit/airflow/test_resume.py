"""The end of a quarantine, which a second person approves where the source file says so; over a real store."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cdc_airflow.airflow_versions import AirflowFailException
from cdc_airflow.operators.resume import ResumeOperator
from cdc_lib.errors import ConfigError
from cdc_lib.model.table_name import TableName
from cdc_lib.store.objects.local import LocalStore
from tests.harness.airflow.page_source import PageSource
from tests.harness.airflow.versions import WAITING, ends_with

ORDERS, ITEMS = (TableName("shop", name) for name in ("orders", "items"))
CONTEXT: Any = {"ti": SimpleNamespace(id=1, dag_id="d", run_id="r", task_id="resume", try_number=1)}


def test_a_resumed_table_waits_for_a_person_who_sees_its_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A table that is not quarantined asks nobody; another quarantine than the one that was shown is not ended."""
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr("cdc_airflow.approvals.upsert_hitl_detail", lambda **given: asked.append(given))
    monkeypatch.setenv("CDC_TEST_PASSWORD", "secret")
    store, changed = LocalStore(tmp_path / "store"), {"approvals": {"resume": True}}
    PageSource(tmp_path, store, "shop", tables=[ORDERS, ITEMS], quarantined=[ORDERS], changed=changed).write()

    def task(table: TableName) -> ResumeOperator:
        return ResumeOperator(task_id="resume", source_file=str(tmp_path / "shop.yaml"), table=str(table))

    with pytest.raises(ends_with(ConfigError), match=r"shop\.items is not quarantined.*Quarantined: shop\.orders"):
        task(ITEMS).execute(CONTEXT)
    assert not asked
    with pytest.raises(WAITING) as waiting:
        task(ORDERS).execute(CONTEXT)
    assert asked[0]["subject"] == "Resume shop.orders of shop?"
    assert "a value with no exact place in the lake" in asked[0]["body"]
    kept = waiting.value.kwargs
    assert kept is not None
    person = {"responded_by_user": {"id": "7", "name": "Ada"}}
    with pytest.raises(AirflowFailException, match="Ada rejected it"):
        task(ORDERS).approved(CONTEXT, {**person, "chosen_options": ["Reject"]}, **kept)
    with pytest.raises(ends_with(ConfigError), match="no longer the one that was approved"):
        task(ORDERS).approved(
            CONTEXT, {**person, "chosen_options": ["Approve"]}, **{**kept, "start": "binlog.000009:4"}
        )
