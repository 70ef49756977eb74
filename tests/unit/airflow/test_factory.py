from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import traceback
from datetime import timedelta
from pathlib import Path

import pendulum
import pytest
from airflow.sdk import DAG, TriggerRule
from airflow.timetables.base import TimeRestriction

from cdc_airflow import docs, factory, source_dags
from cdc_airflow.airflow_versions import DOUBLED, IS_3_2
from cdc_airflow.factory import make_dags, make_maintenance, refuse_wrong_sources, sources_folder
from cdc_airflow.triggers import BinlogTrigger
from cdc_lib.config import SourceConfig
from cdc_lib.errors import ConfigError
from tests.harness.airflow.versions import DagBag, as_scheduled

ROOT = Path(__file__).resolve().parents[3]
HEAVY = ("boto3", "cdc_lib.pipeline", "numba", "pandas", "pyarrow", "pymysql", "pymysqlreplication", "pyspark")
KINDS = ("", ".answer", ".backfill", ".erase", ".resume", ".rewind", ".snapshot", ".verify")
BOTH = [f"cdc_{source}{kind}" for source in ("shop", "stock") for kind in KINDS]
CHAIN = ["plan", "drain", "ack_drain", "plan_merge", "merge", "ack_lake", "seal_days"]


def test_each_source_file_makes_a_dag_whose_tasks_follow_one_another(sources: Path):
    """The order of the tasks is the way of the data."""
    dags = make_dags(sources)
    assert sorted(dags) == BOTH
    dag = dags["cdc_shop"]
    assert [task.task_id for task in dag.topological_sort()] == CHAIN
    for before, after in itertools.pairwise(CHAIN):
        assert dag.get_task(before).downstream_task_ids == {after}


def test_the_page_of_dags_has_each_dag_with_its_tasks_in_order(sources: Path):
    """Its pictures are made from ``docs.OF_A_SOURCE`` and ``docs.OF_MAINTENANCE``."""
    covered = sources / "shop.yaml"
    covered.write_text(f"{covered.read_text()}verify: {{cover_every: 7d, on_difference: repair, daily_windows: 3}}\n")
    dags = make_dags(sources)
    kinds = sorted((*KINDS, ".cover"))
    assert sorted(dags) == sorted((*BOTH, "cdc_shop.cover"))
    made = {kind: [task.task_id for task in dags[f"cdc_shop{kind}"].topological_sort()] for kind in kinds}
    assert {kind: [*tasks] for kind, tasks in docs.OF_A_SOURCE.items()} == made
    for kind, tasks in docs.OF_A_SOURCE.items():
        assert {name: dags[f"cdc_shop{kind}"].get_task(name).doc_md for name in tasks} == tasks
    maintenance = make_maintenance(sources)["cdc_maintenance"]
    texts = {task.task_id: task.doc_md for task in maintenance.tasks if task.task_id.endswith("_shop")}
    assert texts == {f"{name}_shop": text for name, text in docs.OF_MAINTENANCE.items()}
    assert not any(task.upstream_task_ids or task.downstream_task_ids for task in maintenance.tasks)


def test_a_wrong_source_is_an_error_of_its_own_and_hides_no_other(sources: Path):
    """The message names file, key and what is allowed; not the value of an unknown key, which may be a password."""
    (sources / "wrong.yaml").write_text("server: {host: h, user: u, password_env: P, prot: 3307}\ntables: [a.*]\n")
    assert sorted(make_dags(sources)) == BOTH
    with pytest.raises(ConfigError) as error:
        refuse_wrong_sources(sources)
    for word in ("wrong.yaml", "server.prot", "did you mean 'port'"):
        assert word in str(error.value)
    assert "3307" not in str(error.value)
    assert "shop.yaml" not in str(error.value)


@pytest.mark.parametrize(
    "text", ["merge: &a {conf: *a}\n", "tables: " + "[" * 100_000, "retention_warning: 2026-02-30\n"]
)
def test_a_file_that_breaks_its_reader_takes_no_dag_from_the_others(sources: Path, text: str):
    """One file with an alias inside itself made the DAGs of all sources stale within seconds."""
    (sources / "bad.yaml").write_text(text)
    assert sorted(make_dags(sources)) == BOTH
    with pytest.raises(ConfigError, match=r"bad\.yaml"):
        refuse_wrong_sources(sources)


def test_a_source_of_which_airflow_makes_no_dag_takes_none_from_the_others(sources: Path, monkeypatch):
    """It is shown with the wrong files; what Airflow says of it may hold a value of the file, and is not repeated."""
    real = source_dags.make_request_dag

    def refuses(request: source_dags.Request, config: SourceConfig, path: Path):
        if (config.source, request.kind) == ("shop", "backfill"):
            raise ValueError("hunter2")
        return real(request, config, path)

    monkeypatch.setattr(source_dags, "make_request_dag", refuses)
    assert sorted(make_dags(sources)) == [f"cdc_stock{kind}" for kind in KINDS]
    with pytest.raises(ConfigError, match=r"ends in ValueError.*shop\.yaml") as error:
        refuse_wrong_sources(sources)
    assert "hunter2" not in "".join(traceback.format_exception(error.value))


