"""Source files become DAGs. Nothing heavy is imported here: a DAG processor reads this again and again."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, Param, TriggerRule, conf, get_parsing_context

from cdc_airflow import docs
from cdc_airflow.answer import AnswerOperator, answer_params
from cdc_airflow.assets import changed_tables
from cdc_airflow.backfill import PARAMS, BackfillOperator
from cdc_airflow.days import SealDaysOperator
from cdc_airflow.maintenance import CollectOperator, MaintainOperator
from cdc_airflow.manual import (
    RewindOperator,
    SnapshotOperator,
    rewind_params,
    snapshot_params,
    verify_params,
)
from cdc_airflow.merge import MergeOperator
from cdc_airflow.on_request import DaysOnRequest
from cdc_airflow.operators import (
    MAP_INDEX,
    AckDrainOperator,
    AckLakeOperator,
    DrainOperator,
    PlanMergeOperator,
    PlanOperator,
)
from cdc_airflow.resume import ResumeOperator, resume_params
from cdc_airflow.schedules import spread
from cdc_airflow.verify import VerifyOperator
from cdc_lib.config import Loaded, SourceConfig, load_sources
from cdc_lib.config.load import failed
from cdc_lib.config.schedule import ON_CHANGE
from cdc_lib.errors import ConfigError

SINCE = datetime(2026, 1, 1, tzinfo=UTC)
"""Airflow wants a date before the first run; with catchup off it makes no run for the time since."""

MAINTENANCE = "cdc_maintenance"
"""Id of the DAG that looks after all sources."""

NO_BACKFILLS: Any = ["scheduled", "manual", "operator_triggered", "asset_materialization", "asset_triggered"]
"""Every kind of run but a backfill's. Airflow takes these texts; its own type for them is private."""

WATCH_INTERVAL = 10.0
"""Seconds between two looks at the end of a binlog, where ``[cdc] watch_interval`` says nothing."""

RETRIES = {
    "retries": 3,
    "retry_delay": timedelta(seconds=30),
    "retry_exponential_backoff": 2.0,
    "max_retry_delay": timedelta(minutes=10),
}


def sources_folder(dag_file: str) -> Path:
    """Return the folder of the source files: ``CDC_SOURCES``, ``[cdc] sources``, or ``sources`` beside the DAG file."""
    named = os.environ.get("CDC_SOURCES") or conf.get("cdc", "sources", fallback="")
    return Path(named or Path(dag_file).parent / "sources").resolve()


def sources_of_the_api_server() -> Path:
    """Return the same for apps of the API server, whose DAG files are in Airflow's folder of DAGs."""
    return sources_folder(str(Path(conf.get_mandatory_value("core", "dags_folder")) / "dags.py"))


def schedule_of(config: SourceConfig, path: Path) -> Any:
    """Return when the runs of a source begin: as its file says, or some minutes later, unless ``[cdc] spread_schedules`` is off."""
    if config.schedule == ON_CHANGE:
        from cdc_airflow.triggers import binlog_asset

        return [binlog_asset(config, str(path), conf.getfloat("cdc", "watch_interval", fallback=WATCH_INTERVAL))]
    on = conf.getboolean("cdc", "spread_schedules", fallback=True)
    return spread(config.schedule, config.source) if on else config.schedule


def _pool(name: str | None) -> dict[str, Any]:
    return {"pool": name} if name else {}


def _dag(name: str, *tags: str, schedule: Any, **own: Any) -> DAG:
    """Return a DAG with what all of them have in common."""
    return DAG(
        name,
        schedule=schedule,
        start_date=SINCE,
        catchup=False,
        # With it on, each file of dags/ that makes DAGs to look at them would own them as well, and Airflow would read a task's DAG
        # from the file that came last.
        auto_register=False,
        max_active_runs=1,
        default_args=RETRIES,
        tags=["cdc", *tags],
        **own,
    )


