"""The DAGs of one source."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, TriggerRule

from cdc_airflow import docs
from cdc_airflow.airflow_versions import conf, no_backfills
from cdc_airflow.assets import changed_tables
from cdc_airflow.dag_defaults import in_pool, new_dag, with_form
from cdc_airflow.dag_ids import (
    answer_dag_id,
    backfill_dag_id,
    cover_dag_id,
    dag_id,
    resume_dag_id,
    rewind_dag_id,
    snapshot_dag_id,
    verify_dag_id,
)
from cdc_airflow.on_request import DaysOnRequest
from cdc_airflow.operators import (
    MAP_INDEX,
    AckDrainOperator,
    AckLakeOperator,
    AnswerOperator,
    BackfillOperator,
    CoverOperator,
    DrainOperator,
    MergeOperator,
    PlanMergeOperator,
    PlanOperator,
    ResumeOperator,
    RewindOperator,
    SealDaysOperator,
    SnapshotOperator,
    VerifyOperator,
)
from cdc_airflow.operators.answer import answer_params
from cdc_airflow.operators.backfill import PARAMS
from cdc_airflow.operators.cover import WRONG
from cdc_airflow.operators.resume import resume_params
from cdc_airflow.operators.rewind import rewind_params
from cdc_airflow.operators.snapshot import snapshot_params
from cdc_airflow.operators.verify import verify_params
from cdc_airflow.schedules import spread
from cdc_lib.config import SourceConfig
from cdc_lib.config.schedule import ON_CHANGE

WATCH_INTERVAL = 10.0
"""Seconds between two looks at the end of a binlog, where ``[cdc] watch_interval`` says nothing."""


def makers(config: SourceConfig, path: Path) -> dict[str, Callable[[], DAG]]:
    """Return what makes each DAG of a source, by the DAG's id."""
    source = config.source
    made_by = {
        dag_id(source): make_dag,
        backfill_dag_id(source): make_backfill_dag,
        verify_dag_id(source): make_verify_dag,
        snapshot_dag_id(source): make_snapshot_dag,
        rewind_dag_id(source): make_rewind_dag,
        resume_dag_id(source): make_resume_dag,
        answer_dag_id(source): make_answer_dag,
    }
    if config.verify.cover_every is not None:
        made_by[cover_dag_id(source)] = make_cover_dag
    return {name: partial(make, config, path) for name, make in made_by.items()}


def make_dag(config: SourceConfig, path: Path) -> DAG:
    """Return the DAG of one source.

    Runs come one after another. `max_active_runs` is for tidiness alone, the cursors keep two runs apart. Backfills are
    refused: what a run does is decided by where the cursors are, never by its date.
    """
    file: dict[str, Any] = {"source_file": str(path)}
    dag = new_dag(
        dag_id(config.source),
        config.source,
        description=f"Changes of {config.server.host}:{config.server.port} into the lake",
        doc_md=docs.of_dag(config),
        schedule=schedule_of(config, path),
        timezone=config.timezone,
        **no_backfills(),
    )
    with dag:
        plan = PlanOperator(task_id="plan", doc_md=docs.PLAN, **file)
        drain = DrainOperator.partial(
            task_id="drain",
            doc_md=docs.DRAIN,
            max_active_tis_per_dagrun=config.drain.parallelism,
            **in_pool(config.drain.pool),
            map_index_template=MAP_INDEX,
            **file,
        ).expand(unit=plan.output)
        # Drain is skipped when there is nothing to drain, and merge when there is nothing to merge: what earlier runs
        # left must be acked and merged all the same.
        go_on = {"trigger_rule": TriggerRule.NONE_FAILED, **file}
        ack_drain = AckDrainOperator(task_id="ack_drain", doc_md=docs.ACK_DRAIN, **go_on)
        plan_merge = PlanMergeOperator(task_id="plan_merge", doc_md=docs.PLAN_MERGE, **file)
        merge = MergeOperator(task_id="merge", doc_md=docs.MERGE, **in_pool(config.merge.pool), **file)
        outlets = [changed_tables(config.source)]
        ack_lake = AckLakeOperator(task_id="ack_lake", doc_md=docs.ACK_LAKE, outlets=outlets, **go_on)
        # Of a run without changes the acks are skipped, and a day may end all the same.
        seal_days = SealDaysOperator(task_id="seal_days", doc_md=docs.SEAL_DAYS, source=config.source, **go_on)
        drain >> ack_drain >> plan_merge >> merge >> ack_lake >> seal_days
    return dag


