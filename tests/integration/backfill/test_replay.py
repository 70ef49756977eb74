"""Windows drained once more: the same bytes from the raw events as from the server, and nothing of the source is touched."""

from __future__ import annotations

import hashlib
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from cdc_lib.backfill.replay import BatchReplay
from cdc_lib.config import Credentials
from cdc_lib.errors import BatchesMissing, ConfigError, CorruptBatch, SourceError
from cdc_lib.model.backfill import Period
from cdc_lib.store.objects.local import LocalStore
from tests.harness.binlog.capture import SOURCE, Capture, row_metadata

EVER = Period(datetime(2020, 1, 1, tzinfo=UTC))


class Shop:
    """A captured database whose windows are drained one by one."""

    def __init__(self, server, database, folder, **settings):
        self.capture = Capture(server, database, folder, **{"start": "latest", **settings})
        self.server, self.folder = server, folder
        self.round()

    @property
    def pipeline(self):
        return self.capture.pipeline

    def round(self, *statements):
        for statement in statements:
            self.capture.execute(statement)
        for unit in self.pipeline.plan(by="test"):
            self.pipeline.drain(unit)
        self.pipeline.ack_drain(by="test")
        # No lake is needed here: the lake cursor is moved as its merges would move it.
        lake, drain = (self.pipeline.cursors.load(SOURCE, name) for name in ("lake", "drain"))
        if lake is not None and lake.position != drain.position:
            self.pipeline.cursors.swap(lake, replace(lake, position=drain.position))

    def redraining(self, name, credentials=None):
        place = LocalStore(self.folder / name)
        return BatchReplay(replace(self.pipeline, credentials=credentials or self.capture.credentials), place)


def contents(store):
    """Return every file of the batches by its hash, without the raw events."""
    return {
        info.key: hashlib.sha256(store.get(info.key).data).hexdigest()
        for info in store.list(f"{SOURCE}/batches/")
        if "/raw/" not in info.key and not info.key.endswith("manifest.json")
    }


def manifests(store):
    return [info.key for info in store.list(f"{SOURCE}/batches/") if info.key.endswith("manifest.json")]


def digests(store):
    return {info.key: hashlib.sha256(store.get(info.key).data).hexdigest() for info in store.list("")}


STATEMENTS = (
    ("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(40), n INT)", "INSERT INTO t VALUES (1, 'a', 1), (2, 'größe', 2)"),
    (
        "ALTER TABLE t ADD COLUMN w DECIMAL(9,2) DEFAULT 1.5",
        "UPDATE t SET v = 'b', w = 2 WHERE id = 1",
        "FLUSH BINARY LOGS",
    ),
    ("DELETE FROM t WHERE id = 2", "INSERT INTO t SELECT seq.id + 10, REPEAT('x', 40), 3, NULL FROM t AS seq"),
)


@pytest.mark.parametrize("metadata", ["FULL", "MINIMAL"])
def test_raw_events_decode_to_the_bytes_that_were_drained(any_server, database, tmp_path, metadata):
    """Over an ALTER, the end of a file, an event of several packets and compressed transactions, when the server has purged its binlog; also without names in it."""
    with row_metadata(any_server, metadata):
        shop = Shop(any_server, database, tmp_path, raw_archive=True)
        for statements in STATEMENTS:
            shop.round(*statements)
        # An event of several packets: from 16 MiB on.
        shop.round(
            "CREATE TABLE big (id INT PRIMARY KEY, v LONGBLOB, w LONGBLOB)",
            "INSERT INTO big VALUES (1, REPEAT('x', 9000000), REPEAT('y', 9000000)), (2, 'a', 'b')",
        )
        _compressed(any_server, database, "UPDATE t SET n = n + 1")
        shop.round()
        _purge(any_server)
        before = digests(shop.capture.store)
        again = shop.redraining("again", Credentials("", ""))
        results = []
        count = again.from_archive(EVER, report=results.append)
        assert count == len(results) == len(manifests(shop.capture.store))
        assert contents(again.target) == contents(shop.capture.store)
        assert again.from_archive(EVER, report=results.append) == count
        assert len(results) == count
        assert digests(shop.capture.store) == before


