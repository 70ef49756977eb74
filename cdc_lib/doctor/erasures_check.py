"""Looks for erasures that were begun and have not ended: values that somebody asked to erase may be left."""

from __future__ import annotations

from collections.abc import Iterator

from cdc_lib.model.finding import Finding
from cdc_lib.ports import ObjectStore
from cdc_lib.store.erasures import erasures


def check_erasures(source: str, store: ObjectStore) -> Iterator[Finding]:
    """Yield a finding for each such erasure; one that is running now is among them.

    Args:
        source: its name.
        store: has the erasures.
    """
    for one in erasures(store, source):
        if one.ended_at is None:
            yield Finding(
                "warning",
                f"{one.table}: the erasure that {one.asked_by or 'somebody'} asked for at {one.asked_at:%Y-%m-%d %H:%M} UTC has not ended",
                f"If it does not run, start it again with the same key or condition: cdc lake erase {source} {one.table.in_shell}",
            )
