"""The DAGs of one source."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, Param, TriggerRule

from cdc_airflow import docs
from cdc_airflow.airflow_versions import conf, no_backfills
from cdc_airflow.assets import changed_tables
from cdc_airflow.dag_defaults import in_pool, new_dag, with_form
from cdc_airflow.dag_ids import Kind, dag_id
from cdc_airflow.on_request import DaysOnRequest
from cdc_airflow.operators import (
    MAP_INDEX,
    AckDrainOperator,
    AckLakeOperator,
    AnswerOperator,
    BackfillOperator,
    CoverOperator,
    DrainOperator,
    EraseOperator,
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
from cdc_airflow.operators.erase import erase_params
from cdc_airflow.operators.resume import resume_params
from cdc_airflow.operators.rewind import rewind_params
from cdc_airflow.operators.snapshot import snapshot_params
from cdc_airflow.operators.verify import verify_params
from cdc_airflow.schedules import spread
from cdc_lib.config import SourceConfig
from cdc_lib.config.schedule import ON_CHANGE

WATCH_INTERVAL = 10.0
"""Seconds between two looks at the end of a binlog, where ``[cdc] watch_interval`` says nothing."""


@dataclass(frozen=True, slots=True)
class RequestDag:
    """What people ask of a source by a run with a form: a DAG of one task; its texts are in docs.py.

    Args:
        kind: follows the source in the id of the DAG; also the id of the task.
        what: describes the DAG, with the address of the server in it.
        operator: of the task.
        form: returns the form of the runs.
        arguments: of the task, templates over the form.
        schedule: returns when runs begin beside those that are asked for; None for never.
        in_merge_pool: whether the task starts a job of Spark.
        backfills: whether Airflow's backfill may ask.
    """

    kind: Kind
    what: str
    operator: Callable[..., Any]
    form: Callable[[], Mapping[str, Param]]
    arguments: Mapping[str, Any]
    schedule: Callable[[SourceConfig], Any] = lambda _: None
    in_merge_pool: bool = False
    backfills: bool = False


def _fields(*names: str) -> dict[str, str]:
    return {name: f"{{{{ params.{name} }}}}" for name in names}


_TABLES = {"tables": "{{ params.tables | tojson }}"}

REQUESTS = (
    RequestDag(
        "verify",
        "Compares tables of {server} with the lake",
        VerifyOperator,
        verify_params,
        {**_TABLES, **_fields("repair")},
        schedule=lambda config: config.verify.schedule,
        in_merge_pool=True,
    ),
    # Its runs merge the batches of their dates, where Airflow's own backfill, or somebody by hand, asks for them. Runs of one table
    # beside each other, and beside the merges of the source, begin again where another commit came first.
    RequestDag(
        "backfill",
        "Merges archived batches of {server} once more",
        BackfillOperator,
        lambda: PARAMS,
        {
            "since": "{{ params['from'] or '' }}",
            "until": "{{ params.to or '' }}",
            **_TABLES,
            **_fields("into", "copy_suffix"),
        },
        schedule=lambda _: DaysOnRequest(),
        in_merge_pool=True,
        backfills=True,
    ),
    RequestDag(
        "snapshot",
        "Asks for new snapshots of tables of {server}, when somebody asks for it",
        SnapshotOperator,
        snapshot_params,
        {**_TABLES, **_fields("key_from", "key_to", "where", "why")},
    ),
    RequestDag(
        "resume",
        "Resumes a quarantined table of {server}, when somebody asks for it",
        ResumeOperator,
        resume_params,
        _fields("table"),
    ),
    RequestDag(
        "answer",
        "Answers a schema change at which a table waits of {server}, when somebody asks for it",
        AnswerOperator,
        answer_params,
        _fields("table", "answer", "position"),
    ),
    RequestDag(
        "rewind",
        "Moves the drain cursor of {server}, when somebody asks for it",
        RewindOperator,
        rewind_params,
        # Of a try that ended after the move, the next one would move again.
        {"retries": 0, "time": "{{ params.time or '' }}", **_fields("position", "gtid", "undo", "move", "why")},
    ),
    RequestDag(
        "erase",
        "Erases rows that {server} deleted from the lake and the store, when somebody asks for it",
        EraseOperator,
        erase_params,
        {
            **{name: f"{{{{ params['{name}'] | tojson }}}}" for name in ("keys", "columns", "values")},
            **_fields("table", "where", "lake_only"),
        },
        in_merge_pool=True,
    ),
)
"""All of them: a row gives the DAG with its id, its form and its texts."""


def makers(config: SourceConfig, path: Path) -> dict[str, Callable[[], DAG]]:
    """Return what makes each DAG of a source, by the DAG's id."""
    source = config.source
    made_by: dict[str, Callable[[], DAG]] = {dag_id(source): partial(make_dag, config, path)}
    for request in REQUESTS:
        made_by[dag_id(source, request.kind)] = partial(make_request_dag, request, config, path)
    if config.verify.cover_every is not None:
        made_by[dag_id(source, "cover")] = partial(make_cover_dag, config, path)
    return made_by


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


def make_request_dag(request: RequestDag, config: SourceConfig, path: Path) -> DAG:
    """Return the DAG of one request: paused, it would only let what is asked for wait."""
    kind, schedule = request.kind, request.schedule(config)
    is_scheduled = isinstance(schedule, str)
    with new_dag(
        dag_id(config.source, kind),
        config.source,
        description=request.what.format(server=f"{config.server.host}:{config.server.port}"),
        doc_md=docs.OF_REQUESTS[kind].format(source=config.source),
        schedule=schedule,
        timezone=config.timezone if is_scheduled else "UTC",
        is_paused_upon_creation=None if is_scheduled else False,
        **({} if request.backfills else no_backfills()),
    ) as dag:
        request.operator(
            task_id=kind,
            doc_md=docs.OF_A_SOURCE[f".{kind}"][kind],
            source_file=str(path),
            **(in_pool(config.merge.pool) if request.in_merge_pool else {}),
            **request.arguments,
        )
    return with_form(dag, request.form())


def make_cover_dag(config: SourceConfig, path: Path) -> DAG:
    """Return the DAG that compares the key ranges of one source which are due, a part of each table in each run."""
    with new_dag(
        dag_id(config.source, "cover"),
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
