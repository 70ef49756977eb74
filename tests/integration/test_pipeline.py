"""Plan, drain and ack with real servers: adopted windows, durable batches, and restarts after a failure."""

from __future__ import annotations

import pytest

from cdc_lib.errors import BatchNotDurable, CursorMoved, SourceUnavailable
from cdc_lib.model.cursor import DRAIN, LAKE
from cdc_lib.model.window import SnapshotTask, Window
from cdc_lib.mysql.binlog_stream import ServerStream
from cdc_lib.snapshot.chunk_reader import ChunkReader
from tests.harness.binlog.capture import SOURCE, Capture
from tests.harness.lake.merging import Lake, merge_all


@pytest.fixture
def capture(any_server, database, tmp_path):
    """A source that follows the binlog from now on, with one change after its cursor."""
    capture = Capture(any_server, database, tmp_path, start="latest")
    capture.execute("CREATE TABLE a (id INT PRIMARY KEY)")
    assert not capture.pipeline.plan(by="test")
    capture.execute("INSERT INTO a VALUES (1)")
    return capture


def cursor(capture, consumer=DRAIN):
    return capture.pipeline.cursors.load(SOURCE, consumer)


def test_planning_again_adopts_the_windows_in_flight(capture):
    """Even if the binlog has grown meanwhile: their bounds are fixed."""
    first = capture.pipeline.plan(by="one")
    generation = cursor(capture).generation
    capture.execute("INSERT INTO a VALUES (2)")
    assert capture.pipeline.plan(by="two") == first
    assert cursor(capture).generation == generation


def test_nothing_new_plans_nothing(capture):
    """A cursor at the end of the binlog has no window in flight."""
    for unit in capture.pipeline.plan(by="test"):
        capture.pipeline.drain(unit)
    capture.pipeline.ack_drain(by="test")
    assert capture.pipeline.plan(by="test") == []
    assert capture.pipeline.ack_drain(by="test").windows == 0


def test_an_ack_without_evidence_moves_nothing(capture):
    """A successful task state is no evidence."""
    capture.pipeline.plan(by="test")
    before = cursor(capture)
    with pytest.raises(BatchNotDurable):
        capture.pipeline.ack_drain(by="test")
    assert cursor(capture) == before


def test_an_ack_moves_over_durable_batches_and_stops_at_the_first_gap(any_server, database, tmp_path):
    """A later window's batch does not carry the cursor over an earlier one."""
    capture = Capture(any_server, database, tmp_path, start="latest", drain={"max_window_bytes": "1KiB"})
    capture.execute("CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(2000))")
    capture.pipeline.plan(by="test")
    for turn in range(3):
        capture.execute(f"INSERT INTO a VALUES ({turn}, REPEAT('x', 2000))")
        capture.execute("FLUSH BINARY LOGS")
    windows = capture.pipeline.plan(by="test")
    assert len(windows) >= 3
    capture.pipeline.drain(windows[2])
    with pytest.raises(BatchNotDurable):
        capture.pipeline.ack_drain(by="test")
    capture.pipeline.drain(windows[0])
    result = capture.pipeline.ack_drain(by="test")
    assert (result.windows, result.stop) == (1, windows[0].stop)
    assert result.waiting == len(windows) - 1
    assert capture.pipeline.plan(by="test") == windows[1:]
    for window in windows[1:]:
        capture.pipeline.drain(window)
    result = capture.pipeline.ack_drain(by="test")
    assert (result.windows, result.waiting) == (len(windows) - 1, 0)
    assert cursor(capture).position == windows[-1].stop
    assert cursor(capture).event_time is not None
    assert [move.kind for move in cursor(capture).moves] == ["start"] + ["ack"] * len(windows)


def test_an_ack_before_any_plan_is_refused(any_server, database, tmp_path):
    """There is no cursor to move."""
    with pytest.raises(CursorMoved):
        Capture(any_server, database, tmp_path).pipeline.ack_drain(by="test")


def test_the_lake_is_acked_only_when_its_cut_exists(capture):
    """The plan of the merge stays the same until then."""
    for unit in capture.pipeline.plan(by="test"):
        capture.pipeline.drain(unit)
    capture.pipeline.ack_drain(by="test")
    plan = capture.pipeline.plan_merge(by="test")
    assert plan is not None
    assert len(plan.batches) == 1
    before = cursor(capture, LAKE)
    with pytest.raises(BatchNotDurable, match=r"has not published its cut .* cdc step merge"):
        capture.pipeline.ack_lake(by="test")
    assert cursor(capture, LAKE) == before
    assert capture.pipeline.plan_merge(by="other") == plan


def test_only_acknowledged_batches_are_merged(capture):
    """A durable batch alone is not enough."""
    for unit in capture.pipeline.plan(by="test"):
        capture.pipeline.drain(unit)
    assert capture.pipeline.plan_merge(by="test") is None


