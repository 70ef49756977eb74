"""Whatever a session's row images leave out, the lake ends equal to the source, or the table stops."""

from __future__ import annotations

import random
from functools import partial

import pytest

from cdc_lib import requests
from cdc_lib.apply.rows import LakeShape, changes_of
from cdc_lib.config.start import StartAt
from cdc_lib.errors import MergeError
from cdc_lib.merge.load import load_batches
from cdc_lib.merge.plan import MergeInput
from cdc_lib.model.table_commit import TableCommit
from cdc_lib.ports import MergeChanges
from cdc_lib.reselect.rows import Reselector
from cdc_lib.store.objects.local import LocalStore
from tests.harness.binlog.capture import Capture, first_chunk
from tests.harness.binlog.row_images import (
    COLUMNS,
    IMAGES,
    KEYS,
    MAKERS,
    assert_equal,
    in_session,
    one_round,
    statement,
)
from tests.harness.lake.batches import BIGINT, Row, table
from tests.harness.lake.running import Lake


@pytest.fixture
def capture(any_server, database, tmp_path):
    return Capture(any_server, database, tmp_path, start="latest")


@pytest.fixture
def lake(spark_lake, capture):
    spark, config = spark_lake
    lake = Lake(spark, capture.config.model_copy(update={"lake": config.lake}), capture.store)
    capture.pipeline.plan(by="test")  # the cursor begins here
    return lake


def everything_again(capture, lake):
    """Merge all batches once more into the table as it is, as if it had no marker."""
    keys = [key for key in capture.visible() if "/batches/" in key and key.endswith("manifest.json")]
    name = f"{capture.database}.r"
    pieces = [MergeInput(batch, None) for batch in load_batches(capture.store, sorted(keys))]
    state = lake.state(name)

    def read(table):
        return changes_of(capture.store, pieces, LakeShape(name, table.fields, {}, lambda _: True))

    lake.target(name).apply(MergeChanges(read), TableCommit(state.markers))


@pytest.mark.parametrize("kind", KEYS)
def test_random_changes_under_changing_images_end_in_the_lake_as_in_the_source(capture, lake, kind):
    """Updates of keys in chains, deletes and new rows, in batches of any size; all merged once more change nothing."""
    capture.execute(f"CREATE TABLE r ({KEYS[kind]}, {COLUMNS})")
    draw = random.Random(kind)
    for _ in range(4):
        capture.execute(f"REPLACE INTO r (id, g, b) VALUES ({draw.randrange(8)}, {draw.randrange(2)}, 'whole')")
        for _ in range(draw.randint(4, 20)):
            with capture.server.connect(database=capture.database) as session, session.cursor() as cursor:
                cursor.execute(f"SET SESSION binlog_row_image = '{draw.choice(IMAGES)}'")
                for _ in range(draw.randint(1, 3)):
                    cursor.execute(statement(draw))
        one_round(capture, lake)
        assert_equal(capture, lake)
    everything_again(capture, lake)
    assert_equal(capture, lake)


def test_an_update_of_a_row_that_the_lake_does_not_have_stops_the_table(capture, lake):
    """With the table, the columns, the keys and the ways out; the lake is as it stood."""
    capture.execute(f"CREATE TABLE r ({KEYS['one column']}, {COLUMNS})")
    capture.execute("INSERT INTO r VALUES (1, 0, 1, 'x', 't', 'c'), (2, 0, 1, 'x', 't', 'c')")
    one_round(capture, lake)
    capture.pipeline.plan(by="test")
    lake.spark.sql(f"DELETE FROM {lake.name(f'{capture.database}.r')} WHERE id = 2")
    in_session(
        capture,
        "SET SESSION binlog_row_image = 'MINIMAL'",
        "UPDATE r SET b = 'new'",
    )
    with pytest.raises(MergeError, match=r"a, t, c.*id=2|id=2.*a, t, c") as caught:
        one_round(capture, lake)
    assert caught.value.context["table"] == f"{capture.database}.r"
    assert "binlog_row_image=FULL" in caught.value.hint
    assert [row[1] for row in lake.rows(f"{capture.database}.r", "id", "b")] == ["x"]


