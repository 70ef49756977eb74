"""However consumers get, ack, roll back, crash and take over: each sees every row once per ack, in order, and none else."""

from __future__ import annotations

import tempfile
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from cdc_lib.consumers.subscribe import Holder, subscribe
from cdc_lib.errors import AckError, ConsumerHeld, CursorMoved
from cdc_lib.model.cursor import DRAIN, Cursor
from cdc_lib.model.subscription import Interest
from cdc_lib.model.window import Window
from cdc_lib.store.objects.local import LocalStore
from tests.harness.generated.examples import examples
from tests.harness.lake.batches import IDENTITY, INT, START_TIME, TEXT, BatchWriter, Row, at, table
from tests.harness.processes.clocks import SetClock
from tests.harness.store.memory_cursors import MemoryCursorStore

A, B = table("shop.a", {"id": INT, "v": TEXT}), table("shop.b", {"id": INT})
STEP = 1000
WINDOWS = 12
LEASE = 60
INTERESTS = {
    "all": Interest(),
    "only_b": Interest(tables=("shop.b",)),
    "no_b": Interest(exclude=("*.b",), columns=("id",)),
}
EXPECTED: list[dict[str, list[tuple[int, str, int]]]] = []
"""By window and table, (offset, op, id) of each row in the order of changes."""


def write_history(folder: Path) -> LocalStore:
    """Windows with rows in one table, the other, both or none; XA transactions over several windows, some rolled back."""
    store = LocalStore(folder)
    writer = BatchWriter(store)
    for n in range(WINDOWS):
        low = 4 + n * STEP
        a = [Row("c", low + 10 * i, {"id": n * 100 + i, "v": "x"}) for i in range(n % 3)]
        b = [Row("u", low + 5, {"id": n})] if n % 4 == 1 else []
        rows = {schema: found for schema, found in ((A, a), (B, b)) if found}
        began = low + 500
        xa = {f"x{n}": (began, {B: [Row("d", began, {"id": 1000 + n})]})} if n in (2, 5, 7) else {}
        decided = {3: {"x2": (low + 300, True)}, 7: {"x5": (low + 2, True)}, 11: {"x7": (low + 9, False)}}.get(n, {})
        writer.window(low, low + STEP, rows, prepared=xa, decided=decided)
        expected = {"shop.a": [(r.offset, r.op, r.values["id"]) for r in a]}
        expected["shop.b"] = [(r.offset, r.op, r.values["id"]) for r in b]
        expected["shop.b"] += [(o, "d", 1000 + int(x[1:])) for x, (o, commits) in decided.items() if commits]
        EXPECTED.append({name: sorted(found) for name, found in expected.items()})
    return store


STORE = write_history(Path(tempfile.mkdtemp(prefix="lakecdc-laws-")))


def wanted(name: str, window: int) -> dict[str, list[tuple[int, str, int]]]:
    tables = {"all": {"shop.a", "shop.b"}, "only_b": {"shop.b"}, "no_b": {"shop.a"}}[name]
    return {key: rows for key, rows in EXPECTED[window].items() if key in tables}


def count(name: str, window: int) -> int:
    return sum(len(rows) for rows in wanted(name, window).values())


