from __future__ import annotations

from hypothesis import HealthCheck, Phase, event, given, settings

from cdc_lib.errors import MergeError
from cdc_lib.store.objects.local import LocalStore
from tests.harness.generated.histories import STEP, histories
from tests.harness.lake.batches import BIGINT, table
from tests.harness.lake.running import Lake


def run(lake, history, values=lambda value: {"v": value}):
    schema = table(f"{lake.database}.t", {"id": BIGINT, **dict.fromkeys(values((0, 0)), BIGINT)})
    windows = [
        lake.batches.window(start, stop, {schema: rows} if rows else {}) for start, stop, rows in history.windows
    ]
    last = len(history.chunks) - 1
    chunks = [
        lake.batches.chunk(
            schema,
            c.low,
            [{"id": k, **values(v)} for k, v in c.rows.items()],
            number=c.number,
            last=c.number == last,
            high=c.high,
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


LOOK = settings(
    max_examples=8,
    deadline=None,
    phases=[Phase.generate],  # shrinking on Spark takes too long
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@LOOK
@given(histories(most_events=15))
def test_any_split_of_any_history_gives_the_rows_of_the_source(spark_lake, tmp_path_factory, history):
    """The law of the property tests, with Spark and Iceberg."""
    spark, config = spark_lake
    lake = Lake(spark, config, LocalStore(tmp_path_factory.mktemp("store")))
    schema = run(lake, history)
    if lake.target(schema.name).load() is None:
        assert not history.final
        return
    assert sorted(lake.rows(schema.name, "id", "v")) == sorted(history.final.items())


@LOOK
@given(histories(most_events=15, partial=True))
def test_partial_images_give_the_rows_of_the_source(spark_lake, tmp_path_factory, history):
    """Or the merge fails, and only if a row got its key while the snapshot was read."""
    spark, config = spark_lake
    lake = Lake(spark, config, LocalStore(tmp_path_factory.mktemp("store")))
    try:
        schema = run(lake, history, lambda value: dict(zip("vw", value, strict=True)))
    except MergeError as error:
        event("stopped")
        if not history.doubtful or "lack columns" not in str(error):
            raise
        return
    if lake.target(schema.name).load() is None:
        assert not history.final
        return
    assert sorted(lake.rows(schema.name, "id", "v", "w")) == sorted((k, *v) for k, v in history.final.items())