def _with_form(dag: DAG, form: Mapping[str, Param]) -> DAG:
    """Give a DAG, once it has its tasks, the form of its runs, and return it.

    A task that is made after the form gets a copy, which Airflow validates several times when it serializes the task. A run
    takes the values from the DAG in any case.
    """
    dag.params.update(form)
    return dag


def make_dags(folder: Path) -> dict[str, DAG]:
    """Return the DAGs of each right source file of a folder, by id; a wrong one hides no other.

    A worker that is about to run a task gets that task's DAG alone.

    Raises:
        ConfigError: there is no such folder.
    """
    wanted = get_parsing_context().dag_id
    dags: dict[str, DAG] = {}
    for loaded in load_sources(folder):
        dags |= _made(loaded, wanted)[0]
    return dags


def _made(loaded: Loaded, wanted: str | None = None) -> tuple[dict[str, DAG], ConfigError | None]:
    """Return the DAGs of one file by id, all or the wanted one, and what is wrong with it: one file breaks no other's DAGs."""
    config, path = loaded.config, loaded.path.resolve()
    if config is None:
        return {}, loaded.error
    makers = {
        dag_id(loaded.source): partial(make_dag, config, path),
        backfill_dag_id(loaded.source): partial(make_backfill_dag, config, path),
        verify_dag_id(loaded.source): partial(make_verify_dag, config, path),
        snapshot_dag_id(loaded.source): partial(make_snapshot_dag, config, path),
        rewind_dag_id(loaded.source): partial(make_rewind_dag, config, path),
        resume_dag_id(loaded.source): partial(make_resume_dag, config, path),
        answer_dag_id(loaded.source): partial(make_answer_dag, config, path),
    }
    try:
        return {name: make() for name, make in makers.items() if wanted in (None, name)}, None
    except Exception as error:  # noqa: BLE001 - the file's error is returned, and the other files have their DAGs
        return {}, failed(loaded.path, error).error


def make_maintenance(folder: Path) -> dict[str, DAG]:
    """Return the DAG that looks after batches and lake tables every day, by id, with tasks for each right source, or none.

    The tasks are independent: a source whose store is away keeps no other from being collected.

    Raises:
        ConfigError: there is no such folder.
    """
    if get_parsing_context().dag_id not in (None, MAINTENANCE):
        return {}
    right = [(one.source, one.path, one.config) for one in load_sources(folder) if one.config is not None]
    if not right:
        return {}
    with _dag(
        MAINTENANCE,
        description="Removes batches that are no longer needed, and keeps lake tables small",
        doc_md=docs.MAINTENANCE,
        schedule="17 3 * * *",
        # Each task of the tables is a Spark application.
        max_active_tasks=2,
    ) as dag:
        for source, path, config in right:
            file = str(path.resolve())
            pool = _pool(config.merge.pool)
            CollectOperator(task_id=f"collect_{source}", doc_md=docs.COLLECT, source_file=file)
            MaintainOperator(task_id=f"maintain_{source}", doc_md=docs.MAINTAIN, source_file=file, **pool)
    return {MAINTENANCE: dag}


def refuse_wrong_sources(folder: Path) -> None:
    """Raise what is wrong with the source files of a folder, so that Airflow shows it as an import error.

    Raises:
        ConfigError: one error's own text, or those of all wrong files.
    """
    wrong = [error for loaded in load_sources(folder) if (error := _made(loaded)[1]) is not None]
    if not wrong:
        return
    if len(wrong) == 1:
        raise wrong[0].with_traceback(None)  # where it was raised says nothing to whoever wrote the file
    texts = "\n\n".join(map(str, wrong))
    raise ConfigError(f"{len(wrong)} sources are wrong and have no DAG; the others run\n\n{texts}")


def dag_id(source: str) -> str:
    """Return the id of a source's DAG."""
    return f"cdc_{source}"


def verify_dag_id(source: str) -> str:
    """Return the id of the DAG that compares a source with the lake; no name of a source has a dot."""
    return f"{dag_id(source)}.verify"


