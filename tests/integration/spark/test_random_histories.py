from __future__ import annotations

from hypothesis import HealthCheck, Phase, given, settings

from cdc_lib.store.local import LocalStore
from tests.support.batches import BIGINT, table
from tests.support.histories import STEP, histories
from tests.support.lake import Lake


def run(lake, history):
    schema = table(f"{lake.database}.t", {"id": BIGINT, "v": BIGINT})
    windows = [
        lake.batches.window(start, stop, {schema: rows} if rows else {}) for start, stop, rows in history.windows
    ]
    last = len(history.chunks) - 1
    chunks = [
        lake.batches.chunk(
            schema, c.low, [{"id": k, "v": v} for k, v in c.rows.items()], number=c.number, last=c.number == last
        )
        for c in history.chunks
    ]
    plans = []
    for step in history.steps:
        if step.again is not None:
            plan = lake.batches.again(plans[step.again])
        else:
            stop = max((history.windows[i][1] for i in step.windows), default=STEP)
            keys = [*(chunks[i] for i in step.chunks), *(windows[i] for i in step.windows)]
            plan = lake.batches.plan(stop, *keys)
        plans.append(plan)
        lake.merge(plan)
    return schema


@settings(
    max_examples=8,
    deadline=None,
    phases=[Phase.generate],  # to shrink on Spark would take longer than to look
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(histories(most_events=15))
def test_any_split_of_any_history_ends_in_the_lake_as_in_the_source(spark_lake, tmp_path_factory, history):
    """The same law that holds for the decisions alone, with Spark and Iceberg below them."""
    spark, config = spark_lake
    lake = Lake(spark, config, LocalStore(tmp_path_factory.mktemp("store")))
    schema = run(lake, history)
    if lake.target(schema.name).load() is None:
        assert not history.final
        return
    assert sorted(lake.rows(schema.name, "id", "v")) == sorted(history.final.items())
