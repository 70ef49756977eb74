"""The forms of the runs by hand: what they take, and what is refused before anything is asked of a server."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cdc_airflow.airflow_versions import ParamValidationError
from cdc_airflow.factory import make_dags
from cdc_airflow.forms import is_on, listed
from cdc_airflow.operators import RewindOperator, SnapshotOperator
from cdc_lib.errors import ConfigError
from tests.harness.airflow.versions import ends_with


def rendered(sources: Path, dag_id: str, **params: Any) -> Any:
    """Return the one task of a DAG with its templates filled from a form."""
    (task,) = make_dags(sources)[dag_id].tasks
    task.render_template_fields({"params": params})
    return task


def test_a_form_without_tables_is_refused_by_airflow(sources: Path):
    """The form asks for them; the API answers with what is wrong."""
    params = make_dags(sources)["cdc_shop.snapshot"].params
    with pytest.raises(ParamValidationError):
        params.validate()
    with pytest.raises(ParamValidationError):
        params["tables"] = []
    params["tables"] = ["shop.orders"]
    assert params.validate()["where"] == ""


def test_what_is_typed_arrives_as_it_is(sources: Path):
    """Quotes, angle brackets and braces of a condition and of names."""
    where = """name <> 'it''s' AND note <> "{{ x }}" """
    task = rendered(
        sources,
        "cdc_shop.snapshot",
        tables=["shop.{{a}}", "shop.<b>"],
        key_from="",
        key_to="",
        where=where,
        why="a & b",
    )
    assert listed(task.tables) == ["shop.{{a}}", "shop.<b>"]
    assert (task.where, task.why) == (where, "a & b")


def test_a_table_is_resumed_by_its_name_which_is_no_pattern_and_arrives_as_it_is(
    sources: Path, monkeypatch: pytest.MonkeyPatch
):
    """An empty field is refused by the form; what is no name before a server is asked."""
    params = make_dags(sources)["cdc_shop.resume"].params
    with pytest.raises(ParamValidationError):
        params["table"] = ""
    task = rendered(sources, "cdc_shop.resume", table="shop.`{{a}}<b>*`")
    assert task.table == "shop.`{{a}}<b>*`"
    monkeypatch.setenv("CDC_TEST_PASSWORD", "secret")
    task.table = "orders"
    with pytest.raises(ends_with(ConfigError), match=r"'orders' is not database\.table"):
        task.execute({"ti": SimpleNamespace(dag_id="d", run_id="r", task_id="t", try_number=1)})


@pytest.mark.parametrize(
    "given",
    [
        {"tables": []},
        {"tables": ["shop.*", "crm.*"], "where": "id = 1"},
        {"tables": ["shop.orders"], "where": "id = 1", "key_from": "1"},
    ],
)
def test_a_snapshot_of_something_unclear_is_refused(sources: Path, given: dict[str, Any]):
    """The error names the source and what a form may say."""
    task = SnapshotOperator(task_id="snapshot", source_file=str(sources / "shop.yaml"), **given)
    with pytest.raises(
        ends_with(ConfigError), match=r"not clear what to read.*source=shop.*or one table with key_from"
    ):
        task.execute({})


def test_an_invalid_list_of_tables_is_refused():
    """A DAG that is written by hand may give one text."""
    for wrong in ("shop.orders", "{}", "[1]"):
        with pytest.raises(ConfigError, match="is not a list of texts"):
            listed(wrong)
    assert [is_on(value) for value in (True, "True", "false", False)] == [True, True, False, False]
    with pytest.raises(ConfigError, match="neither true nor false"):
        is_on("perhaps")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, r"name exactly one position.*given=nothing"),
        ({"time": "2026-11-21T06:00:00Z", "gtid": "a:1"}, r"name exactly one position.*given=time, gtid"),
        ({"undo": True, "position": "binlog.000001:4"}, r"name exactly one position.*given=position, undo"),
        ({"time": "yesterday"}, r"timestamp is not a time.*Correct time"),
        ({"position": "binlog"}, r"position is not file:offset.*Correct position"),
        ({"position": "binlog.000001:4", "move": True}, r"needs a reason"),
        ({"undo": True}, r"undo without move"),
    ],
)
def test_a_rewind_without_exactly_one_position_is_refused(
    sources: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], message: str
):
    """Before the server is asked; the error names the field."""
    monkeypatch.setenv("CDC_TEST_PASSWORD", "secret")
    task = RewindOperator(task_id="rewind", source_file=str(sources / "shop.yaml"), **given)
    with pytest.raises(ends_with(ConfigError), match=message):
        task.execute({})


def test_the_form_of_a_rewind_moves_nothing_without_move(sources: Path):
    """And is not tried again: a try that ended after the move would be followed by another move."""
    dag = make_dags(sources)["cdc_shop.rewind"]
    values = dag.params.validate()
    assert (values["move"], values["undo"]) == (False, False)
    task = rendered(sources, "cdc_shop.rewind", **values)
    assert (task.time, task.move, task.undo, task.retries) == ("", "False", "False", 0)


def test_the_form_of_a_comparison_takes_the_tables_of_the_file_by_default(sources: Path):
    """A run of the schedule has the defaults of the form."""
    dag = make_dags(sources)["cdc_shop.verify"]
    task = rendered(sources, "cdc_shop.verify", **dag.params.validate())
    assert (listed(task.tables), is_on(task.repair)) == ([], False)


def test_the_form_of_an_erasure_asks_for_a_table_and_keeps_its_slot(sources: Path):
    """The values it looks for at its end are in its memory: a task that is deferred would write them into Airflow's database."""
    dag = make_dags(sources)["cdc_shop.erase"]
    with pytest.raises(ParamValidationError):
        dag.params.validate()
    dag.params["table"] = "shop.customers"
    task = rendered(sources, "cdc_shop.erase", **{**dag.params.validate(), "keys": ["4,2", "a\n"]})
    assert (task.table, listed(task.keys), task.where) == ("shop.customers", ["4,2", "a\n"], "")
    assert (listed(task.columns), is_on(task.lake_only), task.deferrable) == ([], False, False)
