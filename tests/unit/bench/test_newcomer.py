"""What the benchmark of a newcomer types is what the pages print today, and its answers fit what ``cdc init`` asks."""

from __future__ import annotations

import subprocess
import sys

import pytest

from cdc_lib.config import load_source
from tests.bench.newcomer import ROWS, Newcomer, Step, StepFailed, figures_of, others, with_airflow, without_airflow
from tests.bench.report import save
from tests.harness.docs.pages import usage_problem
from tests.harness.shop.terminal import typed

DAILY = ["cdc doctor billing", "cdc run billing", "cdc status billing", "cdc verify billing"]


class Notes(Newcomer):
    """Notes commands instead of running them."""

    shown = f"billing.orders {ROWS} rows"

    def types(self, name, line, answers=()):
        del name
        self.typed = [*getattr(self, "typed", ()), (line, tuple(answers))]
        return self.shown


@pytest.fixture
def person(tmp_path):
    """Return somebody whose home is an empty folder."""
    return Notes(tmp_path, {"HOME": str(tmp_path), "DB_HOST": "127.0.0.1", "DB_PORT": "3307"})


def words(person, tail="cdc "):
    """Return the ``cdc`` commands that were typed."""
    lines = [line.removeprefix("~/lakecdc/bin/") for line, _ in person.typed]
    return [line for line in lines if line.startswith(tail)]


def test_the_way_without_airflow_is_install_kernels_source_run_and_comparison(person):
    """A page that prints other commands changes what is measured; each is one that the command line knows."""
    without_airflow(person)
    lines = [line for line, _ in person.typed]
    assert lines[0] == "python3 -m venv ~/lakecdc"
    assert lines[1].startswith("~/lakecdc/bin/pip install ")
    assert "python -m cdc_lib.compile_kernels" in lines
    assert words(person) == ["cdc init", "cdc doctor billing", *DAILY]
    assert [usage_problem(line) for line in words(person)] == [None] * 6


def test_the_way_with_an_airflow_ends_with_a_run_of_the_dag_and_the_comparison(person):
    with_airflow(person, "3.3.2")
    lines = [line for line, _ in person.typed]
    assert "apache-airflow==3.3.2 -c /pins.txt" in lines[0]
    assert "apache-airflow==3.3.2\n" in (person.root / "pins.txt").read_text()
    assert lines[1] == 'pip install ".[airflow,read,spark]"'
    assert words(person) == ["cdc init", "cdc doctor", *DAILY[2:]]
    assert "airflow standalone" in lines[-3]
    subprocess.run(["bash", "-n", "-c", f"{lines[-3]}; exit"], check=True)


def test_the_answers_of_the_first_source_make_files_that_load(person, tmp_path, monkeypatch):
    """Each is the answer to another question."""
    monkeypatch.delenv("BILLING_PASSWORD", raising=False)
    person.first_source("cdc init")
    folder = tmp_path / "sources"
    ((_, answers),) = person.typed
    code, shown = typed((sys.executable, "-m", "cdc_lib.cli", "--sources", str(folder), "init"), answers)
    assert code == 0, shown
    config = load_source(folder / "billing.yaml")
    assert (config.server.host, config.server.port, config.server.user) == ("127.0.0.1", 3307, "cdc")
    assert config.server.password_env == "BILLING_PASSWORD"
    assert config.tables.include == ("billing.*",)
    assert (config.store.url, config.lake.warehouse) == (f"file://{tmp_path}/batches", f"file://{tmp_path}/lake")


@pytest.mark.parametrize("shown", ["", "billing.orders 0 rows", f"billing.other {ROWS} rows"])
def test_a_comparison_of_nothing_ends_the_benchmark(person, shown):
    person.shown = shown
    with pytest.raises(StepFailed, match="no table was compared"):
        without_airflow(person)


def test_a_step_that_fails_is_named_with_what_it_showed(tmp_path):
    """Without a Debian in the folder, nothing can be run there."""
    person = Newcomer(tmp_path, {"PATH": "/usr/bin:/bin"}, "no Airflow")
    with pytest.raises(StepFailed, match="first: exit status"):
        person.types("first", "true")
    assert [figure.name for figure in figures_of(person.steps)] == [
        f"no Airflow: {name}: {what}" for name in ("all steps", "first") for what in ("minutes", "CPU")
    ]


def test_parts_that_are_measured_again_replace_their_figures_alone(tmp_path):
    path = tmp_path / "newcomer.json"
    first = [Step(part, "cdc init", 60, 1.0) for part in ("3.1.8", "3.3.2")]
    assert others(path, first) == []
    save(figures_of(first), "none", {"load_before": 0.1}, path)
    kept = others(path, [Step("3.3.2", "cdc doctor", 60, 2.0)])
    assert kept == figures_of(first[:1])
