"""Deletes objects at a server that deletes one with each request."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

from cdc_lib.store.objects.keys import check_key


def delete_each(keys: Iterable[str], delete: Callable[[str], None], at_once: int) -> None:
    """Delete objects, some at the same time.

    Args:
        keys: of the objects; all are checked first.
        delete: deletes one.
        at_once: maximum number of requests at the same time.

    Raises:
        ConfigError: one of them cannot be the key of an object; nothing was deleted.
    """
    checked = [check_key(key) for key in keys]
    if len(checked) <= 1:
        for key in checked:
            delete(key)
        return
    with ThreadPoolExecutor(min(at_once, len(checked))) as threads:
        for _ in threads.map(delete, checked):
            pass
