"""The answer to a schema change by a run with a form: over a real store, without a server."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from cdc_airflow.airflow_versions import AirflowFailException, ParamValidationError
from cdc_airflow.factory import make_dags
from cdc_airflow.operators.answer import AnswerOperator
from cdc_lib.errors import ConfigError
from cdc_lib.merge.answers import open_questions
from cdc_lib.model.schema_question import SchemaAnswer
from cdc_lib.model.table_name import TableName
from cdc_lib.store.objects.local import LocalStore
from tests.harness.airflow.versions import WAITING, ends_with, timeout_of
from tests.harness.shop.schema_questions import ASKED_AT, keep_question

ORDERS = TableName("shop", "orders")
CONTEXT: Any = {"ti": SimpleNamespace(id=1, dag_id="d", run_id="r", task_id="answer", try_number=1)}


@pytest.fixture
def store(tmp_path: Path, sources: Path) -> LocalStore:
    """The store of a source that asks about the columns and rows of its tables."""
    change(sources, store={"url": f"file://{tmp_path}/store"}, schema_changes={"truncate": "ask", "rename": "ask"})
    return LocalStore(tmp_path / "store")


def change(sources: Path, **keys: Any) -> None:
    """Change top-level keys of the source file."""
    file = sources / "shop.yaml"
    file.write_text(yaml.safe_dump({**yaml.safe_load(file.read_text()), **keys}))


def task(sources: Path, answer: str = "keep", table: str = "shop.orders", position: str = "") -> AnswerOperator:
    file = str(sources / "shop.yaml")
    return AnswerOperator(task_id="answer", source_file=file, table=table, answer=answer, position=position)


def answered(store: LocalStore) -> SchemaAnswer | None:
    (one,) = open_questions(store, "shop")
    return one.answer


def test_an_answer_of_a_form_is_kept_with_its_run(sources: Path, store: LocalStore, capsys: pytest.CaptureFixture[str]):
    """Only once, however often the task is tried; the log says what follows."""
    keep_question(store, "shop", ORDERS)
    expected = {"table": "shop.orders", "change": "truncate", "position": str(ASKED_AT), "answer": "keep"}
    first = task(sources, position=str(ASKED_AT)).execute(CONTEXT)
    assert first.items() >= expected.items()
    assert first["by"] == "airflow d r answer try 1"
    given = answered(store)
    assert given is not None
    assert (given.decision, given.by) == ("keep", first["by"])
    assert task(sources).execute(CONTEXT) == first
    assert answered(store) == given
    assert "the next merge applies it: the next run of cdc_shop" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("kind", "given", "message"),
    [
        ("truncate", {"table": "shop.other"}, r"shop\.other does not wait.*These wait: shop\.orders at binlog\.000003:120 \(truncate: follow or keep\)"),
        ("truncate", {"position": "binlog.000003:4"}, r"does not wait for an answer at binlog\.000003:4.*These wait: shop\.orders"),
        ("truncate", {"position": "here"}, r"'here' is not a position"),
        ("truncate", {"table": "orders"}, r"'orders' is not database\.table"),
        ("truncate", {"answer": "drop"}, r"'drop' is not an answer.*Answer follow or keep"),
        ("rename", {}, r"keep is not possible for rename.*Answer follow"),
    ],
)  # fmt: skip
def test_an_answer_that_is_not_possible_is_refused_with_those_that_are(
    sources: Path, store: LocalStore, kind: Any, given: dict[str, str], message: str
):
    """In one error, and nothing is recorded."""
    keep_question(store, "shop", ORDERS, kind)
    with pytest.raises(ends_with(ConfigError), match=message):
        task(sources, **given).execute(CONTEXT)
    assert answered(store) is None


def test_another_answer_than_the_one_that_was_given_is_refused(sources: Path, store: LocalStore):
    """Who came first is named."""
    keep_question(store, "shop", ORDERS)
    task(sources, "follow").execute(CONTEXT)
    with pytest.raises(ends_with(ConfigError), match="airflow d r answer try 1 has answered follow"):
        task(sources, "keep").execute(CONTEXT)


def test_the_form_asks_for_the_table_and_offers_the_answers(sources: Path):
    """An empty or another one is refused by Airflow; a name arrives as it was typed."""
    dag = make_dags(sources)["cdc_shop.answer"]
    for name, wrong in (("table", ""), ("answer", "maybe"), ("answer", "")):
        with pytest.raises(ParamValidationError):
            dag.params[name] = wrong
    with pytest.raises(ParamValidationError):
        dag.params.validate()
    (made,) = dag.tasks
    made.render_template_fields({"params": {"table": "shop.`{{a}}<b>*`", "answer": "follow", "position": ""}})
    assert isinstance(made, AnswerOperator)
    assert (made.table, made.answer, made.position) == ("shop.`{{a}}<b>*`", "follow", "")


def test_an_answer_waits_for_a_second_person_where_the_source_file_says_so(
    sources: Path, store: LocalStore, monkeypatch: pytest.MonkeyPatch
):
    """What was shown is what is answered: not a later statement of the same table."""
    asked: list[str] = []
    monkeypatch.setattr("cdc_airflow.approvals.upsert_hitl_detail", lambda **given: asked.append(given["subject"]))
    change(sources, approvals={"answer": True, "timeout": "2h"})
    with pytest.raises(ends_with(ConfigError), match="does not wait"):
        task(sources).execute(CONTEXT)
    keep_question(store, "shop", ORDERS)
    with pytest.raises(WAITING) as waiting:
        task(sources).execute(CONTEXT)
    assert asked == ["Answer keep to truncate of shop.orders?"]
    assert timeout_of(waiting.value) == timedelta(hours=2)
    kept = {"position": str(ASKED_AT)}
    assert waiting.value.kwargs == kept
    person = {"responded_by_user": {"id": "7", "name": "Ada"}}
    with pytest.raises(AirflowFailException, match="Ada rejected it"):
        task(sources).approved(CONTEXT, {**person, "chosen_options": ["Reject"]}, **kept)
    assert answered(store) is None
    found = task(sources).approved(CONTEXT, {**person, "chosen_options": ["Approve"]}, **kept)
    assert found["by"].endswith("approved by Ada")
    assert answered(store) is not None
    with pytest.raises(ends_with(ConfigError), match=r"does not wait for an answer at binlog\.000003:4"):
        task(sources).approved(CONTEXT, {**person, "chosen_options": ["Approve"]}, position="binlog.000003:4")