class Consuming(RuleBasedStateMachine):
    """Three consumers of one source beside a model of what each has acknowledged and has in flight."""

    def __init__(self):
        super().__init__()
        self.clock, self.cursors = SetClock(), MemoryCursorStore()
        self.drained = 0
        self.cursors.swap(None, Cursor("shop", DRAIN, 0, 1, IDENTITY, at(4)))
        self.acked = dict.fromkeys(INTERESTS, 0)
        self.flights = {name: [] for name in INTERESTS}
        self.holders = {}
        self.fenced = []
        self.until = {}

    names = st.sampled_from(sorted(INTERESTS))

    @precondition(lambda self: self.drained < WINDOWS)
    @rule(windows=st.integers(1, 5))
    def drain(self, windows):
        for _ in range(min(windows, WINDOWS - self.drained)):
            held = self.cursors.load("shop", DRAIN)
            window = Window("shop", 1, held.position, at(held.position.offset + STEP))
            self.cursors.swap(held, held.acked(window, at=START_TIME, event_time=None))
            self.drained += 1

    @rule(seconds=st.sampled_from([1, 20, 40, 70]))
    def time_passes(self, seconds):
        self.clock.go(seconds)

    @rule(name=names, start=st.sampled_from(["earliest", "latest"]))
    def take(self, name, start):
        held = self.cursors.load("shop", name)
        free = held is None or held.lease is None or held.lease.expires_at <= self.clock.now()
        arguments = (STORE, self.cursors, "shop", name, INTERESTS[name])
        options = {"holder": Holder(lease=timedelta(seconds=LEASE), clock=self.clock), "start": start}
        if held is None and start == "latest":
            self.acked[name] = self.drained
        if not free:
            with pytest.raises(ConsumerHeld):
                subscribe(*arguments, **options)
            return
        if name in self.holders:
            self.fenced.append(self.holders[name])
        self.holders[name] = subscribe(*arguments, **options)
        self.flights[name] = []

    @precondition(lambda self: self.holders)
    @rule(data=st.data(), size=st.sampled_from([1, 2, 3, 100]))
    def get(self, data, size):
        name = data.draw(st.sampled_from(sorted(self.holders)))
        begin = self.flights[name][-1][2] if self.flights[name] else self.acked[name]
        end, rows = begin, 0
        while end < self.drained and rows < size:
            rows += count(name, end)
            end += 1
        batch = self.holders[name].get(size)
        if end == begin or (rows == 0 and not self.flights[name]):
            assert not batch
            self.acked[name] = end if not self.flights[name] else self.acked[name]
            return
        found = {table: plain(rows) for table, rows in batch.tables().items()}
        expected = {t: [r for n in range(begin, end) for r in wanted(name, n).get(t, [])] for t in ("shop.a", "shop.b")}
        assert found == {table: rows for table, rows in expected.items() if rows}
        if name == "no_b":
            assert all("v" not in rows.column_names for rows in batch.tables().values())
        self.flights[name].append((batch, begin, end))

    @precondition(lambda self: any(self.flights.values()))
    @rule(data=st.data())
    def ack_the_oldest(self, data):
        name = data.draw(st.sampled_from([name for name, found in self.flights.items() if found]))
        batch, _, end = self.flights[name].pop(0)
        batch.ack()
        self.acked[name] = end

    @precondition(lambda self: any(len(found) > 1 for found in self.flights.values()))
    @rule(data=st.data())
    def ack_another(self, data):
        name = data.draw(st.sampled_from([name for name, found in self.flights.items() if len(found) > 1]))
        batch, _, _ = data.draw(st.sampled_from(self.flights[name][1:]))
        with pytest.raises(AckError):
            batch.ack()

    @precondition(lambda self: self.holders)
    @rule(data=st.data())
    def roll_back(self, data):
        name = data.draw(st.sampled_from(sorted(self.holders)))
        flights = self.flights[name]
        chosen = data.draw(st.none() | st.integers(0, len(flights) - 1)) if flights else None
        self.holders[name].rollback(None if chosen is None else flights[chosen][0].id)
        gone = flights[chosen or 0 :]
        self.flights[name] = flights[: chosen or 0]
        for batch, _, _ in gone[1:] or gone:
            if not self.flights[name] or batch is not gone[0][0]:
                with pytest.raises(AckError):
                    batch.ack()

    @precondition(lambda self: self.holders)
    @rule(data=st.data())
    def close(self, data):
        name = data.draw(st.sampled_from(sorted(self.holders)))
        self.holders.pop(name).close()
        self.flights[name] = []

    @precondition(lambda self: self.fenced)
    @rule(data=st.data())
    def one_who_was_fenced_comes_back(self, data):
        old = data.draw(st.sampled_from(self.fenced))
        before = self.cursors.load("shop", old.cursor.consumer)
        with pytest.raises(CursorMoved):
            old.renew()
        if old.in_flight:
            with pytest.raises(CursorMoved):
                old.ack(old.in_flight[0])
        assert self.cursors.load("shop", old.cursor.consumer) == before

    @invariant()
    def every_cursor_stands_where_its_acks_brought_it(self):
        for name in INTERESTS:
            held = self.cursors.load("shop", name)
            if held is not None:
                assert held.position == at(4 + self.acked[name] * STEP)
                assert len(held.moves) <= 100


def plain(rows):
    return list(zip(*(rows.column(name).to_pylist() for name in ("_offset", "_op", "id")), strict=True))


TestConsuming = Consuming.TestCase
TestConsuming.settings = settings(max_examples=examples(150), stateful_step_count=30, deadline=None)