def test_all_wrong_sources_are_reported_at_once(sources: Path):
    """Mending one file after another, each after a wait for the DAG processor, would take all day."""
    for name in ("one", "two"):
        (sources / f"{name}.yaml").write_text("nonsense: 1\n")
    with pytest.raises(ConfigError, match=r"(?s)2 sources are wrong.*one\.yaml.*two\.yaml"):
        refuse_wrong_sources(sources)


def test_right_sources_raise_nothing(sources: Path):
    """No import error stands where nothing is wrong."""
    refuse_wrong_sources(sources)


def test_no_run_is_made_for_the_past_beside_another_or_by_a_backfill(sources: Path):
    """What a run does is decided by the cursors, never by its date."""
    dag = make_dags(sources)["cdc_shop"]
    assert dag.catchup is False
    assert dag.max_active_runs == 1
    if IS_3_2:
        assert "backfill" not in {str(kind.value) for kind in dag.allowed_run_types}


def test_a_source_without_a_schedule_runs_by_hand_only(sources: Path):
    """``schedule: null`` is a right value."""
    path = sources / "shop.yaml"
    path.write_text(path.read_text().replace('"*/7 * * * *"', "null"))
    assert make_dags(sources)["cdc_shop"].timetable.can_be_scheduled is False


def test_runs_begin_in_the_time_zone_of_the_source_file(sources: Path):
    """Also after the clocks were changed; in UTC without it. A range of hours may go past midnight, as Airflow reads it."""
    path = sources / "shop.yaml"
    text = path.read_text().replace('"*/7 * * * *"', '"30 22-2 * * *"')
    for zone, hour in (("", 22), ("timezone: Europe/Berlin\n", 20)):
        path.write_text(text + zone)
        timetable = as_scheduled(make_dags(sources)["cdc_shop"]).timetable
        now = pendulum.datetime(2026, 7, 1, 12)
        runs = []
        for _ in range(6):
            restriction = TimeRestriction(earliest=now, latest=None, catchup=True)
            now = timetable.next_dagrun_info(last_automated_data_interval=None, restriction=restriction).run_after
            runs.append(now.in_timezone("UTC").hour)
            now = now.add(seconds=1)
        assert runs == [(hour + one) % 24 for one in (0, 1, 2, 3, 4, 24)]


def test_acks_run_when_there_was_nothing_to_drain_or_merge_and_never_after_a_failure(sources: Path):
    """A skipped task lets the next ones take up what waits; a failed one stops them."""
    dag = make_dags(sources)["cdc_shop"]
    for name in ("ack_drain", "ack_lake", "seal_days"):
        assert dag.get_task(name).trigger_rule == TriggerRule.NONE_FAILED
    for name in ("plan", "plan_merge", "merge"):
        assert dag.get_task(name).trigger_rule == TriggerRule.ALL_SUCCESS


def test_the_last_task_never_runs_after_a_failure_so_that_a_run_is_green_only_when_all_went_well(sources: Path):
    """A leaf that runs in any case would make failed runs green."""
    dag = make_dags(sources)["cdc_shop"]
    assert [task.task_id for task in dag.leaves] == ["seal_days"]
    assert dag.get_task("seal_days").trigger_rule == TriggerRule.NONE_FAILED
    assert not any(task.is_teardown for task in dag.tasks)


def test_tasks_are_tried_again_with_growing_delays(sources: Path):
    """Retries are for errors that go away by themselves."""
    dag = make_dags(sources)["cdc_shop"]
    for task in dag.tasks:
        assert task.retries == 3
        assert task.retry_delay == timedelta(seconds=30)
        assert task.retry_exponential_backoff is DOUBLED


def test_drains_run_side_by_side_as_the_source_file_says(sources: Path):
    """``drain.parallelism`` is the number of drain tasks of one run."""
    assert make_dags(sources)["cdc_shop"].get_task("drain").max_active_tis_per_dagrun == 3


def test_every_task_says_what_clearing_and_marking_it_does(sources: Path):
    """Whoever is about to press the button reads it in the same place."""
    dag = make_dags(sources)["cdc_shop"]
    for task in dag.tasks:
        assert "**Mark success**" in task.doc_md
        assert "**Retry, clear**" in task.doc_md
    assert "db.example:3306" in dag.doc_md


def test_a_worker_builds_only_the_dag_of_its_task(sources: Path, monkeypatch: pytest.MonkeyPatch):
    """A task of one source does not pay for the others."""
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", "cdc_stock")
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_TASK_ID", "plan")
    assert list(make_dags(sources)) == ["cdc_stock"]


