"""What the test of a connection answers: Airflow takes 2,000 characters from a worker, and a longer answer for a failure."""

from __future__ import annotations

import pytest

from cdc_airflow.connection_answer import MOST, answer_of, line_of
from cdc_lib.model.finding import Finding, Level
from tests.harness.airflow.versions import of_3_3

OK = Finding("ok", "binlog_format is ROW")


def test_each_finding_is_one_line_in_its_order():
    """With its hint."""
    found = [OK, Finding("error", "no right\nto read", "GRANT SELECT"), OK]
    assert answer_of(found) == (
        False,
        "ok: binlog_format is ROW\nerror: no right to read. GRANT SELECT\nok: binlog_format is ROW",
    )
    assert answer_of([OK]) == (True, "ok: binlog_format is ROW")


def test_a_connection_is_not_good_if_something_could_not_be_looked_at():
    """Nobody knows whether a run works."""
    assert answer_of([OK, Finding("unknown", "the server could not be looked at within 30 s")])[0] is False
    assert answer_of([OK, Finding("info", "something answers")])[0] is True


def findings(level: Level, number: int, size: int) -> list[Finding]:
    return [Finding(level, f"{place} ".ljust(size, "x")) for place in range(number)]


@pytest.mark.parametrize("size", [1, 90, 1000, 1950, 1999, 5000])
def test_a_long_answer_has_errors_first_and_counts_the_rest(size: int):
    """It is as long as Airflow takes."""
    others: tuple[Level, ...] = ("ok", "info", "unknown", "warning")
    found = [*findings("ok", 294, size), *(one for level in others for one in findings(level, 2, size))]
    found += findings("error", 2, size)
    good, text = answer_of(found)
    lines = text.splitlines()
    assert not good
    assert lines[0].startswith("error: 0")
    assert len(text) <= MOST
    assert lines[-1] == f"and {304 - len(lines) + 1} more lines; cdc doctor prints all"


@of_3_3
def test_a_worker_may_give_the_longest_answer():
    """Airflow shows nothing of a longer one."""
    from airflow.api_fastapi.execution_api.datamodels.connection_test import ConnectionTestResultBody

    _, text = answer_of(findings("error", 300, 90))
    assert len(text) > MOST - 100
    assert ConnectionTestResultBody(state="failed", result_message=text).result_message == text


def test_one_line_is_cut_where_it_is_too_long():
    """Of an error that is not a finding."""
    assert len(line_of("error", "x" * 5000)) == MOST