def test_each_captured_table_gets_a_snapshot_and_so_does_a_new_one(any_server, database, tmp_path):
    """Once each; a table that is not captured gets none."""
    capture = Capture(any_server, database, tmp_path, tables={"include": [f"{database}.*"], "exclude": ["*.no_*"]})
    capture.execute("CREATE TABLE a (id INT PRIMARY KEY)")
    capture.execute("CREATE TABLE no_thanks (id INT PRIMARY KEY)")
    capture.execute("INSERT INTO a VALUES (1), (2)")
    units = capture.pipeline.plan(by="test")
    assert [unit.table for unit in units if isinstance(unit, SnapshotTask)] == ["a"]
    run(capture, units)
    capture.execute("CREATE TABLE b (id INT PRIMARY KEY)")
    capture.execute("INSERT INTO b VALUES (7)")
    units = capture.pipeline.plan(by="test")
    (task,) = [unit for unit in units if isinstance(unit, SnapshotTask)]
    assert task.table == "b"
    result = run(capture, units)
    assert (result.chunks, result.waiting) == (1, 0)
    assert all(snapshot.complete for snapshot in cursor(capture).snapshots)
    assert capture.pipeline.plan(by="test") == []


def run(capture, units):
    for unit in units:
        capture.pipeline.drain(unit)
    return capture.pipeline.ack_drain(by="test")


def test_windows_are_merged_without_a_table_while_its_snapshot_is_unfinished(any_server, database, tmp_path):
    """Its rows could otherwise restore a deleted row; the merge that brings them brings the changes as well."""
    capture = Capture(any_server, database, tmp_path)
    capture.execute("CREATE TABLE a (id INT PRIMARY KEY)")
    capture.execute("INSERT INTO a VALUES (1), (2)")
    capture.pipeline.plan(by="test")
    capture.execute("DELETE FROM a WHERE id = 1")
    units = capture.pipeline.plan(by="test")
    windows = [unit for unit in units if isinstance(unit, Window)]
    assert windows
    run(capture, windows)
    plan = capture.pipeline.plan_merge(by="test")
    assert [(one.table, one.position) for one in plan.held] == [(f"{database}.a", windows[0].start)]
    merge_all(capture, lake := Lake("a"))
    assert lake.rows == {}
    run(capture, [unit for unit in units if isinstance(unit, SnapshotTask)])
    plan = capture.pipeline.plan_merge(by="test")
    assert (len(plan.batches), plan.start, plan.stop) == (1, windows[-1].stop, windows[-1].stop)
    assert [one.position for one in plan.catching_up] == [windows[0].start]
    merge_all(capture, lake)
    assert list(lake.rows) == [2]
    assert [(one["_op"], one["id"]) for one in lake.changes] == [("d", 1), ("r", 2)]


TABLES = {
    "numbers": ("id INT PRIMARY KEY, v INT", "SELECT n, n FROM seq"),
    "negatives": ("id BIGINT PRIMARY KEY, v INT", "SELECT -n * 1000000007, n FROM seq"),
    "unsigned": ("id BIGINT UNSIGNED PRIMARY KEY, v INT", "SELECT 18446744073709551615 - n, n FROM seq"),
    "pairs": ("x INT, id VARCHAR(20), v INT, PRIMARY KEY (x, id)", "SELECT n % 3, CONCAT('k', n), n FROM seq"),
    "strings": (
        "id VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci PRIMARY KEY, v INT",
        "SELECT CONCAT(ELT(1 + n % 5, 'a', 'B', 'é', '😀', '''\\\\'), n), n FROM seq",
    ),
    "latin": (
        "id VARCHAR(40) CHARACTER SET latin1 PRIMARY KEY, v INT",
        "SELECT CONCAT(ELT(1 + n % 3, 'ü', 'Z', '€'), n), n FROM seq",
    ),
    "bytes": ("id VARBINARY(16) PRIMARY KEY, v INT", "SELECT UNHEX(LPAD(HEX(n * 9), 6, '0')), n FROM seq"),
    "fixed": ("id BINARY(4) PRIMARY KEY, v INT", "SELECT UNHEX(RPAD(LPAD(HEX(n), 2, '0'), 8, '0')), n FROM seq"),
    "dates": (
        "id DATETIME(3) PRIMARY KEY, v INT",
        "SELECT TIMESTAMP('2024-02-28 23:59:59.5') + INTERVAL n SECOND, n FROM seq",
    ),
    "stamps": (
        "id TIMESTAMP(6) NOT NULL DEFAULT '2020-01-01 00:00:00' PRIMARY KEY, v INT",
        "SELECT FROM_UNIXTIME(1700000000 + n * 0.25), n FROM seq",
    ),
    "times": ("id TIME(1) PRIMARY KEY, v INT", "SELECT SEC_TO_TIME(n - 11.5), n FROM seq"),
    "decimals": ("id DECIMAL(38,10) PRIMARY KEY, v INT", "SELECT n * -1.0000000001, n FROM seq"),
    "doubles": ("id DOUBLE PRIMARY KEY, v INT", "SELECT n * 0.1e0, n FROM seq"),
    "years": ("id YEAR PRIMARY KEY, v INT", "SELECT 2000 + n, n FROM seq"),
    "members": ("id ENUM('q','w','e','r'), n INT, v INT, PRIMARY KEY (id, n)", "SELECT 1 + n % 4, n, n FROM seq"),
    "unique": ("id INT NOT NULL, v INT, UNIQUE KEY own (id)", "SELECT n * 3, n FROM seq"),
    "keyless": ("id INT, v INT", "SELECT 1, n FROM seq"),
    "empty": ("id INT PRIMARY KEY, v INT", "SELECT n, n FROM seq WHERE n < 0"),
}
ROWS = 23


