"""MySQL switches its GTID mode while it is read: no transaction is lost, with a GTID or without, at one server and at a standby."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import closing

import pytest

from cdc_lib.errors import AnonymousNotSent
from cdc_lib.model.cursor import DRAIN
from cdc_lib.model.gtid import GtidSet
from cdc_lib.model.position import file_number
from cdc_lib.mysql import watermark
from cdc_lib.mysql.connection import connect
from cdc_lib.mysql.information_schema import InformationSchema
from cdc_lib.mysql.watermark import Watermarks, low_watermark
from cdc_lib.plan.locate import BinlogSearch
from tests.harness.binlog.capture import SOURCE, Capture
from tests.harness.lake.merging import Lake, drain_all
from tests.harness.servers.replication import replicated

UP = ("OFF_PERMISSIVE", "ON_PERMISSIVE", "ON")
DOWN = ("ON_PERMISSIVE", "OFF_PERMISSIVE")
PATH = (*UP, *DOWN, "ON_PERMISSIVE", "ON")


def capture_of(server, folder, **settings):
    given = {"start": "latest", "failover": {"fallback_interval": "1s"}, **settings}
    return Capture(server, "shop", folder, tables={"include": ["shop.t"]}, **given)


def selected(server):
    return {key: {"id": key, "v": v} for key, v in server.execute("SELECT id, v FROM shop.t")}


@pytest.fixture(scope="module")
def switched(tmp_path_factory):
    """A pair that went through all modes, with a source that read all of it and one that stopped reading in each mode."""
    with replicated("mysql without GTIDs") as pair:
        pair.primary.execute("CREATE DATABASE shop")
        pair.primary.execute("CREATE TABLE shop.t (id INT PRIMARY KEY, v INT)")
        pair.primary.execute("CREATE TABLE shop.seen (id INT PRIMARY KEY, v INT)")
        pair.wait("shop.seen")
        time.sleep(2.1)  # the standby's binlog begins before the time of the fallback
        for server in (pair.primary, pair.standby):
            server.execute("SET GLOBAL enforce_gtid_consistency = ON")
        folder = tmp_path_factory.mktemp("modes")
        through = (capture_of(pair.primary, folder / "through"), Lake("t"))
        sources = {}
        drain_all(through[0])
        for step, mode in enumerate(("OFF", *PATH)):
            pair.wait("shop.seen")
            for server in (pair.standby, pair.primary):
                server.execute(f"SET GLOBAL gtid_mode = '{mode}'") if step else None
            sources[step, mode] = folder / str(step)
            source = capture_of(pair.primary, sources[step, mode])
            drain_all(source)
            for part in range(2):  # read here, then not read
                key = 10 * step + part
                pair.primary.execute(f"INSERT INTO shop.t VALUES ({key}, 0)")
                pair.primary.execute(f"UPDATE shop.t SET v = {step} + 1 WHERE id = {key}")
                drain_all(through[0])
                drain_all(source) if part == 0 else None
            time.sleep(1.1)  # longer than the fallback
        pair.wait("shop.seen")
        yield pair, through, sources


def test_one_server_is_read_through_all_modes(switched):
    """Each window ends with another mixture of transactions with GTIDs and without."""
    pair, (capture, lake), _ = switched
    drain_all(capture)
    lake.merge_all(capture)
    assert lake.rows == selected(pair.primary)
    assert len(lake.changes) == 2 * 2 * (1 + len(PATH)), "a change came twice, or not at all"
    assert capture.pipeline.cursors.load(SOURCE, DRAIN).epoch == 1


@pytest.mark.parametrize("stopped", list(enumerate(("OFF", *PATH))), ids=lambda one: f"{one[0]}-{one[1]}")
def test_a_failover_loses_no_transaction_without_a_gtid(switched, stopped):
    """The standby has transactions without GTIDs before, at and after the cursor; none of the mode changes is a gap."""
    pair, _, sources = switched
    after, lake = capture_of(pair.standby, sources[stopped]), Lake("t")
    last_read = after.pipeline.cursors.load(SOURCE, DRAIN)
    step, mode = stopped
    if step <= PATH.index("OFF_PERMISSIVE", 1) + 1:  # later windows have no such transactions
        with pytest.raises(AnonymousNotSent, match="does not send transactions without GTIDs") as refused:
            drain_all(after)
        assert "gtid_mode = 'ON_PERMISSIVE'" in refused.value.hint
    pair.standby.execute("SET GLOBAL gtid_mode = 'ON_PERMISSIVE'")
    drain_all(after)
    pair.standby.execute("SET GLOBAL gtid_mode = 'ON'")
    cursor = after.pipeline.cursors.load(SOURCE, DRAIN)
    lake.merge_all(after)
    rows = selected(pair.standby)
    assert {key: row for key, row in lake.rows.items() if key >= 10 * step} == {
        key: row for key, row in rows.items() if key >= 10 * step
    }
    (change,) = cursor.epoch_changes
    exact = mode in ("ON", "ON_PERMISSIVE")
    assert ("found by GTIDs" in change.why) == exact
    if exact:
        assert last_read.gtids_known
        counted = Counter((one["_gtid"], one["id"], one["_op"]) for one in lake.changes if one["_gtid"])
        assert set(counted.values()) == {1}, "a transaction with a GTID came twice"


def test_a_search_by_gtids_leaves_out_no_file_with_transactions_without_gtids_alone(switched):
    """The files after it name the same GTIDs before them. The server sends it only in a permissive mode."""
    pair, (capture, _), _ = switched
    search = BinlogSearch(SOURCE, capture.config.server, capture.credentials, capture.facts())
    files = {name: str(search.before(name)) for name in search.files}
    equal = [name for name in files if files[name] and list(files.values()).count(files[name]) > 1]
    gtids = GtidSet.parse("mysql", files[equal[0]])
    with pytest.raises(AnonymousNotSent):
        search.boundary_of(gtids)
    pair.primary.execute("SET GLOBAL gtid_mode = 'ON_PERMISSIVE'")
    boundary = search.boundary_of(gtids)
    pair.primary.execute("SET GLOBAL gtid_mode = 'ON'")
    assert boundary.anonymous
    assert boundary.position.file_number <= file_number(equal[0])


def test_a_row_is_read_only_when_transactions_of_both_kinds_are_committed(switched):
    """The mode that counts is that of the moment: the facts are those of the beginning of the task."""
    pair, (capture, _), _ = switched
    facts = capture.facts()
    assert facts.gtid_mode == "ON"
    with closing(connect(capture.config.server, capture.credentials)) as connection:

        def seconds():
            begin = time.monotonic()
            low_watermark(connection, facts, settle=0.5)
            return time.monotonic() - begin

        assert seconds() < 0.5
        pair.primary.execute("SET GLOBAL gtid_mode = 'ON_PERMISSIVE'")
        try:
            assert seconds() >= 0.5
        finally:
            pair.primary.execute("SET GLOBAL gtid_mode = 'ON'")


def test_only_the_first_select_of_a_table_waits_and_the_first_of_a_changed_one(
    mysql_server, mysql_database, tmp_path, monkeypatch
):
    """Without GTIDs a position counts some time after it was read, and only for the definition that was read before it."""
    capture, slept = Capture(mysql_server, mysql_database, tmp_path), []
    capture.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    monkeypatch.setattr(
        watermark.time, "sleep", lambda seconds, sleep=time.sleep: slept.append(seconds > 0) or sleep(seconds)
    )
    watermarks = Watermarks(settle=0.5)
    with closing(connect(capture.config.server, capture.credentials)) as connection:

        def before_select():
            schema = InformationSchema(connection).schema(mysql_database, "t")
            return watermarks.before_select(connection, capture.facts(), schema)

        mysql_server.execute("SET GLOBAL gtid_mode = 'ON_PERMISSIVE'")
        try:
            first = capture.head()
            assert [before_select() for _ in range(2)] == [first, first]
            capture.execute("INSERT INTO t VALUES (1)")
            assert (before_select(), slept) == (first, [True, False, False])
            time.sleep(0.5)
            assert first < before_select() <= capture.head()
            capture.execute("ALTER TABLE t ADD COLUMN v INT")
            assert (before_select(), slept[-2:]) == (capture.head(), [False, True])
        finally:
            mysql_server.execute("SET GLOBAL gtid_mode = 'ON'")
        capture.execute("INSERT INTO t VALUES (2, 2)")
        assert before_select() == capture.head()
