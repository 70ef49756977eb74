"""Rows that the merge re-selects: where the binlog has them incomplete, and where it leaves out much of what its run saw."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial

import pytest

from cdc_lib.apply import parts
from cdc_lib.config.credentials import handed_on
from cdc_lib.config.reselect import ReselectConfig
from cdc_lib.errors import MergeError, ReselectError
from cdc_lib.model.position import Point
from cdc_lib.mysql.watermark import low_watermark
from cdc_lib.reselect.rows import Reselector
from spark_jobs.iceberg.row_delta import RowCommit
from tests.harness.binlog.capture import Capture
from tests.harness.binlog.row_images import COLUMNS, IMAGES, KEYS, assert_equal, in_session, one_round, statement
from tests.harness.lake.running import Lake

MINIMAL = "SET SESSION binlog_row_image = 'MINIMAL'"


@pytest.fixture(autouse=True)
def at_rest(monkeypatch):
    """The tests write and read in turn: no commit needs time to settle, which takes seconds where there are no GTIDs."""
    monkeypatch.setitem(low_watermark.__kwdefaults__, "settle", 0.01)


@pytest.fixture
def capture(any_server, database, tmp_path):
    return Capture(any_server, database, tmp_path, start="latest")


@pytest.fixture
def lake(spark_lake, capture):
    """A lake beside the captured server, which begins here; only rows that are not whole are read back."""
    spark, config = spark_lake
    settings = {"lake": config.lake, "reselect": ReselectConfig(when_lag_exceeds=None)}
    lake = Lake(spark, capture.config.model_copy(update=settings), capture.store)
    lake.origin = partial(Reselector.of, capture.pipeline)
    capture.pipeline.plan(by="test")
    return lake


def reselecting(lake, **settings):
    lake.config = lake.config.model_copy(update={"reselect": ReselectConfig(**settings)})


def in_small_plans(capture):
    """Let each plan take one window, up to the end of a binlog file."""
    drain = capture.config.drain.model_copy(update={"max_window_bytes": 1, "max_windows": 1})
    capture.pipeline = replace(capture.pipeline, config=capture.config.model_copy(update={"drain": drain}))


def table_of(capture):
    return f"{capture.database}.r"


def looked_up(lake):
    """How many rows each look-up was for."""
    return [int(line.split(": ")[1].split()[0]) for line in lake.said if "re-selected" in line]


def test_rows_that_the_log_leaves_incomplete_are_read_from_the_source(capture, lake):
    """Defaults, updates of rows that the lake lacks, moved ones, and rows that are gone by now: one look-up per merge."""
    capture.execute(
        "CREATE TABLE r (id INT PRIMARY KEY, g INT, a INT DEFAULT 7, b VARCHAR(9) DEFAULT 'd', t TEXT, c BLOB)"
    )
    capture.execute("INSERT INTO r VALUES (1, 0, 1, 'x', 't', 'c'), (2, 0, 1, 'x', 't', 'c'), (3, 0, 1, 'x', 't', 'c')")
    one_round(capture, lake)
    capture.pipeline.plan(by="test")
    lake.spark.sql(f"DELETE FROM {lake.name(table_of(capture))} WHERE id IN (2, 3)")
    in_session(
        capture,
        MINIMAL,
        "INSERT INTO r (id, g) VALUES (5, 1), (6, 1), (7, 1)",
        "UPDATE r SET g = 9 WHERE id = 2",
        "UPDATE r SET id = 30, t = 'moved' WHERE id = 3",
        "UPDATE r SET id = 60 WHERE id = 6",
    )
    one_round(capture, lake, lambda: capture.execute("DELETE FROM r WHERE id = 7"))
    assert_equal(capture, lake)
    assert looked_up(lake) == [5]
    assert not [key for key in capture.visible() if "reselect" in key]
    one_round(capture, lake)
    assert_equal(capture, lake)


def test_never_stops_the_table_as_before(capture, lake):
    """With the error that names the rows."""
    reselecting(lake, tables=[{"tables": table_of(capture), "mode": "never"}])
    capture.execute("CREATE TABLE r (id INT PRIMARY KEY, g INT, a INT DEFAULT 7)")
    in_session(capture, MINIMAL, "INSERT INTO r (id, g) VALUES (5, 1)")
    with pytest.raises(MergeError, match="column=a, key=id=5"):
        one_round(capture, lake)
    assert lake.said == [line for line in lake.said if "re-selected" not in line]


def test_a_document_that_only_differences_are_known_of_is_read_from_the_source(
    mysql_server, mysql_database, tmp_path, spark_lake
):
    """The row as a whole, by one look-up for all differences."""
    capture = Capture(mysql_server, mysql_database, tmp_path, start="latest")
    spark, config = spark_lake
    lake = Lake(spark, capture.config.model_copy(update={"lake": config.lake}), capture.store)
    lake.origin = partial(Reselector.of, capture.pipeline)
    capture.pipeline.plan(by="test")
    capture.execute("CREATE TABLE r (id INT PRIMARY KEY, j JSON, v INT)")
    capture.execute("INSERT INTO r VALUES (1, %s, 0)", ['{"k": 1, "l": "' + "x" * 90 + '"}'])
    session = "SET SESSION binlog_row_image = 'MINIMAL', binlog_row_value_options = 'PARTIAL_JSON'"
    in_session(capture, session, *(f"UPDATE r SET j = JSON_SET(j, '$.k', {n}) WHERE id = 1" for n in range(20)))
    one_round(capture, lake)
    assert looked_up(lake) == [1]
    assert [row[0][:8] for row in lake.rows(table_of(capture), "j")] == ['{"k": 19']


def test_a_thousand_updates_of_a_row_are_one_look_up(capture, lake):
    """And the row is ahead of the cut, which says up to where, until the windows in between are merged."""
    reselecting(lake, mode="always")
    capture.execute("CREATE TABLE r (id INT PRIMARY KEY, v INT)")
    in_session(capture, "INSERT INTO r VALUES (1, 0), (2, 0)", *["UPDATE r SET v = v + 1 WHERE id = 1"] * 1000)
    cuts = []

    def merged(meanwhile=lambda: None):
        one_round(capture, lake, meanwhile)
        cuts.append(lake.cuts[-1].tables[0])

    merged(lambda: in_session(capture, "UPDATE r SET v = -1", "DELETE FROM r WHERE id = 2"))
    assert looked_up(lake) == [2]
    assert lake.rows(table_of(capture), "id", "v") == [(1, -1)]
    assert cuts[0].ahead_until == Point.at(1, capture.head())
    state = lake.state(table_of(capture))
    assert state.marker.top == state.marker.reselected.low
    lake.config = lake.config.model_copy(update={"reselect": ReselectConfig(mode="never")})
    merged()
    assert lake.rows(table_of(capture), "id", "v") == [(1, -1)]
    assert cuts[1].ahead_until is None
    assert lake.state(table_of(capture)).marker.reselected is None


def test_an_older_change_does_not_overwrite_a_reselected_row(capture, lake):
    """A key that the source has no more may come back by its older insert, and goes with its delete."""
    reselecting(lake, mode="always")
    capture.execute("CREATE TABLE r (id INT PRIMARY KEY, v INT)")
    in_session(capture, "INSERT INTO r VALUES (1, 1), (2, 1)")
    between = [
        "UPDATE r SET v = 2",
        "DELETE FROM r WHERE id = 2",
        "INSERT INTO r VALUES (2, 3)",
        "DELETE FROM r WHERE id = 2",
    ]

    def older():
        for one in (*between, "UPDATE r SET v = 4"):
            capture.execute(one)
            capture.execute("FLUSH BINARY LOGS")  # a window each

    one_round(capture, lake, older)
    assert lake.rows(table_of(capture), "id", "v") == [(1, 4)]
    reselecting(lake, mode="never")
    drain = capture.config.drain.model_copy(update={"max_window_bytes": 1})  # a window for each binlog file
    pipeline, seen = replace(capture.pipeline, config=capture.config.model_copy(update={"drain": drain})), []
    while units := pipeline.plan(by="test"):
        pipeline.drain(units[0])
        pipeline.ack_drain(by="test")
        lake.merge(pipeline.plan_merge(by="test"))
        pipeline.ack_lake(by="test")
        seen.append(dict(lake.rows(table_of(capture), "id", "v")))
    assert len(seen) >= 5
    assert {state[1] for state in seen} == {4}
    assert {state.get(2) for state in seen} == {None, 2, 3}
    assert seen[-1] == {1: 4}


def test_a_merge_that_dies_between_read_and_commit_leaves_nothing_and_is_done_again(capture, lake, monkeypatch):
    """The next attempt reads again, later; the table has what the source has."""
    reselecting(lake, mode="always")
    capture.execute("CREATE TABLE r (id INT PRIMARY KEY, v INT)")
    capture.execute("INSERT INTO r VALUES (1, 1), (2, 1)")
    real = RowCommit.publish
    monkeypatch.setattr(RowCommit, "publish", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        one_round(capture, lake)
    assert not [key for key in capture.visible() if "reselect" in key]
    assert lake.state(table_of(capture)).snapshot_id is None
    capture.execute("UPDATE r SET v = 5 WHERE id = 1")
    monkeypatch.setattr(RowCommit, "publish", real)
    plan = capture.pipeline.plan_merge(by="test")
    lake.merge(plan)
    assert lake.rows(table_of(capture), "id", "v") == [(1, 5), (2, 1)]
    before = lake.snapshots(table_of(capture))
    lake.merge(plan)
    assert lake.snapshots(table_of(capture)) == before


def test_a_source_that_was_quiet_before_the_run_is_not_reselected(capture, lake):
    """The run takes all that it saw, so the cut is of one transaction, however old the changes are. Later ones do not count."""
    reselecting(lake, when_lag_exceeds="0s")
    capture.execute("CREATE TABLE r (id INT PRIMARY KEY, v INT)")
    capture.execute("INSERT INTO r VALUES (1, 1), (2, 1)")
    time.sleep(1.1)  # commits have whole seconds in MariaDB's binlog
    one_round(capture, lake, lambda: capture.execute("UPDATE r SET v = 9"))
    assert lake.rows(table_of(capture), "id", "v") == [(1, 1), (2, 1)]
    assert (looked_up(lake), lake.cuts[-1].tables[0].ahead_until) == ([], None)


def test_a_busy_source_is_not_reselected_while_each_run_takes_what_it_saw(capture, lake):
    """Also when the merge waits, and later windows are planned and drained meanwhile: each cut is of one transaction."""
    reselecting(lake, when_lag_exceeds="0s")
    capture.execute("CREATE TABLE r (id INT PRIMARY KEY, v INT)")
    capture.execute("INSERT INTO r VALUES (1, 0)")
    pipeline = capture.pipeline
    one_round(capture, lake)
    for number in range(1, 4):
        capture.execute("UPDATE r SET v = %s", [number])
        units = pipeline.plan(by="test")
        capture.execute("UPDATE r SET v = -1")  # after the plan
        for unit in units:
            pipeline.drain(unit)
        pipeline.ack_drain(by="test")
        plan = pipeline.plan_merge(by="test")
        for unit in pipeline.plan(by="test"):  # of the next run
            pipeline.drain(unit)
        lake.merge(plan)
        assert lake.rows(table_of(capture), "v") == [(number,)]
        pipeline.ack_lake(by="test")
        one_round(capture, lake)
    assert looked_up(lake) == []
    assert [cut.tables[0].ahead_until for cut in lake.cuts if cut.tables] == [None] * len(lake.cuts)


def test_a_backlog_is_reselected_until_a_run_takes_all_that_it_saw(capture, lake):
    """Its cuts say up to where rows are ahead; the last one is of one transaction."""
    reselecting(lake, when_lag_exceeds="0s")
    capture.execute("CREATE TABLE r (id INT PRIMARY KEY, v INT)")
    one_round(capture, lake)
    capture.execute("INSERT INTO r VALUES (1, 0)")
    for number in range(1, 3):
        capture.execute("FLUSH BINARY LOGS")
        capture.execute("UPDATE r SET v = %s", [number])
    time.sleep(1.1)  # commits have whole seconds in MariaDB's binlog
    in_small_plans(capture)
    end = Point.at(1, capture.head())
    ahead, rows = [], []
    for _ in range(3):
        one_round(capture, lake)
        ahead.append(lake.cuts[-1].tables[0].ahead_until)
        rows.append(lake.rows(table_of(capture), "v"))
    assert rows == [[(2,)]] * 3
    assert ahead == [end, end, None]
    assert looked_up(lake) == [1, 1]


def test_whole_rows_come_from_the_log_when_the_source_cannot_be_asked(capture, lake):
    """Unless the source file says always; rows that are not whole are tried again."""
    reselecting(lake, when_lag_exceeds="0s")
    capture.execute("CREATE TABLE r (id INT PRIMARY KEY, v INT, w INT DEFAULT 3)")
    capture.execute("INSERT INTO r VALUES (1, 1, 1)")
    capture.execute("FLUSH BINARY LOGS")
    in_small_plans(capture)
    here = Reselector.of(capture.pipeline)
    away = here.source.config.model_copy(update={"server": here.source.config.server.model_copy(update={"port": 1})})
    lake.origin = lambda: replace(here, source=replace(here.source, config=away))
    one_round(capture, lake)
    assert lake.rows(table_of(capture), "id", "v") == [(1, 1)]
    assert any("goes by the log" in line for line in lake.said)
    in_session(capture, MINIMAL, "INSERT INTO r (id, v) VALUES (2, 2)")
    with pytest.raises(ReselectError, match="cannot be reached"):
        one_round(capture, lake)
    reselecting(lake, mode="always")
    with pytest.raises(ReselectError):
        lake.merge(capture.pipeline.plan_merge(by="test"))
    lake.origin = partial(Reselector.of, capture.pipeline)
    one_round(capture, lake)
    assert lake.rows(table_of(capture), "id", "v", "w") == [(1, 1, 1), (2, 2, 3)]


@pytest.mark.parametrize("statement", ["DROP TABLE r", "ALTER TABLE r DROP COLUMN w"])
def test_a_replaced_table_is_not_reselected_but_merged_from_the_binlog(capture, lake, statement):
    """Whole rows do."""
    reselecting(lake, mode="always")
    capture.execute("CREATE TABLE r (id INT PRIMARY KEY, v INT, w INT DEFAULT 3)")
    in_session(capture, "INSERT INTO r VALUES (1, 1, 1)")
    one_round(capture, lake, lambda: None)
    in_session(capture, "UPDATE r SET v = 2")
    one_round(capture, lake, lambda: capture.execute(statement))
    assert lake.rows(table_of(capture), "id", "v") == [(1, 2)]
    assert any("goes by the log" in line for line in lake.said)


def test_columns_added_meanwhile_come_with_reselected_rows(capture, lake):
    """The windows that add them, and change them, find these rows newer; rows that were not read get the default from them."""
    capture.execute("CREATE TABLE r (id INT PRIMARY KEY, v INT, w INT DEFAULT 3)")
    capture.execute("INSERT INTO r VALUES (9, 9, 9)")
    one_round(capture, lake)
    in_session(
        capture, MINIMAL, "INSERT INTO r (id, v) VALUES (1, 1), (2, 2), (3, 3)", "UPDATE r SET v = 8 WHERE id = 9"
    )

    def meanwhile():
        capture.execute("ALTER TABLE r ADD COLUMN z INT DEFAULT 4, ADD COLUMN y VARCHAR(5) DEFAULT 'y' AFTER v")
        in_session(capture, MINIMAL, "UPDATE r SET z = 5 WHERE id = 2", "DELETE FROM r WHERE id = 3")

    one_round(capture, lake, meanwhile)
    assert lake.rows(table_of(capture), "id", "v", "w", "z", "y") == [
        (1, 1, 3, 4, "y"),
        (2, 2, 3, 5, "y"),
        (9, 8, 9, None, None),
    ]
    one_round(capture, lake)
    assert looked_up(lake) == [3]
    assert lake.rows(table_of(capture), "id", "v", "y", "w", "z") == capture.execute("SELECT * FROM r ORDER BY id")


def test_keys_are_counted_over_all_parts_of_the_changes(capture, lake, monkeypatch):
    """What is over the limit comes from the log; the marker says up to where the others are ahead."""
    monkeypatch.setattr(parts, "PART_BYTES", 1)
    monkeypatch.setattr(parts, "_STRIDE", 1)
    reselecting(lake, mode="always", max_keys=20)
    capture.execute("CREATE TABLE r (id INT PRIMARY KEY, v INT)")
    for first in range(0, 30, 10):
        in_session(capture, "INSERT INTO r VALUES " + ", ".join(f"({first + n}, 1)" for n in range(10)))
    one_round(capture, lake, lambda: capture.execute("UPDATE r SET v = 2"))
    rows = dict(lake.rows(table_of(capture), "id", "v"))
    assert len(rows) == 30
    ahead = [key for key, value in rows.items() if value == 2]
    assert sum(looked_up(lake)) == len(ahead) == 20
    assert [line for line in lake.said if "more than 20 keys" in line]
    one_round(capture, lake)
    assert set(dict(lake.rows(table_of(capture), "id", "v")).values()) == {2}


def test_more_keys_than_allowed_are_not_looked_up(capture, lake):
    """Whole rows come from the log."""
    reselecting(lake, mode="always", max_keys=2)
    capture.execute("CREATE TABLE r (id INT PRIMARY KEY, v INT)")
    capture.execute("INSERT INTO r VALUES (1, 1), (2, 1), (3, 1)")
    one_round(capture, lake)
    assert len(lake.rows(table_of(capture), "id")) == 3
    assert looked_up(lake) == []
    assert any("more than 2 keys" in line for line in lake.said)


@pytest.mark.parametrize("mode", ["auto", "always"])
@pytest.mark.parametrize("kind", KEYS)
def test_random_changes_during_a_reselection_end_as_in_the_source(capture, lake, kind, mode, monkeypatch):
    """Images of any kind, keys that move, and windows that lie after what was read, in several parts: once all are merged, all is right."""
    monkeypatch.setattr(parts, "PART_BYTES", 500)
    monkeypatch.setattr(parts, "_STRIDE", 1)
    reselecting(lake, mode=mode, when_lag_exceeds=None)
    capture.execute(f"CREATE TABLE r ({KEYS[kind]}, {COLUMNS.replace('a INT', 'a INT DEFAULT 7')})")
    draw = random.Random(f"{kind} {mode}")

    def some():
        for _ in range(draw.randint(2, 8)):
            image, changed = draw.choice(IMAGES), [statement(draw, named=True) for _ in range(draw.randint(1, 3))]
            key = draw.randrange(8)
            changed.append(f"INSERT IGNORE INTO r (id, g, b) VALUES ({key}, {key % 2}, 'new')")
            in_session(capture, f"SET SESSION binlog_row_image = '{image}'", *changed)

    for _ in range(5):
        some()
        one_round(capture, lake, some)
    one_round(capture, lake)
    assert_equal(capture, lake)
    assert looked_up(lake)
    assert lake.state(table_of(capture)).marker.reselected is None


def test_tables_that_share_a_lake_table_are_reselected_separately(any_server, database, tmp_path, spark_lake):
    """The columns that tell them apart say which table to ask; a predicate holds for rows that are read back, too."""
    route = {"tables": f"{database}.r*", "into": f"{database}.all_of_them", "keys": ["table"], "where": "v < 100"}
    capture = Capture(any_server, database, tmp_path, start="latest", routes=[route])
    spark, config = spark_lake
    settings = {"lake": config.lake, "reselect": ReselectConfig(mode="always")}
    lake = Lake(spark, capture.config.model_copy(update=settings), capture.store)
    lake.origin = partial(Reselector.of, capture.pipeline)
    capture.pipeline.plan(by="test")
    for table in ("r1", "r2"):
        capture.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, v INT)")
        capture.execute(f"INSERT INTO {table} VALUES (1, 1), (2, 2), (3, 3)")
    later = ["UPDATE r1 SET v = 10 WHERE id = 1", "UPDATE r2 SET v = 500 WHERE id = 2", "DELETE FROM r1 WHERE id = 3"]
    one_round(capture, lake, lambda: in_session(capture, *later))
    name = lake.name(f"{database}.r1")
    rows = {tuple(row) for row in spark.sql(f"SELECT _source_table, id, v FROM {name}").collect()}
    assert rows == {("r1", 1, 10), ("r1", 2, 2), ("r2", 1, 1), ("r2", 3, 3)}
    assert sorted(looked_up(lake)) == [3, 3]
    reselecting(lake, mode="never")
    one_round(capture, lake)
    assert {tuple(row) for row in spark.sql(f"SELECT _source_table, id, v FROM {name}").collect()} == rows


def test_the_merge_job_reselects_with_the_log_in_that_it_gets(capture, tmp_path):
    """In a process of its own, of a source whose log-in only Airflow knows; the password is in none of its output."""
    capture.pipeline.plan(by="test")
    capture.execute("CREATE TABLE r (id INT PRIMARY KEY, g INT, a INT DEFAULT 7)")
    in_session(capture, MINIMAL, "INSERT INTO r (id, g) VALUES (5, 1)")
    for unit in capture.pipeline.plan(by="test"):
        capture.pipeline.drain(unit)
    capture.pipeline.ack_drain(by="test")
    plain = capture.config.model_dump(mode="json", exclude_unset=True)
    plain["server"] = {"host": capture.server.host, "port": capture.server.port, "connection": "shop_db"}
    plain["lake"] = {"type": "jdbc", "uri": f"jdbc:sqlite:{tmp_path}/own.db", "warehouse": f"file://{tmp_path}/own"}
    plain["merge"] = {"driver_memory": "1g"}
    path = tmp_path / f"{capture.config.source}.yaml"
    path.write_text(json.dumps(plain))
    done = subprocess.run(
        [sys.executable, "-m", "spark_jobs.merge", "--config", str(path)],
        env={**os.environ, **handed_on(capture.credentials)},
        capture_output=True,
        text=True,
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "r: 1 row re-selected as of 0000" in done.stdout
    assert capture.credentials.password not in said


def test_a_column_added_and_renamed_meanwhile_keeps_reselected_values(capture, lake):
    """The windows that tell of both come later. A name that another column has by then stops the table."""
    reselecting(lake, mode="always")
    capture.execute("CREATE TABLE r (id INT PRIMARY KEY, a INT, b INT)")
    capture.execute("INSERT INTO r VALUES (1, 1, 10), (2, 2, 20)")
    one_round(capture, lake)
    capture.execute("UPDATE r SET a = 5 WHERE id = 1")
    one_round(
        capture,
        lake,
        lambda: in_session(
            capture,
            "ALTER TABLE r ADD COLUMN c INT DEFAULT 7",
            "ALTER TABLE r RENAME COLUMN c TO d",
            "UPDATE r SET d = 6 WHERE id = 1",
        ),
    )
    one_round(capture, lake)
    names = ("id", "a", "b", "d")
    assert lake.rows(table_of(capture), *names) == [(1, 5, 10, 6), (2, 2, 20, 7)]
    capture.execute("UPDATE r SET a = 4 WHERE id = 1")
    exchanged = "ALTER TABLE r DROP COLUMN a", "ALTER TABLE r RENAME COLUMN b TO a", "ALTER TABLE r ADD b INT AFTER a"
    one_round(capture, lake, lambda: in_session(capture, *exchanged))
    with pytest.raises(MergeError, match=r"b to a.*it is unknown"):
        one_round(capture, lake)
