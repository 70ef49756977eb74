"""Tries of tasks are counted in the store, also when several tasks begin at the same time: over a local folder and a real S3 server."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from cdc_lib.store.observations import note_retry, task_retries
from tests.harness.store.stores import KINDS, empty_store

TRIES = 12


@pytest.mark.parametrize("kind", KINDS)
def test_no_try_is_lost_when_mapped_tasks_are_tried_again_at_once(request, tmp_path, kind):
    """Each task has a count of its own, and other sources have theirs."""
    store = empty_store(kind, request, tmp_path)
    assert task_retries(store, "shop") is None
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(note_retry, store, "shop", task) for task in ("drain", "merge") * TRIES]:
            done.result()
    found = task_retries(store, "shop")
    assert found is not None
    assert found.by_task == {"drain": TRIES, "merge": TRIES}
    assert task_retries(store, "stock") is None
