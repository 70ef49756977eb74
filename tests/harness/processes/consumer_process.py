"""A consumer in its own process, to be killed: it acknowledges one batch, holds the next, and prints both ids."""

from __future__ import annotations

import sys
import time
from datetime import timedelta
from pathlib import Path

from cdc_lib.consumers.subscribe import Holder, subscribe
from cdc_lib.store.cursors import ObjectCursorStore
from cdc_lib.store.objects.local import LocalStore


def main(folder: str, source: str, consumer: str, lease: str) -> None:
    """Take the subscription and keep it until this process is killed."""
    store = LocalStore(Path(folder))
    subscription = subscribe(
        store,
        ObjectCursorStore(store),
        source,
        consumer,
        holder=Holder("the first one", timedelta(seconds=float(lease))),
    )
    first = subscription.get(1)
    first.ack()
    print(first.id, flush=True)
    print(subscription.get(1).id, flush=True)
    time.sleep(600)


if __name__ == "__main__":
    main(*sys.argv[1:])
