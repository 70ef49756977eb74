"""The files of a batch: of any number of tables at once, and nothing of a batch that is not completed."""

from __future__ import annotations

import hashlib
import resource
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cdc_lib.model.manifest import OP
from cdc_lib.model.schema import TableSchema
from cdc_lib.store.objects.local import LocalStore
from cdc_lib.store.parquet import BatchWriter

TABLES = 200
ROWS = pa.table({OP: pa.array(["c", "d"]), "id": pa.array([1, 2])})
RANDOM = np.random.default_rng(3)
LONG = pa.table({OP: pa.array(["c"] * 1000), "v": pa.array([RANDOM.bytes(3000).hex() for _ in range(1000)])})


@pytest.fixture
def store(tmp_path):
    return LocalStore(tmp_path / "store")


@pytest.fixture
def few_open_files():
    """As many as are open now, and a few more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(list(Path("/proc/self/fd").iterdir())) + TABLES // 4, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def writer(store):
    return BatchWriter(store, lambda path: f"batch/{path}", lambda table, number: f"{table}/part-{number:05d}.parquet")


def test_a_batch_has_more_tables_than_a_process_may_open_files(store, few_open_files):
    """Each file has the digest that the manifest names."""
    with writer(store) as batch:
        for number in range(TABLES):
            batch.write(f"{number:05d}", TableSchema("shop", f"t{number}", ()), ROWS)
    assert len(batch.files) == TABLES
    for file in batch.files:
        data = store.get(f"batch/{file.path}").data
        assert (len(data), hashlib.sha256(data).hexdigest()) == (file.bytes, file.sha256)
        with store.open_read(f"batch/{file.path}") as stored:
            assert pq.read_table(stored) == ROWS


def test_a_long_file_is_written_while_rows_come(store):
    """In memory there is a part of it at most."""
    with writer(store) as batch:
        for number in range(3):
            batch.write("00000", TableSchema("shop", "t", ()), LONG)
            batch.write(f"{number + 1:05d}", TableSchema("shop", "u", ()), ROWS)
        batch._collect(wait=True)
        assert len([path for path in store.root.rglob("*") if path.is_file()]) == 1
    with store.open_read(f"batch/{batch.files[0].path}") as stored:
        assert pq.read_table(stored) == pa.concat_tables([LONG] * 3)


def fail_after_rows(store):
    with writer(store) as batch:
        batch.write("00000", TableSchema("shop", "t", ()), LONG)
        batch.write("00001", TableSchema("shop", "u", ()), ROWS)
        batch._collect(wait=True)
        raise ZeroDivisionError


def test_nothing_is_left_of_a_batch_that_fails(store):
    """Neither of a long file, which was begun, nor of a short one."""
    with pytest.raises(ZeroDivisionError):
        fail_after_rows(store)
    assert [path for path in store.root.rglob("*") if path.is_file() and ".locks" not in path.parts] == []
