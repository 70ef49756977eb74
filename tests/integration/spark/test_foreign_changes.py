"""A lake table that somebody else changed is never merged on: it stops, is read again, or is reported."""

from __future__ import annotations

import shutil
import zlib

import pytest

from cdc_lib import requests
from cdc_lib.errors import ConfigError, ForeignChange
from cdc_lib.model.cursor import DRAIN
from cdc_lib.model.lake_table import MARKER_PROPERTY
from cdc_lib.status.overview import findings_of, status_of
from cdc_lib.store.failed_tables import last_stopped
from cdc_lib.store.foreign import noticed_commits
from tests.harness.binlog.capture import SOURCE
from tests.harness.lake.verify import Compared

ROWS = 300
CHUNK = {"snapshot": {"chunk_rows": 1000}}


class Shop(Compared):
    """A source with a table that strangers change in the lake, and one that they leave alone."""

    def __init__(self, server, database, folder, lake, **settings):
        super().__init__(server, database, folder, lake, **{**CHUNK, **settings})
        for table in ("t", "other"):
            self.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, v VARCHAR(20), n INT)")
            self.execute(
                f"INSERT INTO {table} WITH RECURSIVE s (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < {ROWS})"
                " SELECT i, CONCAT('v', i), i FROM s"
            )

    @property
    def name(self):
        return self.lake.name(f"{self.database}.t")

    def sql(self, statement):
        return self.lake.spark.sql(statement.format(t=self.name)).collect()

    def call(self, procedure, arguments):
        catalog, database = self.capture.config.lake.catalog, self.database
        return self.sql(f"CALL {catalog}.system.{procedure}(table => '{database}.t', {arguments})")

    def snapshot_now(self):
        return self.lake.state(f"{self.database}.t").snapshot_id

    def rows(self, table="t"):
        return self.lake.rows(f"{self.database}.{table}", "id", "v", "n")

    def source_rows(self, table="t"):
        return sorted((tuple(row) for row in self.execute(f"SELECT id, v, n FROM {table}")), key=repr)

    def assert_equal(self):
        for table in ("t", "other"):
            assert self.rows(table) == self.source_rows(table)
        assert {one.drift for one in self.report().tables} == {0}

    def change(self, number):
        """Two rows of each table."""
        for table in ("t", "other"):
            self.execute(f"UPDATE {table} SET v = 'new{number}' WHERE id = {number}")
            self.execute(f"INSERT INTO {table} VALUES ({ROWS + number}, 'added', 0)")

    def take_again(self, table="t"):
        requests.resnapshot(self.capture.pipeline, [f"{self.database}.{table}"], by="test", why="somebody changed it")

    def rounds(self, count=3):
        for _ in range(count):
            self.round()

    def errors(self):
        return [finding.what for finding in findings_of(self.capture.pipeline) if finding.level == "error"]

    def warnings(self):
        return [finding.what for finding in findings_of(self.capture.pipeline) if finding.level == "warning"]


@pytest.fixture
def any_server(request):
    """Each case on one server, by turns."""
    flavor = ("mysql", "mariadb")[zlib.crc32(request.node.name.encode()) & 1]
    return request.getfixturevalue(f"{flavor}_server")


@pytest.fixture
def begun(any_server, database, tmp_path, lake):
    """A shop whose lake equals it, after three merges of which each changed both tables."""
    shop = Shop(any_server, database, tmp_path, lake)
    shop.rounds(2)
    shop.first = shop.snapshot_now()
    shop.change(1)
    shop.round()
    shop.change(2)
    shop.round()
    shop.assert_equal()
    return shop


def dropped(shop):
    shop.sql("DROP TABLE {t}")
    return "does not exist any more"


def replaced(shop):
    shop.sql("CREATE OR REPLACE TABLE {t} USING iceberg AS SELECT id, v, n FROM {t} WHERE id < 98")
    return "holds nothing that was merged"


def another(shop):
    shop.sql("ALTER TABLE {t} RENAME TO " + shop.name.replace("`t`", "`t_old`").partition(".")[2])
    shop.sql("CREATE TABLE {t} USING iceberg AS SELECT id, v, n FROM " + shop.name.replace("`t`", "`t_old`"))
    return "another table"


