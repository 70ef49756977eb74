"""One run of the DAG over a captured database, step by step, in the running Spark."""

from __future__ import annotations

from cdc_lib.config.source import SourceConfig
from cdc_lib.errors import MergeConflict
from cdc_lib.merge.load import load_plan
from cdc_lib.model.merge_plan import MergePlan
from cdc_lib.ports import ObjectStore
from spark_jobs.merging.run import merge, needs_spark, run
from tests.harness.binlog.capture import Capture
from tests.harness.lake.running import Lake


def drain_round(capture: Capture) -> None:
    """Plan, drain and acknowledge once."""
    pipeline = capture.pipeline
    for unit in pipeline.plan(by="test"):
        pipeline.drain(unit)
    pipeline.ack_drain(by="test")


def _merge(lake: Lake, config: SourceConfig, plan: MergePlan, store: ObjectStore) -> None:
    if needs_spark(config, store, load_plan(store, plan)):
        merge(lake.spark, config, plan, store, lake.said.append, origin=lake.origin)
    else:
        run(config, plan, store)


def merge_round(capture: Capture, lake: Lake, *, times: int = 1) -> bool:
    """Plan, merge and acknowledge once, planned again like the job does after a conflict; ``times`` merges the plan several times before. Returns False if there was no plan."""
    pipeline, config, store = capture.pipeline, capture.config, capture.store
    plan = pipeline.plan_merge(by="test")
    if plan is None:
        return False
    for _ in range(times):
        try:
            _merge(lake, config, plan, store)
        except MergeConflict as error:
            lake.said.append(str(error))
            again = pipeline.plan_merge(by="test")
            if again is None or again.merge_id == plan.merge_id:
                raise
            plan = again
            _merge(lake, config, plan, store)
    pipeline.ack_lake(by="test")
    return True