def make_verify_dag(config: SourceConfig, path: Path) -> DAG:
    """Return the DAG that compares the tables of one source with the lake."""
    with _dag(
        verify_dag_id(config.source),
        config.source,
        description=f"Compares tables of {config.server.host}:{config.server.port} with the lake",
        doc_md=docs.VERIFY_DAG.format(source=config.source),
        schedule=config.verify.schedule,
        allowed_run_types=NO_BACKFILLS,
    ) as dag:
        VerifyOperator(
            task_id="verify",
            doc_md=docs.VERIFY,
            source_file=str(path),
            **_pool(config.merge.pool),
            tables="{{ params.tables | tojson }}",
            repair="{{ params.repair }}",
        )
    return _with_form(dag, verify_params())


def snapshot_dag_id(source: str) -> str:
    """Return the id of the DAG by which people ask for new snapshots; no name of a source has a dot."""
    return f"{dag_id(source)}.snapshot"


def make_snapshot_dag(config: SourceConfig, path: Path) -> DAG:
    """Return the DAG whose runs, all by hand, ask for new snapshots of tables or of rows of one."""
    doc_md = docs.SNAPSHOT_DAG.format(source=config.source)
    with _by_hand(snapshot_dag_id(config.source), config, "Asks for new snapshots of tables", doc_md) as dag:
        SnapshotOperator(
            task_id="snapshot",
            doc_md=docs.SNAPSHOT,
            source_file=str(path),
            tables="{{ params.tables | tojson }}",
            **{name: f"{{{{ params.{name} }}}}" for name in ("key_from", "key_to", "where", "why")},
        )
    return _with_form(dag, snapshot_params())


def resume_dag_id(source: str) -> str:
    """Return the id of the DAG by which people bring quarantined tables back; no name of a source has a dot."""
    return f"{dag_id(source)}.resume"


def make_resume_dag(config: SourceConfig, path: Path) -> DAG:
    """Return the DAG whose runs, all by hand, each bring one quarantined table back."""
    doc_md = docs.RESUME_DAG.format(source=config.source)
    with _by_hand(resume_dag_id(config.source), config, "Resumes a quarantined table", doc_md) as dag:
        ResumeOperator(task_id="resume", doc_md=docs.RESUME, source_file=str(path), table="{{ params.table }}")
    return _with_form(dag, resume_params())


def answer_dag_id(source: str) -> str:
    """Return the id of the DAG by which people answer schema changes; no name of a source has a dot."""
    return f"{dag_id(source)}.answer"


def make_answer_dag(config: SourceConfig, path: Path) -> DAG:
    """Return the DAG whose runs, all by hand, each answer the schema change at which one table waits."""
    what = "Answers a schema change at which a table waits"
    doc_md = docs.ANSWER_DAG.format(source=config.source)
    with _by_hand(answer_dag_id(config.source), config, what, doc_md) as dag:
        AnswerOperator(
            task_id="answer",
            doc_md=docs.ANSWER,
            source_file=str(path),
            **{name: f"{{{{ params.{name} }}}}" for name in ("table", "answer", "position")},
        )
    return _with_form(dag, answer_params())


def rewind_dag_id(source: str) -> str:
    """Return the id of the DAG by which people move the drain cursor; no name of a source has a dot."""
    return f"{dag_id(source)}.rewind"


def make_rewind_dag(config: SourceConfig, path: Path) -> DAG:
    """Return the DAG whose runs, all by hand, find a position in the binlog and move the drain cursor there."""
    doc_md = docs.REWIND_DAG.format(source=config.source)
    with _by_hand(rewind_dag_id(config.source), config, "Moves the drain cursor", doc_md) as dag:
        RewindOperator(
            task_id="rewind",
            doc_md=docs.REWIND,
            source_file=str(path),
            retries=0,  # of a try that ended after the move, the next one would move again
            time="{{ params.time or '' }}",
            **{name: f"{{{{ params.{name} }}}}" for name in ("position", "gtid", "undo", "move", "why")},
        )
    return _with_form(dag, rewind_params())