def rolled_back(shop):
    shop.call("rollback_to_snapshot", f"snapshot_id => {shop.first}")
    return "it was rolled back"


def rolled_back_and_expired(shop):
    shop.call("rollback_to_snapshot", f"snapshot_id => {shop.first}")
    shop.call("expire_snapshots", "older_than => TIMESTAMP '2100-01-01 00:00:00', retain_last => 1")
    return "it was rolled back"


def column_dropped(shop):
    shop.sql("ALTER TABLE {t} DROP COLUMN v")
    return "column v was dropped"


def column_renamed(shop):
    shop.sql("ALTER TABLE {t} RENAME COLUMN v TO w")
    return "column v was renamed to w"


def column_made_again(shop):
    shop.sql("ALTER TABLE {t} DROP COLUMN v")
    shop.sql("ALTER TABLE {t} ADD COLUMN v STRING")
    return "column v was dropped"


def marked(shop):
    [(text,)] = shop.sql(
        f"SELECT summary['{MARKER_PROPERTY}'] FROM {{t}}.snapshots WHERE snapshot_id = {shop.snapshot_now()}"
    )
    stray = shop.lake.spark.table(shop.name).limit(1)
    stray.writeTo(shop.name).option(f"snapshot-property.{MARKER_PROPERTY}", text).append()
    return "has a marker that does not count"


FAULTS = [
    dropped, replaced, another, rolled_back, rolled_back_and_expired, column_dropped, column_renamed, column_made_again,
    marked,
]  # fmt: skip
IN_PLACE = [dropped, rolled_back, rolled_back_and_expired, column_dropped, column_renamed, column_made_again, marked]
"""Those after which a new snapshot alone leads out."""


@pytest.mark.parametrize("fault", FAULTS)
def test_a_lake_table_that_another_writer_changed_stops_and_the_others_continue(begun, fault):
    """The error says what was found and the command that leads out, which the doctor repeats."""
    found = fault(begun)
    begun.change(3)
    with pytest.raises(ForeignChange, match=found) as caught:
        begun.round()
    assert f"cdc snapshot {SOURCE} {begun.database}.t" in caught.value.hint
    assert begun.rows("other") == begun.source_rows("other")
    assert any(found in one for one in begun.errors())
    if fault not in IN_PLACE:
        assert f"cdc lake drop {SOURCE} {begun.database}.t" in caught.value.hint
        begun.sql("DROP TABLE {t}")
    begun.take_again()
    begun.rounds()
    begun.change(4)
    begun.round()
    begun.assert_equal()
    assert begun.errors() == []


@pytest.mark.parametrize("fault", [dropped, rolled_back, column_dropped])
def test_a_table_that_the_merge_has_nothing_for_is_looked_at_too(begun, fault):
    """Its entry in the cut stays as it was, so that the next merge of it does not take it for untouched."""
    found = fault(begun)
    begun.execute("UPDATE other SET v = 'alone' WHERE id = 5")
    begun.round()
    assert begun.rows("other") == begun.source_rows("other")
    assert any(found in one for one in begun.errors())
    begun.change(3)
    with pytest.raises(ForeignChange, match=found):
        begun.round()
    begun.take_again()
    begun.rounds()
    begun.assert_equal()


@pytest.mark.parametrize("fault", [dropped, rolled_back, column_renamed])
def test_a_table_is_read_again_automatically_where_the_file_says_so(any_server, database, tmp_path, lake, fault):
    """The merge asks for the snapshot and is planned again without the table."""
    shop = Shop(any_server, database, tmp_path, lake)
    config = shop.capture.config
    shop.capture.config = config.model_copy(
        update={"lake": config.lake.model_copy(update={"foreign_changes": "snapshot"})}
    )
    shop.rounds(2)
    shop.first = shop.snapshot_now()
    shop.change(1)
    shop.round()
    fault(shop)
    shop.change(2)
    shop.round()
    assert any("left out of the merge" in line for line in shop.lake.said)
    assert shop.rows("other") == shop.source_rows("other")
    shop.rounds(4)
    shop.assert_equal()


