"""Routes and filters in the lake: shards that share a table, a table in several, rows that come and go."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from cdc_lib.config.routes import FilterRule, RouteRule
from cdc_lib.errors import ConfigError, IncompatibleSchema, MergeError
from cdc_lib.model.position import Point
from spark_jobs.changes.filters import filtered
from spark_jobs.iceberg.lake_table import IcebergTable
from spark_jobs.sql import full_name
from tests.harness.lake.batches import BIGINT, INT, TEXT, Row, table
from tests.harness.lake.running import Lake


@pytest.fixture
def routed(lake):
    """Make the lake again with routes and filters; ``{db}`` stands for its database."""

    def make(routes=(), filters=(), source="shop") -> Lake:
        rules = [RouteRule(**{**rule, **_filled(rule, lake.database)}) for rule in routes]
        kept = [FilterRule(**{**rule, **_filled(rule, lake.database)}) for rule in filters]
        config = lake.config.model_copy(update={"routes": tuple(rules), "filters": tuple(kept), "source": source})
        made = Lake(lake.spark, config, lake.store)
        made.database, made.batches.source = lake.database, source
        return made

    return make


def _filled(rule, database):
    return {name: rule[name].replace("{db}", database) for name in ("tables", "into") if name in rule}


def shard(lake, number, columns=None, key=("id",)):
    return table(f"{lake.database}_{number}.orders", columns or {"id": BIGINT, "state": TEXT}, key)


def made(*pairs, offset=10):
    return [Row("c", offset + i, {"id": key, "state": state}) for i, (key, state) in enumerate(pairs)]


def markers(lake, *shards):
    """Return how far the lake table of shards has come for each of them."""
    target = IcebergTable(lake.spark, lake.target(shards[0].name)._name, "shop", {s.name: True for s in shards})
    return target.load().markers


BY_SCHEMA = {"tables": "{db}_*.orders", "into": "{db}.orders", "keys": ["schema"]}
DISJOINT = {"tables": "{db}_*.orders", "into": "{db}.orders"}


def test_shards_with_equal_keys_share_a_table_by_their_schema(routed):
    """Merged together in one commit, and again without effect; each changes its own rows alone."""
    lake = routed([BY_SCHEMA])
    one, two = shard(lake, 1), shard(lake, 2)
    first = lake.batches.plan(100, lake.batches.window(4, 100, {one: made((1, "a"), (2, "b")), two: made((1, "x"))}))
    cut = lake.merge(first)
    assert [(t.table, t.lake_table, t.changes) for t in cut.tables] == [
        (one.name, f"lake.{lake.database}.orders", 2),
        (two.name, f"lake.{lake.database}.orders", 1),
    ]
    assert len({t.lake_snapshot for t in cut.tables}) == 1
    assert lake.snapshots(one.name) == 1
    changes = {one: [Row("d", 110, {"id": 1, "state": "a"})], two: [Row("u", 120, {"id": 1, "state": "y"})]}
    second = lake.batches.plan(200, lake.batches.window(100, 200, changes))
    lake.merge(second)
    db = lake.database
    expected = [("2", f"{db}_1", "b"), ("1", f"{db}_2", "y")]
    assert [(str(i), s, v) for s, i, v in lake.rows(one.name, "_source_schema", "id", "state")] == expected
    for plan in (first, second):
        lake.merge(lake.batches.again(plan))
    assert [(str(i), s, v) for s, i, v in lake.rows(one.name, "_source_schema", "id", "state")] == expected
    assert lake.state(one.name).primary_key == ("_source_schema", "id")


def test_shards_with_disjoint_keys_share_a_table_without_more_columns(routed):
    """Each table's marker is its own: one that is merged later takes nothing from the other."""
    lake = routed([DISJOINT])
    one, two = shard(lake, 1), shard(lake, 2)
    lake.merge(lake.batches.plan(100, lake.batches.window(4, 100, {one: made((1, "a"))})))
    lake.merge(lake.batches.plan(200, lake.batches.window(100, 200, {two: made((2, "b"), offset=110)})))
    lake.merge(lake.batches.plan(300, lake.batches.window(200, 300, {one: [Row("u", 210, {"id": 1, "state": "c"})]})))
    assert lake.rows(one.name, "id", "state") == [(1, "c"), (2, "b")]
    found = markers(lake, one, two)
    assert (found[one.name].merged_to, found[two.name].merged_to) == (Point(1, 1, 300), Point(1, 1, 200))