def test_a_window_drained_twice_has_the_same_raw_events(any_server, database, tmp_path):
    """Whatever the server answered beside them; and none where the source file does not ask for them."""
    shop = Shop(any_server, database, tmp_path, raw_archive=True)
    start = shop.capture.head()
    for statement in STATEMENTS[0]:
        shop.capture.execute(statement)
    window = shop.capture.window_from(start)
    first = shop.capture.drain(window)
    other = Capture(any_server, database, tmp_path / "other", start="latest", raw_archive=True)
    assert other.drain(window).raw == first.raw
    plain = Capture(any_server, database, tmp_path / "plain", start="latest")
    assert plain.drain(window).raw is None
    assert plain.drain(window).files == first.files
    assert not [key for key in plain.visible() if "/raw/" in key]


def test_damaged_or_missing_raw_events_are_reported(any_server, database, tmp_path):
    """Nothing is decoded from them."""
    shop = Shop(any_server, database, tmp_path, raw_archive=True)
    shop.round(*STATEMENTS[0])
    [events] = [info.key for info in shop.capture.store.list(SOURCE) if info.key.endswith("raw/events.zst")]
    data = shop.capture.store.get(events).data
    shop.capture.store.put(events, data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(CorruptBatch, match="the raw archive of a window cannot be read"):
        shop.redraining("again").from_archive(EVER, report=print)
    plain = Shop(any_server, database, tmp_path / "plain")
    plain.round("INSERT INTO t VALUES (5, 'e', 5)")
    with pytest.raises(BatchesMissing, match="the raw events of a window were not kept"):
        plain.redraining("again").from_archive(EVER, report=print)


def test_a_period_of_the_binlog_is_drained_again_into_another_store(any_server, database, tmp_path, monkeypatch):
    """Ended in the middle it continues there; windows whose batches are still stored have their bounds, and no cursor moves."""
    shop = Shop(any_server, database, tmp_path)
    time.sleep(2)  # the server may have begun its first file just now, and its times are whole seconds
    began = datetime.now(UTC) - timedelta(seconds=1)
    for statements in STATEMENTS:
        shop.round(*statements)
    wanted = contents(shop.capture.store)
    gone = manifests(shop.capture.store)[0].rpartition("/")[0]
    shop.capture.store.delete([info.key for info in shop.capture.store.list(gone)])
    before = digests(shop.capture.store)
    again = shop.redraining("again")

    def killed(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        again.from_server(Period(began), by="test", report=killed)
    results = []
    cursor = again.from_server(Period(began), by="test", report=results.append)
    assert cursor.position == shop.pipeline.cursors.load(SOURCE, "drain").position
    kept = {key: digest for key, digest in wanted.items() if not key.startswith(gone)}
    assert kept.items() <= contents(again.target).items()
    assert len(manifests(again.target)) >= len(STATEMENTS)
    assert digests(shop.capture.store) == before
    assert again.from_server(Period(began), by="test", report=killed).position == cursor.position
    with pytest.raises(ConfigError, match="--since is missing"):
        shop.redraining("other").from_server(Period(), by="test", report=print)
    _purge(any_server)
    with pytest.raises(SourceError):
        shop.redraining("late").from_server(Period(began - timedelta(hours=9)), by="test", report=print)


def _compressed(server, database, statement):
    if server.flavor == "mysql":
        with server.connect(database=database) as session, session.cursor() as cursor:
            cursor.execute("SET SESSION binlog_transaction_compression = ON")
            cursor.execute(statement)


def _purge(server):
    server.execute("FLUSH BINARY LOGS")
    server.purge_binlogs()