def test_with_quarantine_the_table_is_quarantined_and_released(any_server, database, tmp_path, lake):
    """One table at fault does not hold the others back; the release reads it again."""
    shop = Shop(any_server, database, tmp_path, lake, on_error="quarantine")
    shop.rounds(2)
    shop.sql("DROP TABLE {t}")
    shop.change(1)
    shop.round()
    assert any("left out of the merge" in line for line in shop.lake.said)
    assert shop.rows("other") == shop.source_rows("other")
    drain = shop.capture.pipeline.cursors.load(SOURCE, DRAIN)
    [record] = drain.quarantined_tables
    assert record.fault.code == "foreign_change"
    shop.change(2)
    shop.round()
    requests.resume_table(shop.capture.pipeline, f"{database}.t", by="test")
    shop.rounds()
    shop.assert_equal()


@pytest.mark.parametrize("fault", [dropped, rolled_back, replaced, column_dropped])
def test_a_table_that_the_source_no_longer_has_stops_nothing(begun, fault):
    """Nothing can restore it: it is left as it is by all merges, and begins empty when the source creates it again."""
    fault(begun)
    left = None if fault is dropped else begun.snapshot_now()
    begun.change(3)
    begun.execute("DROP TABLE t")
    begun.round()
    assert any("left as it is, because the source dropped the table" in line for line in begun.lake.said)
    for number in (1, 2):
        begun.execute(f"UPDATE other SET n = {number} WHERE id < 9")
        begun.round()
        assert begun.rows("other") == begun.source_rows("other")
        assert left is None or begun.snapshot_now() == left
    begun.execute("CREATE TABLE IF NOT EXISTS t (id INT PRIMARY KEY, v VARCHAR(20), n INT)")
    begun.execute("INSERT INTO t VALUES (1, 'again', 1)")
    if fault is replaced:  # the rows of another writer have no place in the order of changes
        with pytest.raises(ForeignChange, match="holds nothing that was merged"):
            begun.round()
        begun.sql("DROP TABLE {t}")
        begun.take_again()
    begun.rounds()
    begun.assert_equal()


def test_a_merge_in_flight_that_a_dropped_table_stops_is_planned_again(begun):
    """Its windows end before the DROP: a new snapshot is impossible, and the way out of the message leads on."""
    rolled_back(begun)
    begun.change(3)
    begun.drain()
    with pytest.raises(ForeignChange, match=f"cdc step rollback {SOURCE}"):
        begun.merge()
    begun.execute("DROP TABLE t")
    with pytest.raises(ConfigError):
        begun.take_again()
    begun.drain()
    with pytest.raises(ForeignChange):
        begun.merge()
    requests.rollback(begun.capture.pipeline, by="test", why="the source dropped the table")
    begun.rounds()
    assert begun.rows("other") == begun.source_rows("other")


def test_foreign_rows_are_noticed_and_reported_until_a_comparison_is_clean(begun):
    """Inserted and deleted rows do not stop the table; they are named, found and repaired."""
    begun.sql("INSERT INTO {t} (id, v, n) VALUES (9001, 'foreign', 1)")
    begun.sql("DELETE FROM {t} WHERE id = 7")
    begun.change(3)
    begun.round()
    notes = noticed_commits(begun.capture.store, SOURCE)
    assert [(one.added, one.deleted) for one in notes] == [(1, 0), (0, 1)]
    assert any("another writer" in line for line in begun.lake.said)
    assert any("another writer" in one for one in begun.warnings())
    assert status_of(begun.capture.pipeline).foreign
    begun.change(4)
    begun.round()
    assert len(noticed_commits(begun.capture.store, SOURCE)) == 2  # none of the merge's own commits
    [wrong] = [one for one in begun.report().tables if one.drift]
    assert (wrong.missing, wrong.extra) == (1, 1)
    begun.report(repair=True)
    begun.assert_equal()
    assert status_of(begun.capture.pipeline).foreign == ()


def test_a_new_snapshot_replaces_foreign_rows(begun):
    """They have no order key, or are there twice; the snapshot brings the table whole all the same."""
    begun.sql("INSERT INTO {t} SELECT * FROM {t} WHERE id >= 50")
    begun.sql("INSERT INTO {t} (id, v, n) VALUES (9001, 'foreign', 1)")
    begun.sql("DELETE FROM {t} WHERE id < 50")
    begun.take_again()
    begun.rounds()
    begun.assert_equal()


