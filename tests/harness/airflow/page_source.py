"""Sources as the page meets them: a source file, and the documents that plans, drains, merges and comparisons leave in its store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from cdc_lib.model.binlog_checkpoint import BinlogCheckpoint
from cdc_lib.model.changed_rows import AfterMerge, ChangedRows
from cdc_lib.model.coverage import Coverage, CoveredRange
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor, Move
from cdc_lib.model.failed_table import Stopped, StoppedTable
from cdc_lib.model.manifest import DataFile, Manifest
from cdc_lib.model.merge_plan import Cut, MergeTotals, TableCut
from cdc_lib.model.observation import DrainObservation, ServerObservation
from cdc_lib.model.position import Position
from cdc_lib.model.quarantine import Fault, QuarantineRecord
from cdc_lib.model.row_counts import RowCounts
from cdc_lib.model.table_name import TableName
from cdc_lib.model.verify import Verified
from cdc_lib.model.window import Window
from cdc_lib.source import Source
from cdc_lib.status.holdings import Holdings, HoldingsReader
from cdc_lib.store import documents, layout
from cdc_lib.store.after_merge import keep_after_merge
from cdc_lib.store.cursors import ObjectCursorStore
from cdc_lib.store.objects.local import LocalStore
from cdc_lib.store.observations import note_drain, note_retry, note_server
from tests.harness.lake.batches import BIGINT, IDENTITY, TEXT, at, table
from tests.harness.lake.running import lake_config
from tests.harness.shop.schema_questions import asked_table

PER_WINDOW = 1000
"""Bytes of binlog in each window."""

STANDBY = "0b5a3b1e-54c1-11ef-9a0f-0242ac120002"


def reader_of(store: LocalStore, **settings: Any) -> HoldingsReader:
    """Return what reads the documents of the source `shop` in a store, with settings of its file."""
    return HoldingsReader(Source.over(lake_config(store.root.parent, **settings), store))


def known_source(folder: Path, now: datetime, name: TableName) -> Holdings:
    """Return a source of which everything is known: one table, two windows in the lake, one that is only drained, and a quarantine."""
    store = LocalStore(folder / "store")
    facts: dict[str, Any] = {"tables": [name], "merged": 2, "quarantined": [name], "keeps": timedelta(hours=2)}
    PageSource(folder / "sources", store, "shop", ended=now - timedelta(minutes=1), **facts).write()
    note_drain(store, DrainObservation("shop", now, "a unit", 0.5, rows=1, bytes=1))
    note_retry(store, "shop", "drain")
    held = reader_of(store, verify={"schedule": "@daily", "cover_every": "7d"}).read_all(now)
    assert held.cut is not None
    tables = tuple(replace(one, total_bytes=99) for one in held.cut.tables)
    return replace(held, cut=replace(held.cut, seconds=4.0, totals=MergeTotals(5, 9, 3, 20.5), tables=tables))


@dataclass
class PageSource:
    """One source after some runs, one window each.

    Args:
        sources: folder of the source files.
        store: the store that all of these share.
        name: of the source.
        tables: of the source.
        windows: acknowledged.
        merged: how many of them are in the lake.
        in_flight: planned after those.
        drained: how many of these have a batch.
        every: time between two runs.
        ended: when the last one was (UTC).
        drift: tables of which the last comparison found rows that are wrong.
        compared: tables that were compared; the first ones.
        quarantined: tables that are left out.
        stopped: tables at which the last merge stopped.
        asked: tables of which the last merge asked about a TRUNCATE.
        failover: whether the source went over to a standby before its last run.
        keeps: for how long the server kept what is drained next, when the last plan asked it; None when it was not asked.
        drain_rate: bytes of binlog a second that the last plan knew; None when it knew none.
        changed: top-level values of the source file.
    """

    sources: Path
    store: LocalStore
    name: str
    tables: Sequence[TableName] = (TableName("shop", "orders"), TableName("shop", "customers"))
    windows: int = 3
    merged: int = 3
    in_flight: int = 0
    drained: int = 0
    every: timedelta = timedelta(minutes=10)
    ended: datetime = field(default_factory=lambda: datetime.now(UTC) - timedelta(seconds=30))
    compared: int = 1
    drift: Sequence[TableName] = ()
    quarantined: Sequence[TableName] = ()
    stopped: Sequence[TableName] = ()
    asked: Sequence[TableName] = ()
    failover: bool = False
    keeps: timedelta | None = None
    drain_rate: float | None = 25.0
    changed: dict[str, Any] = field(default_factory=dict)

    @property
    def dag(self) -> str:
        """Id of its DAG."""
        return f"cdc_{self.name}"

    def write(self) -> PageSource:
        """Write the file and all documents."""
        self.write_file()
        for number in range(self.windows + self.drained):
            manifest = self._manifest(number)
            self.store.put(layout.key_of(manifest), documents.dump(manifest))
        for number in range(self.merged):
            cut = self._cut(number)
            self.store.put(layout.cut_key(self.name, cut.merge_id), documents.dump(cut))
        for number, name in enumerate(self.tables[: self.compared]):
            self._put_verified(name, number)
        self._put_cursors()
        self._put_observation()
        if self.stopped or self.asked:
            narrowed = "a column cannot be narrowed"
            tables = (
                *(StoppedTable((name,), f"lake.{name}", "incompatible_schema", narrowed, "Rename it.") for name in self.stopped),
                *(asked_table(self.name, name, "truncate") for name in self.asked),
            )  # fmt: skip
            stopped = Stopped(self.name, "merge", self.ended, tables)
            self.store.put(layout.stopped_key(self.name), documents.dump(stopped))
        return self

    def write_file(self) -> None:
        """Write the source file."""
        plain = {
            "server": {"host": "db.example.com", "port": 3306, "user": "cdc", "password_env": "CDC_TEST_PASSWORD"},
            "tables": ["*.*"],
            "schedule": None,
            "store": {"url": f"file://{self.store.root}"},
            "lake": {
                "type": "jdbc",
                "uri": f"jdbc:sqlite:{self.store.root}.db",
                "warehouse": f"file://{self.store.root}-lake",
            },
            **self.changed,
        }
        self.sources.mkdir(parents=True, exist_ok=True)
        (self.sources / f"{self.name}.yaml").write_text(yaml.safe_dump(plain))

    def _time(self, number: int) -> datetime:
        """When the run of a window ended."""
        return self.ended - self.every * (self.windows - 1 - number)

    def window(self, number: int) -> Window:
        """Return a window, counted from 0."""
        epoch = 2 if self.failover and number >= self.windows - 1 else 1
        return Window(self.name, epoch, _position(number), _position(number + 1))

    def _manifest(self, number: int) -> Manifest:
        window, time = self.window(number), self._time(number)
        rows = 100 + 40 * (number % 7)
        schemas = [table(name, {"id": BIGINT, "name": TEXT}) for name in self.tables[:5]]
        files = tuple(
            DataFile(layout.part_path(schema.name, 0), schema.name, schema.id, rows, 25 * rows, "0" * 64)
            for schema in schemas
        )
        return Manifest(
            source=self.name, epoch=window.epoch, identity=IDENTITY, window=window, chunk=None, gtid_first="",
            gtid_last="", first_time=time - self.every, last_time=time - timedelta(seconds=20), transactions=rows,
            events=3 * rows, files=files, schemas={schema.id: schema for schema in schemas},
        )  # fmt: skip

    def _cut(self, number: int) -> Cut:
        window, time = self.window(number), self._time(number)
        apart = {name: _position(1) for name in self.quarantined}
        tables = tuple(
            TableCut(name, f"lake.{name}", 10**18 + place, _changes(place, number), as_of=apart.get(name), mode="mirror",
                     total_rows=RowCounts(updates=sum(_changes(place, one) for one in range(number + 1))),
                     lake_rows=1000 + 7 * place)
            for place, name in enumerate(self.tables)
        )  # fmt: skip
        lag = timedelta(seconds=20 + 90 * (number % 11 == 5))
        return Cut(self.name, f"{window.id}-{number:08x}", window.epoch, window.stop, time - lag, time, tables)

    def _put_observation(self) -> None:
        """Write what the last plan saw: the binlog of the server that the lake is on, one window further than was planned."""
        if self.keeps is None:
            return
        host = {"server_uuid": STANDBY, "host": "standby"} if self.failover else {"host": "db.example.com"}
        end = _position(self.windows + self.in_flight + 1)
        seen = ServerObservation(
            self.name,
            self.ended,
            replace(IDENTITY, **host),
            end,
            ((end.file, end.offset),),
            self.ended + self.keeps,
            drain_rate=self.drain_rate,
        )
        note_server(self.store, seen)

    def _put_verified(self, name: TableName, number: int) -> None:
        wrong = name in self.drift
        position = _position(self.merged)
        found = Verified(
            self.name, name, f"lake.{name}", 1, position, "", self.ended - timedelta(hours=number % 30), 1000 + 7 * number,
            missing=3 if wrong else 0, extra=1 if wrong else 0, different=2 if wrong else 0, in_flight=0, unexamined=0,
            clean_position=None if wrong else position, clean_at=None if wrong else self.ended,
        )  # fmt: skip
        self.store.put(layout.verified_key(self.name, name, f"lake.{name}"), documents.dump(found))
        ranges = (
            CoveredRange(("9",), ("9",), 90, self.ended - timedelta(hours=3), 1, position),
            CoveredRange(None, None, 10, self.ended - timedelta(days=9), 1, position),
        )
        covered = Coverage(self.name, name, f"lake.{name}", self.ended - timedelta(days=9), self.ended, ranges=ranges)
        self.store.put(layout.coverage_key(self.name, name, f"lake.{name}"), documents.dump(covered))
        changed = ChangedRows(name, f"lake.{name}", "m", 1, position, "", self.ended, compared=9, in_flight=2)
        keep_after_merge(self.store, AfterMerge(self.name, "m", self.ended, "", (changed,)))

    def _put_cursors(self) -> None:
        cursors = ObjectCursorStore(self.store)
        identity = replace(IDENTITY, host="db.example.com")
        records = tuple(
            QuarantineRecord(
                name, 1, _position(1), _position(1), _position(2),
                Fault(_position(1), "unsupported_value", "a value with no exact place in the lake", "Leave the column out."),
                self.ended - timedelta(hours=2), self.ended - timedelta(hours=1), by="ack_drain",
            )
            for name in self.quarantined
        )  # fmt: skip
        begun = Cursor(self.name, DRAIN, 0, 1, identity, _position(0), quarantine=records, source_uuid="1" * 32)
        for consumer, reached in ((DRAIN, self.windows), (LAKE, self.merged)):
            first = Move(self._time(-1), "start", None, _position(0), "plan of cdc run")
            cursor = replace(begun, consumer=consumer, moves=(first,))
            for number in range(reached):
                if self.failover and number == self.windows - 1:
                    standby = BinlogCheckpoint(
                        replace(identity, server_uuid=STANDBY, host="standby"),
                        _position(number),
                        None,
                        "",
                        False,
                        None,
                    )
                    why = "another server answers"
                    cursor = cursor.with_new_epoch(standby, "failover", at=self._time(number), by="plan", why=why)
                window, time = self.window(number), self._time(number)
                cursor = cursor.acked(
                    window, at=time, event_time=time - timedelta(seconds=20), by=f"task of {consumer}"
                )
            if consumer == DRAIN:
                cursor = cursor.with_windows(
                    tuple(self.window(number) for number in range(self.windows, self.windows + self.in_flight))
                )
            cursors.swap(None, cursor)


def _changes(place: int, number: int) -> int:
    """Return the changes of a table, by its place among the tables, in the merge of a window."""
    return (60 - 7 * place) * (1 + number % 5) if place < 8 else 0


def _position(number: int) -> Position:
    return at(4 + PER_WINDOW * number)
