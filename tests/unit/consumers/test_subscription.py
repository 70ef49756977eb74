from __future__ import annotations

import re
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cdc_lib.config import load_source
from cdc_lib.consumers import Interest, subscribe_to
from cdc_lib.consumers.subscribe import Holder, subscribe
from cdc_lib.errors import AckError, ConfigError, ConsumerHeld, CursorMoved
from cdc_lib.model.cursor import DRAIN, Cursor
from cdc_lib.model.quarantine import Fault, QuarantineRecord
from cdc_lib.store.cursors import ObjectCursorStore
from cdc_lib.store.objects.local import LocalStore
from cdc_lib.store.periodic import PeriodicCursorStore
from tests.harness.lake.batches import IDENTITY, INT, BatchWriter, Row, at, table
from tests.harness.processes.clocks import SetClock
from tests.harness.processes.races import at_once

A, B = table("shop.a", {"id": INT}), table("shop.b", {"id": INT})


@pytest.fixture
def store(tmp_path):
    """Three windows of one row each, all acknowledged by the drain."""
    store = LocalStore(tmp_path / "store")
    writer = BatchWriter(store)
    for number, schema in enumerate((A, B, A)):
        low = 4 + number * 100
        writer.window(low, low + 100, {schema: [Row("c", low + 1, {"id": number})]})
    drained_to(store, 304)
    return store


def drained_to(store, stop):
    cursors = ObjectCursorStore(store)
    cursors.swap(cursors.load("shop", DRAIN), Cursor("shop", DRAIN, 0, 1, IDENTITY, at(stop)))


def take(store, name="audit", **how):
    return subscribe(store, ObjectCursorStore(store), "shop", name, **how)


def test_rows_of_a_quarantined_table_are_left_out_from_its_start_on(store):
    """A window that was drained before it was known holds some."""
    cursors = ObjectCursorStore(store)
    drain, fault = cursors.load("shop", DRAIN), Fault(at(210), "unsupported_value", "a text is not valid")
    cursors.swap(
        drain,
        replace(
            drain, quarantine=(QuarantineRecord("shop.a", 1, at(104), at(104), at(304), fault, None, SetClock().now()),)
        ),
    )
    batch = take(store).get()
    assert {table: rows.column("id").to_pylist() for table, rows in batch.tables().items()} == {
        "shop.a": [0],
        "shop.b": [1],
    }


def test_a_get_waits_until_the_batch_is_full(store):
    """What is drained meanwhile goes in; when the time is over, what there is is returned."""
    subscription = take(store)
    assert subscription.get(3).rows == 3
    subscription.rollback()
    began = time.monotonic()
    assert subscription.get(4, timeout=0.3).rows == 3
    assert time.monotonic() - began >= 0.3
    subscription.rollback()
    BatchWriter(store).window(304, 404, {A: [Row("c", 310, {"id": 9})]})
    later = threading.Timer(0.3, drained_to, (store, 404))
    later.start()
    assert subscription.get(4, timeout=60).rows == 4
    later.join()


def test_an_empty_get_is_false_has_no_id_and_its_ack_is_nothing(store):
    """As canal's batch of id -1."""
    with take(store, start="latest") as subscription:
        batch = subscription.get(timeout=0.01)
        assert (batch.id, bool(batch), batch.rows, batch.tables()) == (None, False, 0, {})
        batch.ack()


def test_windows_without_a_row_of_interest_do_not_hold_the_cursor(store):
    """Batches would stay for a consumer that wants nothing of them."""
    with take(store, interest=Interest(tables=("shop.none",))) as subscription:
        assert not subscription.get()
        assert subscription.cursor.position == at(304)


def test_batches_are_acknowledged_in_the_order_in_which_they_were_got(store):
    """A later one is refused, and both succeed in order."""
    with take(store) as subscription:
        first, second = subscription.get(1), subscription.get(1)
        with pytest.raises(AckError, match=f"batch {second.id} is not the oldest in flight"):
            second.ack()
        first.ack()
        second.ack()
        assert subscription.cursor.position == at(204)


def test_iterating_gives_batch_after_batch_and_waits_for_more(store):
    """Until whoever iterates has enough."""
    found = []
    with take(store) as subscription:
        for batch in subscription:
            found.append(batch.rows)
            batch.ack()
            if len(found) == 1:
                BatchWriter(store).window(304, 404, {A: [Row("c", 310, {"id": 9})]})
                threading.Timer(0.2, drained_to, (store, 404)).start()
            else:
                break
    assert found == [3, 1]


def test_what_a_consumer_asked_for_is_remembered_until_it_asks_otherwise(store):
    """The document says it too."""
    take(store, interest=Interest(tables=("shop.b",))).close()
    with take(store) as subscription:
        assert list(subscription.get().tables()) == ["shop.b"]
    take(store, interest=Interest(tables=("shop.a",))).close()
    assert ObjectCursorStore(store).load("shop", "audit").interest == Interest(tables=("shop.a",))


