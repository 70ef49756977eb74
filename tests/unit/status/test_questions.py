"""A schema change that waits for an answer, as the page and ``cdc doctor`` show it: from documents alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cdc_lib.merge.answers import open_questions
from cdc_lib.model.schema_question import SchemaAnswer
from cdc_lib.model.table_name import TableName
from cdc_lib.status.holdings import Holdings
from cdc_lib.status.source_state import state_of
from cdc_lib.status.table_rows import table_rows
from cdc_lib.store.objects.local import LocalStore
from cdc_lib.store.schema_answers import keep_answer
from tests.harness.airflow.page_source import PageSource, reader_of
from tests.harness.shop.schema_questions import ASKED_AT

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
ORDERS, ITEMS = (TableName("shop", name) for name in ("orders", "items"))


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    """A store in which the orders wait for an answer, and the items stopped for another reason."""
    store = LocalStore(tmp_path / "store")
    facts = {"tables": [ORDERS, ITEMS], "asked": [ORDERS], "stopped": [ITEMS]}
    PageSource(tmp_path / "sources", store, "shop", ended=NOW - timedelta(minutes=1), **facts).write()
    return store


def read(store: LocalStore) -> Holdings:
    return reader_of(store).read(NOW)


def test_a_table_that_waits_has_its_question_and_names_the_dag_that_answers(store: LocalStore):
    """A table that stopped for another reason has none."""
    found = read(store)
    items, orders = table_rows(found)
    assert (items.state, items.question) == ("stopped", None)
    assert orders.state == "stopped"
    assert orders.question is not None
    assert (orders.question.question.position, orders.question.answer) == (ASKED_AT, None)
    assert "in Airflow, run the DAG cdc_shop.answer" in orders.note
    (asked,) = [one for one in found.findings if "waits for an answer" in one.what]
    assert asked.level == "error"
    assert "cdc schema answer shop shop.orders follow|keep; in Airflow, run the DAG cdc_shop.answer" in asked.hint


def test_an_answered_question_is_a_warning_that_names_who_answered(store: LocalStore):
    """Until the next merge; it asks nobody any more, and comes after what does."""
    (asked,) = open_questions(store, "shop")
    assert keep_answer(store, SchemaAnswer("shop", asked.question, "keep", "Ada", NOW))
    found = read(store)
    assert [one.level for one in found.findings] == ["error", "warning"]
    assert found.findings[1].hint == "Ada has answered keep. The next merge applies it."
    orders = table_rows(found)[1]
    assert "Ada has answered keep" in orders.note
    assert "cdc schema answer" not in orders.note
    assert state_of(found) == "failed"  # the items