def test_an_insert_that_lacks_a_default_stops_the_table_unless_a_later_change_gives_it(capture, lake):
    """The default is not in the binlog."""
    capture.execute("CREATE TABLE r (id INT PRIMARY KEY, g INT, a INT DEFAULT 7, b INT, t TEXT, c TEXT)")
    in_session(
        capture,
        "SET SESSION binlog_row_image = 'MINIMAL'",
        "INSERT INTO r (id, g, b) VALUES (1, 1, 1), (2, 2, 2), (3, 3, 3)",
        "UPDATE r SET a = 8, t = 'x' WHERE id = 1",
        "DELETE FROM r WHERE id = 2",
        "UPDATE r SET id = 4, a = 9 WHERE id = 3",
    )
    one_round(capture, lake)
    assert_equal(capture, lake)
    in_session(
        capture,
        "SET SESSION binlog_row_image = 'MINIMAL'",
        "INSERT INTO r (id, g, b) VALUES (5, 1, 1)",
    )
    with pytest.raises(MergeError, match="column=a, key=id=5"):
        one_round(capture, lake)


@pytest.mark.parametrize("kind", ["VIRTUAL", "STORED"])
def test_a_generated_column_whose_changes_the_image_omits_is_that_of_the_source(capture, lake, kind):
    """MariaDB omits virtual ones, and 11.8 stored ones too; the lake does not keep the value of the row before."""
    capture.execute(f"CREATE TABLE r (id INT PRIMARY KEY, n INT, g INT AS (n + 1) {kind})")
    capture.execute("INSERT INTO r (id, n) VALUES (1, 1), (2, 2)")
    lake.origin = partial(Reselector.of, capture.pipeline)
    one_round(capture, lake)
    in_session(capture, "SET SESSION binlog_row_image = 'MINIMAL'", "UPDATE r SET n = 8 WHERE id = 1")
    one_round(capture, lake)
    assert sorted(map(tuple, lake.rows(f"{capture.database}.r", "id", "n", "g"))) == [(1, 8, 9), (2, 2, 3)]


def test_an_insert_that_lacks_a_default_while_a_snapshot_is_read_is_not_taken_for_a_deleted_row(
    mysql_server, mysql_database, tmp_path, spark_lake
):
    """Its part of the table was read before it was there, or lies after the last key that is read."""
    capture = Capture(mysql_server, mysql_database, tmp_path, start="snapshot", snapshot={"chunk_rows": 2})
    spark, config = spark_lake
    lake = Lake(spark, capture.config.model_copy(update={"lake": config.lake}), capture.store)
    capture.execute("CREATE TABLE r (id INT PRIMARY KEY, a INT DEFAULT 7, b INT)")
    capture.execute("INSERT INTO r (id, b) VALUES (1, 1), (3, 3), (5, 5), (7, 7)")
    (task,) = capture.pipeline.plan(by="test")
    identity = capture.facts().identity
    first = first_chunk(capture.reader, task, identity)
    minimal = "SET SESSION binlog_row_image = 'MINIMAL'"
    in_session(capture, minimal, "INSERT INTO r (id, b) VALUES (2, 0), (9, 0)", "UPDATE r SET b = 8 WHERE id = 1")
    assert not first.chunk.last
    capture.pipeline.drain(task)
    capture.pipeline.ack_drain(by="test")
    with pytest.raises(MergeError, match=r"column=a, key=id=[29]"):
        one_round(capture, lake)
    lake.origin = partial(Reselector.of, capture.pipeline)
    one_round(capture, lake)
    assert lake.rows(f"{capture.database}.r", "id", "a", "b") == [
        (1, 7, 8), (2, 7, 0), (3, 7, 3), (5, 7, 5), (7, 7, 7), (9, 7, 0)
    ]  # fmt: skip


