"""``cdc schema``: questions about schema changes, and their answers, from the store alone."""

from __future__ import annotations

import json

import pytest

from cdc_lib.config import load_source
from cdc_lib.model.table_name import TableName
from cdc_lib.store.objects.local import LocalStore
from tests.harness.shop.schema_questions import ASKED_AT as AT
from tests.harness.shop.schema_questions import keep_question

ORDERS = TableName("shop", "orders")


@pytest.fixture
def asked(tmp_path, sources):
    """Return a function that stores what the last merge asked about the orders."""
    with (sources / "shop.yaml").open("a") as file:
        file.write("schema_changes: {truncate: ask, rename: ask}\n")
    store = LocalStore(tmp_path / "store")

    def _asked(kind="truncate", position=AT):
        keep_question(store, "shop", ORDERS, kind, position)

    return _asked


def test_a_question_is_listed_until_a_merge_has_applied_its_answer(cdc, asked):
    """With the statement, what may be answered, and who answered."""
    assert "no table of shop waits" in cdc("schema", "questions", "shop").stdout
    asked()
    listed = cdc("schema", "questions", "shop")
    assert all(
        word in listed.stdout for word in ("shop.orders", "truncate", str(AT), "follow|keep", "waits for an answer")
    )
    assert "keep is the answer to truncate" in cdc("schema", "answer", "shop", "shop.orders", "keep").stdout
    (one,) = json.loads(cdc("schema", "questions", "shop", "--json").stdout)
    assert (one["change"], one["position"], one["decision"]) == ("truncate", str(AT), "keep")
    assert "schema answer" in one["answered_by"]
    assert one["answered_at"]


def test_the_status_names_the_question_and_the_command_that_answers(cdc, asked):
    """As every table that stopped."""
    asked()
    shown = cdc("status", "shop").stdout
    assert f"the source ran TRUNCATE at {AT}, and the table waits for an answer (schema_changes.truncate: ask)" in shown
    assert "cdc schema answer shop shop.orders follow|keep; in Airflow, run the DAG cdc_shop.answer" in shown


def test_an_answer_without_its_question_is_refused(cdc, asked, sources):
    """Another table, another position, a statement that is merged, another decision, and a file that decides."""
    asked()

    def refused(*arguments):
        result = cdc("schema", "answer", "shop", *arguments)
        assert result.exit_code == 2
        return result.stderr

    assert "shop.other does not wait for an answer" in refused("shop.other", "keep")
    assert f"These wait: shop.orders at {AT} (truncate: follow or keep)" in refused(
        "shop.orders", "keep", "--position", "binlog.000003:4"
    )
    assert cdc("schema", "answer", "shop", "shop.orders", "keep", "--position", AT).exit_code == 0
    assert cdc("schema", "answer", "shop", "shop.orders", "keep", "--json").exit_code == 0
    assert "has answered keep" in refused("shop.orders", "follow")
    asked("rename")
    assert "keep is not possible for rename" in refused("shop.orders", "keep")
    text = (sources / "shop.yaml").read_text()
    (sources / "shop.yaml").write_text(text.replace("rename: ask", "rename: stop"))
    assert load_source(sources / "shop.yaml").schema_changes.rename == "stop"
    assert "no longer asks about rename" in refused("shop.orders", "follow")