def test_a_shard_joins_with_a_late_snapshot_that_restores_no_old_row(routed):
    """Its late chunk is merged with the windows after its watermark, the other shard's rows untouched."""
    lake = routed([BY_SCHEMA])
    one, two = shard(lake, 1), shard(lake, 2)
    rows = [{"id": 1, "state": "old"}, {"id": 2, "state": "old"}]
    lake.merge(lake.batches.plan(50, lake.batches.chunk(one, 40, rows)))
    lake.merge(
        lake.batches.plan(
            100,
            lake.batches.window(
                50,
                100,
                {two: [Row("d", 60, {"id": 2, "state": "old"})], one: [Row("u", 70, {"id": 1, "state": "new"})]},
            ),
        )
    )
    late = lake.batches.plan(100, lake.batches.chunk(two, 55, rows))
    lake.merge(late)
    lake.merge(lake.batches.again(late))
    db = lake.database
    assert lake.rows(one.name, "_source_schema", "id", "state") == [
        (f"{db}_1", 1, "new"),
        (f"{db}_1", 2, "old"),
        (f"{db}_2", 1, "old"),
    ]
    assert markers(lake, one, two)[two.name].snapshot("s1").complete


def test_a_lake_table_has_the_columns_of_all_its_shards(routed):
    """A column that one shard has alone is null in the rows of the others; a wider type wins."""
    lake = routed([BY_SCHEMA])
    one = shard(lake, 1, {"id": INT, "state": TEXT})
    two = shard(lake, 2, {"id": BIGINT, "state": TEXT, "more": TEXT})
    rows = [Row("c", 20, {"id": 2**40, "state": "b", "more": "m"})]
    lake.merge(lake.batches.plan(100, lake.batches.window(4, 100, {one: made((1, "a")), two: rows})))
    assert lake.rows(one.name, "id", "state", "more") == [(1, "a", None), (2**40, "b", "m")]


@pytest.mark.parametrize("together", [True, False])
def test_types_that_do_not_fit_together_name_both_source_tables(routed, together):
    """Whether they meet in one merge or one after the other; what is stays."""
    lake = routed([BY_SCHEMA])
    one, two = shard(lake, 1), shard(lake, 2, {"id": BIGINT, "state": BIGINT})
    batches = [{one: made((1, "a"))}, {two: [Row("c", 110, {"id": 1, "state": 7})]}]
    if together:
        plans = [lake.batches.plan(200, lake.batches.window(4, 200, batches[0] | batches[1]))]
    else:
        plans = [lake.batches.plan(100, lake.batches.window(4, 100, batches[0]))]
        plans.append(lake.batches.plan(200, lake.batches.window(100, 200, batches[1])))
    if not together:
        lake.merge(plans[0])
    with pytest.raises(IncompatibleSchema) as caught:
        lake.merge(plans[-1])
    assert one.name in str(caught.value)
    assert two.name in str(caught.value)
    if not together:
        assert lake.rows(one.name, "id", "state") == [(1, "a")]


def test_a_table_of_two_routes_goes_into_both_lake_tables(routed):
    """One of them without a column and with a predicate of its own."""
    lake = routed(
        [
            {"tables": "{db}.orders", "into": "{db}.orders"},
            {"tables": "{db}.orders", "into": "{db}.open", "columns": {"exclude": ["sta*"]}, "where": "id > 1"},
        ]
    )
    orders = table(f"{lake.database}.orders", {"id": BIGINT, "state": TEXT})
    plan = lake.batches.plan(100, lake.batches.window(4, 100, {orders: made((1, "a"), (2, "b"))}))
    cut = lake.merge(plan)
    lake.merge(lake.batches.again(plan))
    assert [t.lake_table for t in cut.tables] == [f"lake.{lake.database}.{name}" for name in ("open", "orders")]
    assert lake.rows(orders.name, "id", "state") == [(1, "a"), (2, "b")]
    found = lake.spark.sql(f"SELECT * FROM lake.{lake.database}.open").drop("_ts").collect()
    assert [row["id"] for row in found] == [2]
    assert "state" not in found[0]
    items = table(f"{lake.database}.items", {"id": BIGINT, "state": TEXT})
    other = lake.merge(lake.batches.plan(200, lake.batches.window(100, 200, {items: made((1, "a"), offset=110)})))
    current = [(t.lake_table, t.lake_snapshot, t.changes) for t in other.tables if t.table == orders.name]
    assert current == [(t.lake_table, t.lake_snapshot, 0) for t in cut.tables]