def test_source_files_are_beside_the_dag_file_unless_the_environment_says_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """``CDC_SOURCES`` is the same variable that the command takes."""
    monkeypatch.delenv("CDC_SOURCES", raising=False)
    assert sources_folder(str(tmp_path / "cdc_sources.py")) == tmp_path / "sources"
    monkeypatch.setenv("CDC_SOURCES", str(tmp_path / "other"))
    assert sources_folder(str(tmp_path / "cdc_sources.py")) == tmp_path / "other"


def test_a_form_is_at_its_dag_alone_and_its_defaults_are_right_where_a_schedule_takes_them(sources: Path):
    """A task with a copy of the form took half of the time of a DAG's serialization; runs take the values from the DAG."""
    dags = make_dags(sources)
    with_form = {name for name, dag in dags.items() if dag.params}
    assert with_form == {name for name in BOTH if "." in name}
    assert not any(task.params for dag in dags.values() for task in dag.tasks)
    for kind in ("verify", "backfill"):
        dags[f"cdc_shop.{kind}"].params.validate()


def test_parsing_imports_nothing_heavy(sources: Path):
    """A DAG processor reads the file again and again, in a process that begins again each time."""
    code = f"""
import runpy, sys
names = runpy.run_path({str(ROOT / "dags" / "cdc_sources.py")!r})
assert "cdc_shop" in names, sorted(names)
print([name for name in {HEAVY!r} if name in sys.modules])
"""
    path = f"{ROOT}{os.pathsep}{ROOT / 'plugins'}"
    env = {**os.environ, "CDC_SOURCES": str(sources), "PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_pools_hold_the_drains_of_a_server_and_the_tasks_of_spark(sources: Path):
    """A source that names none is in Airflow's default pool."""
    path = sources / "shop.yaml"
    text = path.read_text().replace("{parallelism: 3}", "{parallelism: 3, pool: db_1}")
    path.write_text(f"{text}merge: {{pool: spark}}\n")
    dags = make_dags(sources)
    pools = {task.task_id: task.pool for task in dags["cdc_shop"].tasks}
    assert (pools["drain"], pools["merge"], pools["plan"]) == ("db_1", "spark", "default_pool")
    assert {dags[f"cdc_shop.{one}"].get_task(one).pool for one in ("verify", "backfill")} == {"spark"}
    assert {task.pool for task in dags["cdc_stock"].tasks} == {"default_pool"}
    (maintenance,) = factory.make_maintenance(sources).values()
    assert maintenance.get_task("maintain_shop").pool == "spark"


def test_the_settings_of_airflow_name_the_folder_and_keep_schedules(sources: Path, monkeypatch: pytest.MonkeyPatch):
    """The variable of the environment wins over them."""
    monkeypatch.delenv("CDC_SOURCES", raising=False)
    monkeypatch.setenv("AIRFLOW__CDC__SOURCES", str(sources))
    assert sources_folder("/elsewhere/dag.py") == sources.resolve()
    assert make_dags(sources)["cdc_shop"].schedule != "*/7 * * * *"
    monkeypatch.setenv("AIRFLOW__CDC__SPREAD_SCHEDULES", "False")
    assert make_dags(sources)["cdc_shop"].schedule == "*/7 * * * *"


def test_the_file_that_shows_wrong_sources_owns_no_dag(sources: Path, monkeypatch: pytest.MonkeyPatch):
    """It makes the DAGs to find what is wrong; a task that were read from it would fail with each wrong source."""
    monkeypatch.setenv("CDC_SOURCES", str(sources))
    found = {}
    for name in ("cdc_wrong_sources.py", "cdc_sources.py"):
        bag = DagBag(dag_folder=ROOT / "dags" / name)
        assert bag.import_errors == {}
        found[name] = sorted(bag.dags)
    assert found == {"cdc_wrong_sources.py": [], "cdc_sources.py": BOTH}


def test_a_source_that_is_watched_waits_for_its_binlog(sources: Path):
    """One look serves all sources of a server; nothing of it is secret, and reading the file again makes the same trigger."""
    for name in ("shop", "stock"):
        file = sources / f"{name}.yaml"
        file.write_text(file.read_text().replace('"*/7 * * * *"', "on_change"))
    triggers = {name: watched_by(make_dags(sources)[f"cdc_{name}"]) for name in ("shop", "stock")}
    assert triggers["shop"].shared_stream_key() == triggers["stock"].shared_stream_key()
    path, own = triggers["shop"].serialize()
    assert path == "cdc_airflow.triggers.BinlogTrigger"
    assert own["source_file"] == str(sources / "shop.yaml")
    assert json.loads(json.dumps(own)) == own
    assert own == watched_by(make_dags(sources)["cdc_shop"]).serialize()[1]
    assert triggers["stock"].serialize()[1] != own


def watched_by(dag: DAG) -> BinlogTrigger:
    """Return the trigger of the one asset that starts a DAG."""
    (watcher,) = (one for asset in dag.timetable.asset_condition.objects for one in asset.watchers)
    assert isinstance(watcher.trigger, BinlogTrigger)
    return watcher.trigger
