"""A store that ignores what cursors rely on is refused."""

from __future__ import annotations

import pytest

from cdc_lib.errors import ConfigError
from cdc_lib.store.objects.local import LocalStore
from cdc_lib.store.objects.probe import refuse_broken_conditions


class WritesOver(LocalStore):
    """Takes If-None-Match and does not keep it."""

    def put_if_absent(self, key, data):
        return bool(self.put(key, data))


class TakesAnyEtag(LocalStore):
    """Takes If-Match and does not keep it."""

    def put_if_match(self, key, data, etag):  # noqa: ARG002 - which is what is wrong with it
        return self.put(key, data)


class SaysNoAndWrites(LocalStore):
    """Answers rightly, and has written all the same."""

    def put_if_absent(self, key, data):
        absent = self.get(key) is None
        self.put(key, data)
        return absent


@pytest.mark.parametrize("broken", [WritesOver, TakesAnyEtag, SaysNoAndWrites])
def test_a_store_that_ignores_a_condition_is_refused(broken, tmp_path):
    """With the condition's name, and without remaining test objects."""
    store = broken(tmp_path)
    with pytest.raises(ConfigError, match="If-"):
        refuse_broken_conditions(store, "the store")
    assert list(store.list("")) == []


def test_a_store_that_keeps_them_is_taken(tmp_path):
    """In silence."""
    LocalStore(tmp_path).probe()