def test_compaction_and_expiry_by_others_are_fine(begun):
    """A rewrite changes no row, and the markers tell what expired snapshots held."""
    begun.call("rewrite_data_files", "options => map('rewrite-all', 'true')")
    begun.change(3)
    begun.round()
    begun.call("rewrite_data_files", "options => map('rewrite-all', 'true')")
    begun.call("expire_snapshots", "older_than => TIMESTAMP '2100-01-01 00:00:00', retain_last => 2")
    begun.change(4)
    begun.round()
    begun.assert_equal()
    assert noticed_commits(begun.capture.store, SOURCE) == []
    assert last_stopped(begun.capture.store, SOURCE) is None


def test_the_source_may_change_columns_and_the_file_the_mode(any_server, database, tmp_path, lake):
    """What merges do to a table themselves is no foreign change."""
    shop = Shop(any_server, database, tmp_path, lake)
    shop.rounds(2)
    shop.execute("ALTER TABLE t RENAME COLUMN v TO w, ADD COLUMN x INT")
    shop.execute("UPDATE t SET w = 'y', x = 1 WHERE id < 5")
    shop.execute("ALTER TABLE t MODIFY n BIGINT, DROP COLUMN x")
    shop.rounds(2)
    shop.execute("ALTER TABLE t RENAME COLUMN w TO v")
    shop.execute("UPDATE t SET v = 'z' WHERE id < 3")
    shop.rounds(2)
    assert shop.rows() == shop.source_rows()
    assert noticed_commits(shop.capture.store, SOURCE) == []


def lose_the_store(shop, folder):
    shutil.rmtree(folder / "store")
    (folder / "store").mkdir()


def test_tables_of_another_incarnation_of_the_source_stop(begun, tmp_path):
    """The store was lost and the lake stays: rows that were deleted meanwhile would stay for ever."""
    begun.execute("CREATE TABLE log (id INT)")
    begun.execute("INSERT INTO log VALUES (1), (2)")
    begun.rounds()
    begun.execute("DELETE FROM t WHERE id BETWEEN 10 AND 19")
    lose_the_store(begun, tmp_path)
    with pytest.raises(ForeignChange, match="with another id or name") as caught:
        begun.rounds(2)
    assert "If the store was lost, restore it" in str(caught.value)
    assert f"cdc snapshot {SOURCE} {begun.database}.t" in str(caught.value)
    for table in ("t", "other", "log"):
        begun.take_again(table)
    begun.rounds()
    entries = begun.lake.rows(f"{begun.database}.log", "_epoch", "_binlog", "_offset", "_row", "_op", "id")
    last = max(entry[:4] for entry in entries if entry[4] == "t")  # what another life left counts for nothing
    assert sorted(entry[4:] for entry in entries if entry[:4] > last) == [("r", 1), ("r", 2)]
    begun.change(5)
    begun.round()
    begun.assert_equal()
    assert begun.errors() == []


def test_a_source_file_that_was_copied_to_another_name_stops_at_the_tables_of_the_first(begun, tmp_path, lake):
    """Its markers are those of the other source."""
    copy = Compared(begun.server, begun.database, tmp_path / "copy", lake, **CHUNK)
    copy.capture.config = copy.capture.config.model_copy(update={"source": "copied"})
    copy.capture.pipeline = type(copy.capture.pipeline)(
        copy.capture.config, copy.capture.credentials, copy.capture.store, copy.capture.pipeline.cursors
    )
    with pytest.raises(ForeignChange, match="with another id or name"):
        copy.round()
    begun.change(6)
    begun.round()
    begun.assert_equal()


def test_a_lake_table_of_another_writer_is_not_touched(any_server, database, tmp_path, lake):
    """It never held anything of the source."""
    shop = Shop(any_server, database, tmp_path, lake)
    lake.spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {shop.name.rpartition('.')[0]}")
    shop.sql("CREATE TABLE {t} USING iceberg AS SELECT 1 AS id, 'mine' AS v, 5 AS n")
    with pytest.raises(ForeignChange, match="made by somebody else"):
        shop.rounds(2)
    assert shop.sql("SELECT count(*) FROM {t}")[0][0] == 1