def test_a_table_without_a_key_refuses_incomplete_rows(capture, lake):
    """Updates and deletes are whole there; an insert that lacks a default stops the table."""
    capture.execute("CREATE TABLE r (n INT, v INT DEFAULT 3, t TEXT)")
    in_session(
        capture,
        "SET SESSION binlog_row_image = 'MINIMAL'",
        "INSERT INTO r VALUES (1, 2, 't')",
        "UPDATE r SET n = 2",
        "SET SESSION binlog_row_image = 'NOBLOB'",
        "UPDATE r SET n = 3",
    )
    one_round(capture, lake)
    found = lake.rows(f"{capture.database}.r", "_op", "n", "v", "t")
    assert found == [("c", 1, 2, "t"), ("d", 1, 2, "t"), ("d", 2, 2, "t"), ("u", 2, 2, "t"), ("u", 3, 2, "t")]


def test_a_document_that_only_differences_are_known_of_stops_the_table_unless_a_later_change_gives_it(
    mysql_server, mysql_database, tmp_path, spark_lake
):
    """Neither the old document nor null stands for the new one."""
    capture = Capture(mysql_server, mysql_database, tmp_path, start="latest")
    spark, config = spark_lake
    lake = Lake(spark, capture.config.model_copy(update={"lake": config.lake}), capture.store)
    capture.pipeline.plan(by="test")
    capture.execute("CREATE TABLE r (id INT PRIMARY KEY, j JSON, v INT)")
    capture.execute("INSERT INTO r VALUES (1, %s, 0), (2, %s, 0)", ['{"k": 1, "l": "' + "x" * 90 + '"}'] * 2)
    differ = "UPDATE r SET j = JSON_SET(j, '$.k', 2) WHERE id = {}"
    session = "SET SESSION binlog_row_image = 'MINIMAL', binlog_row_value_options = 'PARTIAL_JSON'"
    in_session(capture, session, differ.format(1), "UPDATE r SET j = '[]' WHERE id = 1", "UPDATE r SET v = 5")
    one_round(capture, lake)
    assert [row[:2] for row in lake.rows(f"{capture.database}.r", "v", "id", "j")] == [(5, 1), (5, 2)]
    in_session(capture, session, differ.format(2))
    with pytest.raises(MergeError, match="column=j, key=id=2"):
        one_round(capture, lake)
    assert {row[0][:7] for row in lake.rows(f"{capture.database}.r", "j")} == {"[]", '{"k": 1'}


def test_a_snapshot_brings_the_rows_that_its_windows_could_not(spark_lake, tmp_path):
    """While it is to come, what cannot be completed is left to it; without one to come the table stops."""
    spark, config = spark_lake
    lake = Lake(spark, config, LocalStore(tmp_path / "store"))
    schema = table(f"{lake.database}.t", {"id": BIGINT, "v": BIGINT, "w": BIGINT})
    absent, both = frozenset("w"), frozenset("vw")
    early = [Row("u", 10, {"id": 1, "v": 5}, absent=absent), Row("c", 20, {"id": 2, "v": 6}, absent=absent)]
    window = lake.batches.window(4, 100, {schema: early})
    alone = Lake(spark, config.model_copy(update={"start": "latest"}), lake.store)
    with pytest.raises(MergeError, match="column=w"):
        alone.merge(lake.batches.plan(100, window))
    lake.merge(lake.batches.plan(100, window))
    assert lake.rows(schema.name, "id", "v", "w") == []
    rows = [{"id": 1, "v": 4, "w": 50}, {"id": 2, "v": 6, "w": 60}]
    lake.merge(lake.batches.plan(100, lake.batches.chunk(schema, 8, rows)))
    assert lake.rows(schema.name, "id", "v", "w") == [(1, 5, 50), (2, 6, 60)]
    late = [Row("d", 110, {"id": 1}, absent=both), Row("u", 110, {"id": 3}, 1, absent=both)]
    lake.merge(lake.batches.plan(200, lake.batches.window(100, 200, {schema: late})))
    assert lake.rows(schema.name, "id", "v", "w") == [(2, 6, 60), (3, 5, 50)]


