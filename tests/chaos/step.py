"""Runs one step of the pipeline in this process, with kill points in its ports."""

from __future__ import annotations

import json
import traceback
from argparse import Namespace
from datetime import UTC, datetime, timedelta
from functools import partial
from unittest.mock import patch

import cdc_lib.mysql.connection
import cdc_lib.mysql.xa_recover
from cdc_lib import requests
from cdc_lib.config.credentials import Credentials
from cdc_lib.config.source import SourceConfig
from cdc_lib.config.start import StartAt
from cdc_lib.erase.erasing import Erasing
from cdc_lib.errors import CdcError, MergeConflict
from cdc_lib.model.merge_plan import MergePlan
from cdc_lib.model.table_name import TableName
from cdc_lib.pipeline import Pipeline
from cdc_lib.ports import ObjectStore
from cdc_lib.reselect.rows import Reselector
from cdc_lib.retention.garbage_collector import carry_out, plan_collection
from cdc_lib.store import documents
from cdc_lib.store.cursors import ObjectCursorStore
from cdc_lib.store.cuts import last_cut
from cdc_lib.store.objects.local import LocalStore
from cdc_lib.store.objects.open import open_store
from spark_jobs import erase as erase_job
from spark_jobs.backfill import backfill
from spark_jobs.maintain import lake_tables, maintain
from spark_jobs.merging.run import run as merge
from spark_jobs.runtime.session import spark_session
from tests.chaos import clock
from tests.chaos.backfills import from_text
from tests.chaos.job import Job
from tests.chaos.labelled_merge import label_commits
from tests.chaos.labelled_store import LabelledStore
from tests.chaos.points import Points
from tests.chaos.stopping import stop_with_the_lock

FAILED, BROKEN = 3, 4
"""Exit statuses: a ``CdcError``, which is written to the result file; any other error."""


def run(job: Job) -> int:
    """Run the step; returns the exit status of its process."""
    points = Points(job.log, job.label, job.nth, group=job.group)
    if job.clock:
        clock.jump(job.clock)
    cdc_lib.mysql.connection.SILENCE_SECONDS = job.silence
    cdc_lib.mysql.xa_recover.WAIT_SECONDS = job.patience
    if job.after is not None:
        points.after(job.after, f"{job.step}: at any moment")
    try:
        _do(job, points)
    except CdcError as error:
        failure = {"error": type(error).__name__, "retryable": error.retryable, "message": str(error)}
        part = job.result.with_suffix(".part")
        part.write_text(json.dumps(failure))
        part.rename(job.result)  # a step that is killed leaves no half of it
        return FAILED
    except Exception:  # noqa: BLE001 - the driver reads it
        traceback.print_exc()
        return BROKEN
    return 0


def _do(job: Job, points: Points) -> None:
    config = SourceConfig.model_validate_json(job.config)
    store = LabelledStore(_opened(job, config, points), points, job.step, jumps=bool(job.clock))
    pipeline = Pipeline(config, Credentials(job.user, job.password), store, ObjectCursorStore(store))
    match job.step:
        case "plan":
            pipeline.plan(by="chaos")
        case "drain":
            assert job.unit is not None
            until = datetime.now(UTC) - timedelta(days=1) if job.one_chunk else None
            pipeline.drain(documents.unit_from_plain(job.unit), until=until)
        case "ack_drain":
            pipeline.ack_drain(by="chaos")
        case "plan_merge":
            pipeline.plan_merge(by="chaos")
        case "merge" | "maintain" | "backfill":
            label_commits(points, job.step)
            _in_spark(job, pipeline)
        case "erase":
            label_commits(points, job.step)
            _erase(job, pipeline)
        case "ack_lake":
            pipeline.ack_lake(by="chaos")
        case "rewind":
            start = StartAt(position=job.argument) if job.argument else None
            requests.rewind(pipeline, start, by="chaos", why="chaos test")
        case "resume":
            requests.resume_table(pipeline, job.argument, by="chaos")
        case "resnapshot":
            requests.resnapshot(pipeline, job.argument.split(","), by="chaos", why="chaos test")
        case "gc":
            now = datetime.now(UTC) + timedelta(seconds=job.clock)
            carry_out(store, plan_collection(store, pipeline.cursors, config.source, timedelta(), now))
        case _:
            raise AssertionError(job.step)


def _opened(job: Job, config: SourceConfig, points: Points) -> ObjectStore:
    store = open_store(config.store)
    if isinstance(store, LocalStore):
        store._patience = job.lock_patience
        if job.stops:
            stop_with_the_lock(store, points)
    return store


def _erase(job: Job, pipeline: Pipeline) -> None:
    table, keys = json.loads(job.argument)
    erasing = Erasing.of(pipeline, TableName.parse(table), keys, "", [])
    erasure = erasing.begin((), by="chaos", lake_only=False)
    with patch.object(erase_job, "open_store", lambda _: pipeline.store):
        erase_job._erase(pipeline.config, Namespace(table=table, erasure=erasure.id))
    if left := erasing.finish(erasure).left.found:
        raise MergeConflict("left: " + "; ".join(f"{one.place}: {one.what}" for one in left))


def _in_spark(job: Job, pipeline: Pipeline) -> None:
    """Run a step that starts its own Spark."""
    config, store = pipeline.config, pipeline.store
    if job.step == "merge":
        plan = documents.load(MergePlan, json.dumps(job.plan).encode(), "the job")
        merge(config, plan, store, partial(Reselector.of, pipeline) if config.reselect.is_on else None)
        return
    with spark_session(config) as spark:
        if job.step == "backfill":
            backfill(spark, config, pipeline, from_text(job.argument))
        else:
            maintain(spark, config, store, lake_tables(config, last_cut(store, config.source), job.argument.split(",")))
