"""A source with a lake table and the batches that it was merged from, for tests of earlier versions of rows; no server, no Spark."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from cdc_lib.model.cursor import DRAIN, LAKE, Cursor
from cdc_lib.model.lake_table import Marker, SnapshotMark
from cdc_lib.model.position import Point
from cdc_lib.model.schema import SourceType
from cdc_lib.read import Lake
from cdc_lib.store.cursors import ObjectCursorStore
from cdc_lib.store.objects.open import open_store
from cdc_lib.store.windows import stored_windows
from tests.harness.lake.batches import IDENTITY, INT, START_TIME, TEXT, BatchWriter, Row, at, table
from tests.harness.lake.running import lake_config
from tests.harness.lake.small_lake import SmallLake, row

PEOPLE = {"country": TEXT, "id": INT, "name": TEXT, "raw": SourceType("bytes")}
KEY = ("country", "id")
GTIDS = "3e11fa47-71ca-11e1-9e33-c80aa9429562"


class Source:
    """A source with a lake table, the batches that it was merged from, and both cursors at the end of the last one."""

    def __init__(self, folder, config=None, **changed):
        (folder / "catalog.db").touch()
        self.config = config or lake_config(folder, **changed)
        self.store = open_store(self.config.store)
        self.lake = SmallLake(self.config)
        self.batches = BatchWriter(self.store)
        self.schema = table("shop.people", PEOPLE, key=KEY)
        self.stop = 4

    def window(self, *rows, schema=None, **more):
        """Write the next window of a hundred bytes."""
        self.stop += 100
        return self.batches.window(self.stop - 100, self.stop, {schema or self.schema: rows} if rows else {}, **more)

    def chunk(self, low, *names, high=None, snapshot="s1", **more):
        """Write a chunk with the row of a name for each key ``("de", 1)``, ``("de", 2)``, ...; None for a key without a row."""
        values = [{**change("r", low, name, number=number).values} for number, name in enumerate(names, 1) if name]
        return self.batches.chunk(self.schema, low, values, high=high, snapshot=snapshot, **more)

    def merged(self, rows, mode="mirror", to=None, marks=(), partial=(), key=KEY, **changed):
        """Make the lake table with rows, and the cursors; ``marks`` are low watermarks of complete snapshots by their ids.

        ``partial``: ids of those that read a part of the table.
        """
        points = {name: Point(1, 1, low) for name, low in dict(marks).items()}
        snapshots = tuple(SnapshotMark(name, 1, True, low, low, low, name in partial) for name, low in points.items())
        marker = Marker(merged_to=Point(1, 1, to or self.stop), snapshots=snapshots)
        self.table = self.lake.make("people", rows, mode, key, marker)
        self.cursors(**changed)

    def cursors(self, **changed):
        drain = Cursor("shop", DRAIN, 0, 1, IDENTITY, at(self.stop), **changed)
        for cursor in (drain, replace(drain, consumer=LAKE, quarantine=(), snapshots=())):
            stored = ObjectCursorStore(self.store)
            stored.swap(stored.load("shop", cursor.consumer), cursor)

    def opened(self):
        """Open the lake with the store."""
        return Lake.open(self.config, store=self.store)

    def remove_first_window(self):
        first = stored_windows(self.store, "shop")[0]
        self.store.delete([info.key for info in self.store.list(first.key.rpartition("/")[0])])


def change(op, offset, name, country="de", number=1, **more):
    return Row(op, offset, {"country": country, "id": number, "name": name, "raw": b"\x00\xff"}, **more)


def with_every_kind(source):
    """Give a row versions of each kind: it was read, updated, deleted, and inserted again."""
    source.window()
    source.chunk(50, "read")
    source.window(change("u", 110, "updated"), change("d", 120, "updated"), change("c", 130, "new"))
    source.merged([row("de", 1, "new", 130)], marks=[("s1", 50)])


def time(offset):
    return START_TIME + timedelta(seconds=offset)


def shown(found):
    names = ("_op", "_offset", "name", "_changed")
    return [tuple(one[name] for name in names) for one in found.rows.to_pylist()]


def versions(source, key=("de", 1), limit=None, **more):
    with source.opened() as lake:
        return lake.table("shop.people").archived_versions(key, limit, **more)