@pytest.mark.parametrize("seed", [1, 2])
def test_partial_changes_that_are_replayed_over_newer_rows_end_as_in_the_source(capture, lake, seed):
    """After a rewind, which is a new epoch: older values stand for a moment in no cut, and the newest in the end."""
    capture.execute(f"CREATE TABLE r ({KEYS['one column']}, {COLUMNS})")
    capture.execute("INSERT INTO r (id, g, b) VALUES " + ", ".join(f"({n}, {n % 2}, 'whole')" for n in range(8)))
    one_round(capture, lake)
    start, draw = capture.head(), random.Random(seed)
    for _ in range(2):
        for _ in range(12):
            name, second = draw.sample(list(MAKERS), 2)
            key = draw.randrange(8)
            change = f"UPDATE r SET {name} = {MAKERS[name](draw)}, {second} = {MAKERS[second](draw)} WHERE id = {key}"
            again = (f"DELETE FROM r WHERE id = {key}", f"INSERT INTO r VALUES ({key}, 0, 1, 'again', 't', 'c')")
            image = f"SET SESSION binlog_row_image = '{draw.choice(IMAGES)}'"
            in_session(capture, image, change, *(again if draw.random() < 0.2 else ()))
        one_round(capture, lake)
        assert_equal(capture, lake)
    moved = requests.rewind(capture.pipeline, StartAt(position=str(start)), by="test", why="replay")
    assert (moved.epoch, moved.position) == (2, start)
    in_session(
        capture,
        "SET SESSION binlog_row_image = 'MINIMAL'",
        "UPDATE r SET a = 77 WHERE id < 4",
        "DELETE FROM r WHERE id = 7",
    )
    one_round(capture, lake)
    assert_equal(capture, lake)
    assert capture.pipeline.plan_merge(by="test") is None


@pytest.mark.parametrize("seed", [1, 2])
def test_replayed_changes_of_keys_without_all_columns_are_never_wrong(any_server, database, tmp_path, spark_lake, seed):
    """Read again a file at a time, keys go back and forth over newer rows: the lake ends as the source, or the table stops."""
    small = {"max_window_bytes": 1, "max_windows": 1}
    capture = Capture(any_server, database, tmp_path, start="latest", drain=small)
    spark, config = spark_lake
    lake = Lake(spark, capture.config.model_copy(update={"lake": config.lake}), capture.store)
    capture.pipeline.plan(by="test")
    capture.execute(f"CREATE TABLE r ({KEYS['one column']}, {COLUMNS})")
    capture.execute("INSERT INTO r (id, g, b) VALUES " + ", ".join(f"({n}, {n % 2}, 'whole')" for n in range(8)))
    one_round(capture, lake)
    start, draw = capture.head(), random.Random(seed)
    for _ in range(3):
        for _ in range(draw.randint(1, 4)):
            image = f"SET SESSION binlog_row_image = '{draw.choice(('MINIMAL', 'MINIMAL', *IMAGES))}'"
            name = draw.choice(list(MAKERS))
            key, other = draw.randrange(8), draw.randrange(16)
            moved = f"UPDATE IGNORE r SET id = {other}, {name} = {MAKERS[name](draw)} WHERE id = {key}"
            in_session(
                capture, image, moved, f"UPDATE r SET {name} = {MAKERS[name](draw)} WHERE id = {draw.randrange(8)}"
            )
        capture.execute("FLUSH BINARY LOGS")
    while one_round(capture, lake) is not None:
        pass
    assert_equal(capture, lake)
    requests.rewind(capture.pipeline, StartAt(position=str(start)), by="test", why="replay")
    merges, stopped = 0, None
    try:
        while one_round(capture, lake) is not None:
            merges += 1
    except MergeError as error:
        stopped = error
    if stopped is None:
        assert merges > 1
        assert_equal(capture, lake)
        return
    assert "the binlog does not contain all columns of some rows" in str(stopped)
    assert stopped.context["table"] == f"{database}.r"
    with pytest.raises(MergeError):  # and stays so, rather than to continue without the rows
        one_round(capture, lake)