def _by_hand(name: str, config: SourceConfig, what: str, doc_md: str) -> DAG:
    return _dag(
        name,
        config.source,
        description=f"{what} of {config.server.host}:{config.server.port}, when somebody asks for it",
        doc_md=doc_md,
        schedule=None,
        allowed_run_types=NO_BACKFILLS,
    )


def backfill_dag_id(source: str) -> str:
    """Return the id of the DAG that merges archived batches of a source again; no name of a source has a dot."""
    return f"{dag_id(source)}.backfill"


def make_backfill_dag(config: SourceConfig, path: Path) -> DAG:
    """Return the DAG whose runs merge the archived batches of their dates once more.

    It has runs only where Airflow's own backfill, or somebody by hand, asks for them. `max_active_runs` is for tidiness alone:
    runs of one table beside each other, and beside the merges of the source, begin again where another commit came first.
    """
    with _dag(
        backfill_dag_id(config.source),
        config.source,
        description=f"Merges archived batches of {config.server.host}:{config.server.port} once more",
        doc_md=docs.BACKFILL_DAG.format(source=config.source),
        schedule=DaysOnRequest(),
    ) as dag:
        BackfillOperator(
            task_id="backfill",
            doc_md=docs.BACKFILL,
            source_file=str(path),
            **_pool(config.merge.pool),
            since="{{ params['from'] or '' }}",
            until="{{ params.to or '' }}",
            tables="{{ params.tables | tojson }}",
            into="{{ params.into }}",
            copy_suffix="{{ params.copy_suffix }}",
        )
    return _with_form(dag, PARAMS)


def make_dag(config: SourceConfig, path: Path) -> DAG:
    """Return the DAG of one source.

    Runs come one after another. `max_active_runs` is for tidiness alone, the cursors keep two runs apart. Backfills are
    refused: what a run does is decided by where the cursors are, never by its date.
    """
    file: dict[str, Any] = {"source_file": str(path)}
    dag = _dag(
        dag_id(config.source),
        config.source,
        description=f"Changes of {config.server.host}:{config.server.port} into the lake",
        doc_md=docs.of_dag(config),
        schedule=schedule_of(config, path),
        allowed_run_types=NO_BACKFILLS,
    )
    with dag:
        plan = PlanOperator(task_id="plan", doc_md=docs.PLAN, **file)
        drain = DrainOperator.partial(
            task_id="drain",
            doc_md=docs.DRAIN,
            max_active_tis_per_dagrun=config.drain.parallelism,
            **_pool(config.drain.pool),
            map_index_template=MAP_INDEX,
            **file,
        ).expand(unit=plan.output)
        # Drain is skipped when there is nothing to drain, and merge when there is nothing to merge: what earlier runs
        # left must be acked and merged all the same.
        go_on = {"trigger_rule": TriggerRule.NONE_FAILED, **file}
        ack_drain = AckDrainOperator(task_id="ack_drain", doc_md=docs.ACK_DRAIN, **go_on)
        plan_merge = PlanMergeOperator(task_id="plan_merge", doc_md=docs.PLAN_MERGE, **file)
        merge = MergeOperator(task_id="merge", doc_md=docs.MERGE, **_pool(config.merge.pool), **file)
        outlets = [changed_tables(config.source)]
        ack_lake = AckLakeOperator(task_id="ack_lake", doc_md=docs.ACK_LAKE, outlets=outlets, **go_on)
        # Of a run without changes the acks are skipped, and a day may end all the same.
        seal_days = SealDaysOperator(task_id="seal_days", doc_md=docs.SEAL_DAYS, source=config.source, **go_on)
        drain >> ack_drain >> plan_merge >> merge >> ack_lake >> seal_days
    return dag