def test_of_sixteen_that_subscribe_at_once_one_holds(store):
    """The others get an error, by the lease or by the cursor's generation."""

    def attempt(number):
        try:
            return take(store, holder=Holder(f"number {number}"))
        except (ConsumerHeld, CursorMoved):
            return None

    (holder,) = [found for found in at_once(attempt) if found]
    assert ObjectCursorStore(store).load("shop", "audit") == holder.cursor


def test_a_holder_that_continues_to_get_keeps_its_lease(store):
    """Without an ack in between; one that is silent loses it."""
    clock = SetClock()
    subscription = take(store, holder=Holder(clock=clock, lease=timedelta(seconds=60)))
    for _ in range(5):
        clock.go(40)
        subscription.get(1)
    with pytest.raises(ConsumerHeld):
        take(store, holder=Holder(clock=clock))
    clock.go(61)
    take(store, holder=Holder(clock=clock)).close()
    with pytest.raises(CursorMoved):
        subscription.get()


def test_a_subscription_that_is_closed_does_nothing_more(store):
    """And another can take it at once."""
    first = take(store)
    batch = first.get(1)
    first.close()
    first.close()
    for call in (first.get, first.renew, first.rollback, batch.ack):
        with pytest.raises(AckError):
            call()
    with take(store) as second:
        assert second.get(1).id == batch.id


def test_what_was_acknowledged_in_memory_comes_again_after_a_crash(store):
    """At least once; what was written in between does not."""
    home = ObjectCursorStore(store)
    clock = SetClock()
    periodic = PeriodicCursorStore(home, 3600)
    lost = subscribe(store, periodic, "shop", "audit", holder=Holder(clock=clock))
    lost.get(1).ack()
    periodic.flush()
    second = lost.get(1)
    second.ack()
    assert home.load("shop", "audit").position == at(104)
    clock.go(61)
    with take(store, holder=Holder(clock=clock)) as taken:
        assert taken.get(1).id == second.id


SOURCE = """
server: {{host: h, user: u, password_env: P}}
tables: ["shop.*"]
store: {{url: "file://{folder}/store"}}
lake: {{type: jdbc, uri: "jdbc:sqlite:{folder}/cat.db", warehouse: "file://{folder}/lake"}}
"""


@pytest.fixture
def config(store, tmp_path):
    (tmp_path / "shop.yaml").write_text(SOURCE.format(folder=tmp_path))
    return load_source(tmp_path / "shop.yaml")


@pytest.mark.parametrize("flush_every", [None, 5.0])
def test_a_source_file_is_all_that_a_consumer_needs(config, store, flush_every):
    """At the end of the block the cursor is at home and free."""
    with subscribe_to(config, "audit", flush_every=flush_every) as subscription:
        subscription.get().ack()
    held = ObjectCursorStore(store).load("shop", "audit")
    assert (held.position, held.lease) == (at(304), None)


def test_a_cursor_in_memory_for_longer_than_its_lease_is_refused(config):
    """Another would take over from a holder that is at work."""
    with pytest.raises(ConfigError, match="flush_every"), subscribe_to(config, "audit", flush_every=30.0):
        pass


def test_a_source_that_was_never_planned_says_so(tmp_path):
    """There is nothing to subscribe to."""
    with pytest.raises(CursorMoved, match="no drain cursor"):
        take(LocalStore(tmp_path / "empty"))


def test_only_the_last_hundred_moves_are_kept(store):
    """The document stays small whoever acknowledges how often."""
    writer = BatchWriter(store)
    for number in range(120):
        writer.window(304 + number, 305 + number, {A: [Row("c", 304 + number, {"id": number})]})
    drained_to(store, 424)
    with take(store) as subscription:
        while batch := subscription.get(1):
            batch.ack()
        assert len(subscription.cursor.moves) == 100
        assert subscription.cursor.moves[-1].stop == at(424)
    assert subscription.cursor.moves[-1].at <= datetime.now(UTC)


def test_the_example_of_the_readme_runs_unchanged(config, store, tmp_path, monkeypatch, capsys):
    """With the source file in its place."""
    readme = (Path(__file__).parents[3] / "docs" / "guides" / "consumers.md").read_text()
    (example,) = [code for code in re.findall(r"```python\n(.*?)```", readme, re.DOTALL) if "subscribe_to" in code]
    folder = tmp_path / "dags" / "sources"
    folder.mkdir(parents=True)
    (tmp_path / "shop.yaml").rename(folder / "shop.yaml")
    monkeypatch.chdir(tmp_path)
    exec(compile(example, "consumers.md", "exec"), {})  # noqa: S102 - this project's own file
    assert capsys.readouterr().out == "shop.a 2\nshop.b 1\n"
    assert ObjectCursorStore(store).load("shop", "audit").position == at(304)
