"""Tests whether a store supports the conditional writes that cursors and manifests need."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Hashable

from cdc_lib.errors import ConfigError
from cdc_lib.ports import ObjectStore

PROBES = "_probe"
"""Folder of the test objects; each is deleted at once."""


class ConditionsProbe:
    """Tests each store once per process; safe to share between threads."""

    def __init__(self) -> None:
        self._proved: set[Hashable] = set()
        self._tested: set[Hashable] = set()
        self._lock = threading.RLock()

    def once(self, place: Hashable, store: ObjectStore) -> None:
        """Test a store, unless its place was tested before; other threads wait for the result.

        The store calls it before each conditional write. Those of the test itself go through.

        Args:
            place: where the store is.
            store: the store.

        Raises:
            ConfigError: it does not support conditional writes.
        """
        with self._lock:
            if place in self._proved or place in self._tested:
                return
            self._tested.add(place)
            try:
                refuse_broken_conditions(store, repr(store))
            finally:
                self._tested.discard(place)
            self._proved.add(place)


def refuse_broken_conditions(store: ObjectStore, name: str) -> None:
    """Test each conditional write, once where it must succeed and once where it must fail.

    Args:
        store: the store to test.
        name: its name in messages.

    Raises:
        ConfigError: a write succeeds that must fail, or fails that must succeed.
    """
    key = f"{PROBES}/{secrets.token_hex(8)}"
    _expect(name, "If-None-Match", store.put_if_absent(key, b"first"), "refused an object that was not there")
    try:
        _expect(name, "If-None-Match", not store.put_if_absent(key, b"second"), "wrote over an object that was there")
        first = store.get(key)
        _expect(name, "If-None-Match", first is not None and first.data == b"first", "lost what was written first")
        etag = store.put_if_match(key, b"third", first.etag if first else "")
        _expect(name, "If-Match", etag is not None, "refused the etag that it had given")
        stale = store.put_if_match(key, b"fourth", first.etag if first else "")
        _expect(name, "If-Match", stale is None, "took an etag that was out of date")
    finally:
        store.delete([key])


def _expect(name: str, condition: str, kept: bool, fault: str) -> None:
    if not kept:
        raise ConfigError(
            f"{name} does not keep the condition {condition}: it {fault}",
            hint="Two tasks could overwrite each other's cursor there. Use a store with conditional writes.",
            condition=condition,
        )