@pytest.fixture
def chunked(any_server, database, tmp_path):
    """A source whose snapshots are read five rows at a time."""
    capture = Capture(
        any_server, database, tmp_path, snapshot={"chunk_rows": 5}, tables={"include": [f"{database}.t_*"]}
    )
    capture.execute("CREATE TABLE seq (n INT)")
    capture.execute("INSERT INTO seq VALUES " + ",".join(f"({n})" for n in range(ROWS)))
    return capture


@pytest.mark.parametrize("name", TABLES)
def test_chunks_of_every_kind_of_key_hold_each_row_once(chunked, name):
    """The SELECT that continues after a key finds its place for each type."""
    columns, rows = TABLES[name]
    chunked.execute(f"CREATE TABLE t_{name} ({columns})")
    chunked.execute(f"INSERT INTO t_{name} {rows}")
    manifests = chunked.snapshot(f"t_{name}")
    values = sorted(row["v"] for manifest in manifests for row in chunked.rows(manifest, f"t_{name}"))
    assert values == ([] if name == "empty" else list(range(ROWS)))
    assert [manifest.chunk.last for manifest in manifests] == [False] * (len(manifests) - 1) + [True]
    assert len(manifests) == {"keyless": 1, "members": 1, "empty": 1}.get(name, 5)


@pytest.mark.parametrize("name", ["numbers", "pairs", "strings"])
def test_a_snapshot_continues_after_its_last_chunk(chunked, name, monkeypatch):
    """Chunks from before the failure are not read again; the cursor counts each chunk."""
    columns, rows = TABLES[name]
    chunked.execute(f"CREATE TABLE t_{name} ({columns})")
    chunked.execute(f"INSERT INTO t_{name} {rows}")
    (task,) = [unit for unit in chunked.pipeline.plan(by="test") if isinstance(unit, SnapshotTask)]
    real, calls = ChunkReader.read, []

    def third_fails(reader, before, number):
        calls.append(number)
        if number == 2 and len(calls) == 3:
            with monkeypatch.context() as broken:
                broken.setattr(ServerStream, "read_into", lambda *_: 0)
                return real(reader, before, number)
        return real(reader, before, number)

    monkeypatch.setattr(ChunkReader, "read", third_fails)
    with pytest.raises(SourceUnavailable):
        chunked.pipeline.drain(task)
    assert chunked.pipeline.ack_drain(by="test").chunks == 2
    (task,) = [unit for unit in chunked.pipeline.plan(by="test") if isinstance(unit, SnapshotTask)]
    assert (task.chunks, task.complete) == (2, False)
    chunked.execute(f"DELETE FROM t_{name} WHERE v >= {ROWS - 1}")
    assert chunked.pipeline.drain(task).batches == 3
    assert calls == [0, 1, 2, 2, 3, 4]
    result = chunked.pipeline.ack_drain(by="test")
    assert (result.chunks, result.waiting) == (3, 0)
    values = [row["v"] for manifest in chunked.chunks(task) for row in chunked.rows(manifest, f"t_{name}")]
    assert set(range(ROWS - 1)) <= set(values) <= set(range(ROWS))
    assert len(values) == len(set(values))


def test_the_watermarks_of_a_chunk_enclose_its_select(chunked):
    """The later of two versions of a row wins, and the chunk has no change after its high watermark."""
    chunked.execute("CREATE TABLE t_a (id INT PRIMARY KEY, v INT)")
    start = chunked.head()
    chunked.execute("INSERT INTO t_a VALUES (1, 1)")
    (manifest,) = chunked.snapshot("t_a")
    assert manifest.chunk.low_watermark <= manifest.chunk.high_watermark == chunked.head()
    chunked.execute("UPDATE t_a SET v = 2")
    seen = chunked.rows(manifest, "t_a")[0]
    window = chunked.drain(chunked.window_from(start))
    inserted, updated = chunked.rows(window, "t_a")
    order = ("_epoch", "_binlog", "_offset", "_row")
    before, snapshot, after = ([row[name] for name in order] for row in (inserted, seen, updated))
    assert before < snapshot < after


def test_dropping_a_table_closes_its_snapshot(chunked):
    """Its DROP is in the binlog."""
    chunked.execute("CREATE TABLE t_a (id INT PRIMARY KEY)")
    (task,) = [unit for unit in chunked.pipeline.plan(by="test") if isinstance(unit, SnapshotTask)]
    chunked.execute("DROP TABLE t_a")
    chunked.pipeline.drain(task)
    result = chunked.pipeline.ack_drain(by="test")
    assert (result.chunks, result.waiting) == (1, 0)