def schedule_of(config: SourceConfig, path: Path) -> Any:
    """Return when the runs of a source begin: as its file says, or some minutes later, unless ``[cdc] spread_schedules`` is off."""
    if config.schedule == ON_CHANGE:
        from cdc_airflow.triggers import binlog_asset

        return [binlog_asset(config, str(path), conf.getfloat("cdc", "watch_interval", fallback=WATCH_INTERVAL))]
    on = conf.getboolean("cdc", "spread_schedules", fallback=True)
    return spread(config.schedule, config.source) if on else config.schedule


def make_verify_dag(config: SourceConfig, path: Path) -> DAG:
    """Return the DAG that compares the tables of one source with the lake."""
    with new_dag(
        verify_dag_id(config.source),
        config.source,
        description=f"Compares tables of {config.server.host}:{config.server.port} with the lake",
        doc_md=docs.VERIFY_DAG.format(source=config.source),
        schedule=config.verify.schedule,
        timezone=config.timezone,
        # Without a schedule, nothing happens unless somebody asks for it.
        is_paused_upon_creation=None if config.verify.schedule else False,
        **no_backfills(),
    ) as dag:
        VerifyOperator(
            task_id="verify",
            doc_md=docs.VERIFY,
            source_file=str(path),
            **in_pool(config.merge.pool),
            tables="{{ params.tables | tojson }}",
            repair="{{ params.repair }}",
        )
    return with_form(dag, verify_params())


def make_cover_dag(config: SourceConfig, path: Path) -> DAG:
    """Return the DAG that compares the key ranges of one source which are due, a part of each table in each run."""
    with new_dag(
        cover_dag_id(config.source),
        config.source,
        description=f"Compares key ranges of {config.server.host}:{config.server.port} with the lake, in turns",
        doc_md=docs.COVER_DAG.format(source=config.source),
        schedule=config.verify.cover_schedule,
        timezone=config.timezone,
        **no_backfills(),
    ) as dag:
        cover = CoverOperator(task_id="cover", doc_md=docs.COVER, source_file=str(path))
        if config.verify.on_difference == "repair":
            cover >> VerifyOperator(
                task_id="repair",
                doc_md=docs.REPAIR,
                source_file=str(path),
                **in_pool(config.merge.pool),
                # Without tables it would compare all of them.
                tables=f"{{{{ (ti.xcom_pull(task_ids='cover', key='{WRONG}') or ['none.found']) | tojson }}}}",
                repair=True,
            )
    return dag


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
    return with_form(dag, snapshot_params())


def make_resume_dag(config: SourceConfig, path: Path) -> DAG:
    """Return the DAG whose runs, all by hand, each bring one quarantined table back."""
    doc_md = docs.RESUME_DAG.format(source=config.source)
    with _by_hand(resume_dag_id(config.source), config, "Resumes a quarantined table", doc_md) as dag:
        ResumeOperator(task_id="resume", doc_md=docs.RESUME, source_file=str(path), table="{{ params.table }}")
    return with_form(dag, resume_params())


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
    return with_form(dag, answer_params())


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
    return with_form(dag, rewind_params())


def make_backfill_dag(config: SourceConfig, path: Path) -> DAG:
    """Return the DAG whose runs merge the archived batches of their dates once more.

    It has runs only where Airflow's own backfill, or somebody by hand, asks for them. `max_active_runs` is for tidiness alone:
    runs of one table beside each other, and beside the merges of the source, begin again where another commit came first.
    """
    with new_dag(
        backfill_dag_id(config.source),
        config.source,
        description=f"Merges archived batches of {config.server.host}:{config.server.port} once more",
        doc_md=docs.BACKFILL_DAG.format(source=config.source),
        schedule=DaysOnRequest(),
        is_paused_upon_creation=False,
    ) as dag:
        BackfillOperator(
            task_id="backfill",
            doc_md=docs.BACKFILL,
            source_file=str(path),
            **in_pool(config.merge.pool),
            since="{{ params['from'] or '' }}",
            until="{{ params.to or '' }}",
            tables="{{ params.tables | tojson }}",
            into="{{ params.into }}",
            copy_suffix="{{ params.copy_suffix }}",
        )
    return with_form(dag, PARAMS)


def _by_hand(name: str, config: SourceConfig, what: str, doc_md: str) -> DAG:
    """Return a DAG that runs when somebody asks for it: paused, it would only let the request wait."""
    return new_dag(
        name,
        config.source,
        description=f"{what} of {config.server.host}:{config.server.port}, when somebody asks for it",
        doc_md=doc_md,
        schedule=None,
        is_paused_upon_creation=False,
        **no_backfills(),
    )
