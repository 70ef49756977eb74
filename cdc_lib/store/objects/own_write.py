"""Tells whether a conditional write whose answer was lost was done: by the object that is stored."""

from __future__ import annotations

import logging

from cdc_lib.errors import StoreUnavailable
from cdc_lib.ports import ObjectStore

log = logging.getLogger(__name__)


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
