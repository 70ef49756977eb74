"""Raw events come back from their file as they were put there, and a broken file is told from a whole one."""

from __future__ import annotations

import io
from datetime import UTC, datetime

import pytest
import zstandard

from cdc_lib.errors import CorruptBatch
from cdc_lib.model.position import Position
from cdc_lib.ports import RawEvent
from cdc_lib.store.objects.local import LocalStore
from cdc_lib.store.raw_events import RawEventWriter, read_events

AT = datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
EVENTS = [
    RawEvent(Position("binlog.000007", 2**33), 5, AT, "0-1-7", 2**33 - 9, b"x" * 40),
    RawEvent(Position("binlog.000008", 4), 0, datetime(2026, 11, 21, 1, 2, 3, 4, tzinfo=UTC), "", 0, bytes(range(256))),
]
MANIFEST = "shop/batches/000001/w/manifest.json"


def written(folder, events=EVENTS):
    with RawEventWriter(LocalStore(folder), MANIFEST) as writer:
        for event in events:
            writer.take("shop.a/b", event)
    return writer.kept["shop.a/b"]


def test_events_come_back_as_they_were(tmp_path):
    """With their places, times and transactions; the manifest's facts are those of the file."""
    kept = written(tmp_path)
    assert (kept.events, kept.first, kept.last) == (2, EVENTS[0].position, EVENTS[1].position)
    assert kept.path == "quarantine/shop.a@002fb.events.zst"
    data = (tmp_path / "shop/batches/000001/w" / kept.path).read_bytes()
    assert len(data) == kept.bytes
    assert list(read_events(io.BytesIO(data), "binlog")) == EVENTS
    assert written(tmp_path) == kept


def test_nothing_appears_when_the_window_fails(tmp_path):
    """As with the parts of a batch."""
    with pytest.raises(AttributeError):
        written(tmp_path, [EVENTS[0], None])
    assert not list(LocalStore(tmp_path).list(""))


@pytest.mark.parametrize("size", [0, 3, 7, 30, 60, 100, 300])
def test_a_file_that_is_cut_short_or_another_is_refused(tmp_path, size):
    """At whatever byte."""
    kept = written(tmp_path)
    data = (tmp_path / "shop/batches/000001/w" / kept.path).read_bytes()
    plain = zstandard.ZstdDecompressor().decompressobj().decompress(data)
    with pytest.raises(CorruptBatch):
        list(read_events(io.BytesIO(zstandard.compress(plain[:size])), "binlog"))
    with pytest.raises(CorruptBatch):
        list(read_events(io.BytesIO(plain), "binlog"))