def test_two_sources_write_one_table_with_their_names_in_the_key(routed):
    """Neither moves the other's marker, and positions of different servers never meet."""
    route = {"tables": "*.orders", "into": "{db}.orders", "keys": ["server"]}
    east, west = routed([route]), routed([route], source="west")
    orders = table(f"{east.database}.orders", {"id": BIGINT, "state": TEXT})
    east.merge(east.batches.plan(900, east.batches.window(4, 900, {orders: made((1, "east"), offset=800)})))
    plan = west.batches.plan(100, west.batches.window(4, 100, {orders: made((1, "west"))}))
    west.merge(plan)
    east.merge(
        east.batches.plan(950, east.batches.window(900, 950, {orders: [Row("u", 910, {"id": 1, "state": "e2"})]}))
    )
    west.merge(west.batches.again(plan))
    assert east.rows(orders.name, "_source_server", "id", "state") == [("shop", 1, "e2"), ("west", 1, "west")]
    assert east.target(orders.name).load().marker.merged_to == Point(1, 1, 950)
    assert west.target(orders.name).load().marker.merged_to == Point(1, 1, 100)


def test_a_table_that_gets_a_route_of_its_own_name_keeps_its_marker(lake, routed):
    """So that batches which it holds are not merged again."""
    orders = table(f"{lake.database}.orders", {"id": BIGINT, "state": TEXT})
    plan = lake.batches.plan(100, lake.batches.window(4, 100, {orders: made((1, "a"))}))
    lake.merge(plan)
    after = routed([{"tables": "{db}.orders", "into": "{db}.orders"}])
    assert after.target(orders.name).load().marker.merged_to == Point(1, 1, 100)
    after.merge(after.batches.again(plan))
    assert lake.snapshots(orders.name) == 1
    after.merge(after.batches.plan(200, after.batches.window(100, 200, {orders: made((2, "b"), offset=110)})))
    assert lake.target(orders.name).load().marker.merged_to == Point(1, 1, 200)
    assert lake.rows(orders.name, "id", "state") == [(1, "a"), (2, "b")]


def test_a_row_that_leaves_the_filter_leaves_the_lake_and_may_come_back(routed):
    """The last change decides; NULL is no match."""
    lake = routed(filters=[{"tables": "{db}.orders", "where": "state <> 'test'"}])
    orders = table(f"{lake.database}.orders", {"id": BIGINT, "state": TEXT})
    rows = made((1, "new"), (2, "test"), (3, None), (4, "new"))
    lake.merge(lake.batches.plan(100, lake.batches.window(4, 100, {orders: rows})))
    assert lake.rows(orders.name, "id") == [(1,), (4,)]
    moved = [Row("u", 110, {"id": 1, "state": "test"}), Row("u", 120, {"id": 2, "state": "live"})]
    lake.merge(lake.batches.plan(200, lake.batches.window(100, 200, {orders: moved})))
    assert lake.rows(orders.name, "id", "state") == [(2, "live"), (4, "new")]


def test_a_filter_keeps_only_matching_changes_of_a_table_without_a_key(routed):
    """Each change is a row there, and stands for itself."""
    lake = routed(filters=[{"tables": "{db}.log", "where": "state <> 'test'"}])
    log = table(f"{lake.database}.log", {"id": BIGINT, "state": TEXT}, ())
    rows = [
        *made((1, "new"), (2, "test")),
        Row("d", 30, {"id": 1, "state": "new"}),
        Row("u", 30, {"id": 1, "state": "test"}, 1),
    ]
    lake.merge(lake.batches.plan(100, lake.batches.window(4, 100, {log: rows})))
    assert lake.rows(log.name, "_op", "id") == [("c", 1), ("d", 1)]


@pytest.mark.parametrize("where", ["state <>", "id) OR (1=1", "state; DROP"])
def test_a_predicate_that_is_not_one_is_refused_with_the_file(routed, where):
    """Nothing starts."""
    with pytest.raises(ValidationError, match="is not one predicate"):
        routed(filters=[{"tables": "{db}.orders", "where": where}])


