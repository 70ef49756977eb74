"""The public entry point: the subscription of a consumer, from a source file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta

from cdc_lib.config.source import SourceConfig
from cdc_lib.consumers.subscribe import LEASE, From, Holder, subscribe
from cdc_lib.consumers.subscription import Subscription
from cdc_lib.errors import ConfigError
from cdc_lib.model.subscription import Interest
from cdc_lib.ports import CursorStore
from cdc_lib.store.cursors import ObjectCursorStore
from cdc_lib.store.objects.open import open_store
from cdc_lib.store.periodic import PeriodicCursorStore


@contextmanager
def subscribe_to(
    config: SourceConfig,
    consumer: str,
    interest: Interest | None = None,
    *,
    start: From = "earliest",
    holder: str = "",
    lease: timedelta = LEASE,
    flush_every: float | None = None,
) -> Iterator[Subscription]:
    """Hold the subscription of a consumer while the block runs.

    Args:
        config: the source, from :func:`cdc_lib.config.load_source`.
        consumer: name of the consumer; its cursor is created if it does not exist.
        interest: which tables and columns it wants from now on; None keeps the earlier interest, at first everything.
        start: where it begins if it has no cursor.
        holder: name of the holder, for people.
        lease: how long the subscription is reserved after the last renewal.
        flush_every: seconds between two writes of the cursor; None writes each ack at once.

    Raises:
        ConsumerHeld: another process holds it.
        ConfigError: a pattern, the name or ``flush_every`` is wrong.
        CursorMoved: the source was never planned.
    """
    store = open_store(config.store)
    cursors: CursorStore = ObjectCursorStore(store)
    with ExitStack() as stack:
        if flush_every is not None:
            if flush_every <= 0 or timedelta(seconds=flush_every) > lease / 3:
                raise ConfigError(
                    f"flush_every {flush_every} is not between 0 and a third of the lease ({lease / 3})",
                    hint="The lease is renewed with the cursor: it would run out while the consumer is at work.",
                )
            cursors = stack.enter_context(PeriodicCursorStore(cursors, flush_every))
        mine = Holder(holder, lease) if holder else Holder(lease=lease)
        made = subscribe(store, cursors, config.source, consumer, interest, start=start, holder=mine)
        yield stack.enter_context(made)
