"""Conditional writes whose answers may be lost: the stored object shows whether one was done."""

from __future__ import annotations

import logging
from collections.abc import Callable

from cdc_lib.errors import StoreUnavailable
from cdc_lib.ports import ObjectStore
from cdc_lib.store.objects.patience import Patience

log = logging.getLogger(__name__)


def written_under_condition(
    store: ObjectStore, key: str, data: bytes, send: Callable[[], str | None], patience: float
) -> str | None:
    """Send a conditional write until its answer is known; returns the etag, or None if the condition is false.

    Args:
        store: that is written to.
        key: of the object.
        data: what is written.
        send: sends it once; returns the etag, or None if the server refused the condition.
        patience: seconds after which it is not sent again.

    Raises:
        StoreUnavailable: no answer came, and the object that is stored is not the one that was written.
    """
    remaining, sent = Patience(patience), False
    while True:
        try:
            etag = send()
        except StoreUnavailable:
            sent = True
            if not remaining.is_left():
                # The write may have been done before the connection broke. If not, the error is raised.
                etag = etag_of_own_write(store, key, data)
                if etag is None:
                    raise
                return etag
        else:
            # Only a request that was sent twice can have failed on what itself had written.
            return etag_of_own_write(store, key, data) if etag is None and sent else etag


def etag_of_own_write(store: ObjectStore, key: str, data: bytes) -> str | None:
    """Return the etag of an object that has the data of a write; None if it has other data, or cannot be read.

    Args:
        store: that was written to.
        key: of the object.
        data: what was written.
    """
    try:
        held = store.get(key)
    except StoreUnavailable as error:
        log.warning("cannot tell whether %s was written: %s", key, error)
        return None
    return held.etag if held is not None and held.data == data else None