@pytest.mark.parametrize("where", ["nonsense = 1", "rand() > 0.5", "id IN (SELECT 1)", "count(*) > 1"])
def test_a_predicate_that_cannot_be_used_is_refused_by_its_text(routed, where):
    """Before anything of the table is changed."""
    lake = routed(filters=[{"tables": "{db}.orders", "where": where}])
    orders = table(f"{lake.database}.orders", {"id": BIGINT, "state": TEXT})
    with pytest.raises(ConfigError) as caught:
        lake.merge(lake.batches.plan(100, lake.batches.window(4, 100, {orders: made((1, "a"))})))
    assert where in str(caught.value)
    assert orders.name in str(caught.value)
    assert lake.state(orders.name).snapshot_id is None


def test_keyless_shards_need_source_columns_when_a_snapshot_comes_late(routed):
    """The rows that it supersedes are its own table's alone; without such columns nobody could tell."""
    for keys, number in (([], 1), (["schema"], 2)):
        into = f"{{db}}.log{number}"
        lake = routed([{"tables": "{db}_*.log", "into": into, "keys": keys}])
        one, two = (table(f"{lake.database}_{n}.log", {"id": BIGINT, "state": TEXT}, ()) for n in (1, 2))
        window = lake.batches.window(4 + number, 100, {one: made((1, "a")), two: made((2, "b"))})
        lake.merge(lake.batches.plan(100, window))
        chunk = lake.batches.chunk(one, 90, [{"id": 1, "state": "a"}], snapshot=f"s{number}")
        late = lake.batches.plan(100, chunk)
        if not keys:
            with pytest.raises(MergeError, match="cannot be distinguished from"):
                lake.merge(late)
            continue
        lake.merge(late)
        assert lake.rows(one.name, "_op", "id") == [("c", 2), ("r", 1)]


def test_a_merged_shard_keeps_its_marker_while_another_one_lags(routed):
    """As after a route was widened: the batch is in the table for one of them alone."""
    lake = routed([{**BY_SCHEMA, "tables": "{db}_1.orders"}])
    one, two = shard(lake, 1), shard(lake, 2)
    plan = lake.batches.plan(100, lake.batches.window(4, 100, {one: made((1, "a")), two: made((1, "b"))}))
    lake.merge(plan)
    wider = routed([BY_SCHEMA])
    wider.merge(wider.batches.again(plan))
    assert wider.rows(one.name, "id", "state") == [(1, "a"), (1, "b")]
    wider.merge(
        wider.batches.plan(200, wider.batches.window(100, 200, {two: [Row("d", 110, {"id": 1, "state": "b"})]}))
    )
    snapshots = wider.snapshots(one.name)
    wider.merge(wider.batches.again(plan))
    assert wider.rows(one.name, "id", "state") == [(1, "a")]
    assert wider.snapshots(one.name) == snapshots
    assert {marker.merged_to for marker in markers(wider, one).values()} == {Point(1, 1, 100)}


def test_the_summary_of_a_commit_repeats_the_markers_of_the_other_shards(routed):
    """So that old snapshots can be expired without losing one."""
    lake = routed([BY_SCHEMA])
    one, two = shard(lake, 1), shard(lake, 2)
    lake.merge(lake.batches.plan(100, lake.batches.window(4, 100, {one: made((1, "a"))})))
    lake.merge(lake.batches.plan(200, lake.batches.window(100, 200, {two: made((1, "b"), offset=110)})))
    lake.merge(lake.batches.plan(300, lake.batches.window(200, 300, {two: [Row("d", 210, {"id": 1, "state": "b"})]})))
    name = full_name(lake.target(one.name)._name)
    rows = lake.spark.sql(f"SELECT summary FROM {name}.snapshots ORDER BY committed_at").collect()
    last = rows[-1][0]
    assert {f"cdc.merged-to.shop/{t.name}" for t in (one, two)} <= set(last)


def test_a_filter_refuses_changes_that_lack_cells(lake):
    """Such a row cannot be held against the predicate, and one that was left out cannot be completed from the lake."""
    changes = lake.spark.sql("SELECT 'u' AS _op, '+-' AS _absent, 1 AS id, CAST(NULL AS STRING) AS state")
    with pytest.raises(MergeError, match="lack columns") as caught:
        filtered(changes, ["state <> 'test'"], "mirror", "shop.orders")
    assert caught.value.context["table"] == "shop.orders"
    assert filtered(changes, [], "mirror", "shop.orders") is changes
