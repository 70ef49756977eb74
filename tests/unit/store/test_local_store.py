"""What is particular to a local folder; what it has in common with S3 is in tests/contract."""

from __future__ import annotations

import errno
import os
import resource

import pytest

from cdc_lib.errors import ConfigError, StoreError, StoreUnavailable
from cdc_lib.store.objects.local import LocalStore
from tests.harness.processes.races import at_once


@pytest.fixture
def store(tmp_path):
    return LocalStore(tmp_path / "store")


def files(store):
    return sorted(str(p.relative_to(store.root)) for p in store.root.rglob("*") if p.is_file())


def test_a_relative_folder_is_refused(tmp_path):
    """It would be another folder for every task."""
    with pytest.raises(ConfigError):
        LocalStore(tmp_path.relative_to(tmp_path.parent))


def test_the_url_is_what_hadoop_reads(store):
    """Without percent signs: Hadoop takes them for themselves."""
    assert store.url("shop/a@0020b/part-00000.parquet") == f"file://{store.root}/shop/a@0020b/part-00000.parquet"


def test_nothing_is_written_by_reading(store):
    """A store that does not exist yet is an empty one."""
    assert store.get("a/b") is None
    assert list(store.list("")) == []
    assert not store.root.exists()


def test_no_temporary_file_remains(store):
    """Neither by a write, nor by one that was refused or broken off."""
    etag = store.put("d/a", b"1")
    store.put_if_absent("d/a", b"2")
    store.put_if_match("d/a", b"3", "not it")
    store.put_if_match("d/a", b"4", etag)
    with pytest.raises(ZeroDivisionError), store.open_write("d/b") as file:
        file.write(bytes(1 // 0))
    assert [name for name in files(store) if not name.startswith(".locks/")] == ["d/a"]


def test_an_empty_folder_is_removed_with_its_last_object(store):
    """So that a store whose batches are collected does not fill with folders."""
    store.put("s/batches/1/x", b"")
    store.put("s/cursors/drain.json", b"")
    store.delete(["s/batches/1/x"])
    assert sorted(p.name for p in (store.root / "s").iterdir()) == ["cursors"]


def test_lock_files_do_not_pile_up(store):
    """At most 256 serve all keys."""
    for number in range(600):
        store.put(f"k/{number}", b"")
    assert len(list((store.root / ".locks").iterdir())) <= 256


def test_the_folder_of_a_file_is_no_folder(store):
    """An error of the operating system becomes a StoreError with the key."""
    store.put("a", b"")
    with pytest.raises(StoreError, match="key=a/b"):
        store.put("a/b", b"")


def test_writers_and_collectors_do_not_disturb_each_other(store):
    """Objects come into folders whose last object is being deleted."""

    def work(number):
        for turn in range(30):
            key = f"deep/er/folder/{turn % 3}/{number}"
            store.put(key, b"x")
            assert store.get(key).data == b"x"
            store.delete([key])

    at_once(work, 8)
    assert list(store.list("")) == []


def test_a_folder_that_cannot_be_created_is_reported(tmp_path):
    """It is tried more than once, and not for ever."""
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(StoreError):
        LocalStore(tmp_path / "link").put("a/b", b"")


@pytest.fixture
def files_end_at_a_megabyte():
    """As on a disk that is full; the interpreter ignores the signal that comes with it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_is_reported_while_a_stream_is_written(store, files_end_at_a_megabyte):
    """By the library's own error, in the write that failed, and no object is there."""
    with pytest.raises(StoreError, match="key=a/b") as caught, store.open_write("a/b") as file:
        file.write(bytes(8 << 20))
    assert not caught.value.retryable
    assert list(store.list("")) == []


def test_a_file_system_error_that_may_pass_is_retryable(store, monkeypatch):
    """Such as a network mount that was made again."""

    def stale(_):
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    monkeypatch.setattr(os, "fsync", stale)
    with pytest.raises(StoreUnavailable):
        store.put("a", b"")
