"""Batches without erased rows: each file is written again, under a name that does not grow."""

from __future__ import annotations

from cdc_lib.erase.places import Found
from cdc_lib.erase.stored import StoredRowsEraser
from cdc_lib.model.erasure import Erasure, digest_of
from cdc_lib.source import Source
from cdc_lib.store import layout
from cdc_lib.store.batch_rows import parquet_file
from cdc_lib.store.manifests import find_manifest
from cdc_lib.store.objects.local import LocalStore
from tests.harness.lake.batches import BIGINT, IDENTITY, START_TIME, BatchWriter, Row, at, table
from tests.harness.lake.running import lake_config

PEOPLE = table("shop.people", {"id": BIGINT})
SALT = b"0123456789abcdef"


def erasure(number):
    digests = (digest_of(SALT, [number]),)
    return Erasure(
        f"{number:016x}", "shop", PEOPLE.name, SALT.hex(), digests, IDENTITY, 2, at(4), "", START_TIME, START_TIME
    )


def test_rows_of_a_batch_are_erased_many_times(tmp_path):
    """A row each; an erasure that is done again changes nothing."""
    store, count = LocalStore(tmp_path / "store"), 40
    key = BatchWriter(store).window(4, 1000, {PEOPLE: [Row("c", 10 + n, {"id": n}) for n in range(count)]})
    source, names = Source.over(lake_config(tmp_path), store), set()
    for number in range(count - 1):
        (file,) = find_manifest(store, key).files
        names.add(file.path)
        place = layout.beside(key, file.path)
        assert StoredRowsEraser(source, erasure(number)).remove([Found("batch", place, "row")]) == 1
        (file,) = find_manifest(store, key).files
        with parquet_file(store, layout.beside(key, file.path)) as parquet:
            assert parquet.read()["id"].to_pylist() == list(range(number + 1, count))
        assert store.get(place) is None
        place = layout.beside(key, file.path)
        assert StoredRowsEraser(source, erasure(number)).remove([Found("batch", place, "row")]) == 0
    assert len(names) == count - 1
    assert len({len(name) for name in names}) == 2
    assert StoredRowsEraser(source, erasure(count - 1)).remove([Found("batch", place, "row")]) == 1
    assert find_manifest(store, key).files == ()
