"""Which batches are merged into a lake table whose primary key was another one before, for any windows and snapshot."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cdc_lib.backfill.other_key import under_one_key
from cdc_lib.merge.plan import StoredBatch
from cdc_lib.model.manifest import SnapshotChunk
from cdc_lib.model.position import Point
from cdc_lib.model.window import Window
from tests.harness.lake.batches import at
from tests.harness.lake.planned import SCHEMA, manifest

STEP = 10
KEYS = st.sampled_from([("id",), ("k", "id"), ()])


@st.composite
def lives(draw):
    """Draw windows in order, each with the keys of its rows, those that are taken, and a snapshot that is at hand or not."""
    keys, windows = {}, []
    for number in range(draw(st.integers(0, 8))):
        bounds = at(10 + number * STEP), at(10 + (number + 1) * STEP)
        window = StoredBatch(f"w{number}", manifest(window=Window("shop", 1, *bounds)))
        keys[window.key] = draw(st.frozensets(KEYS, max_size=2))
        windows.append(window)
    low = draw(st.none() | st.integers(5, 100))
    chunks = []
    if low is not None and draw(st.booleans()):
        facts = SnapshotChunk("s1", SCHEMA.name, 0, at(low), None, None, True, at(low))
        chunks = [StoredBatch("c0", manifest(chunk=facts))]
        keys["c0"] = frozenset({draw(KEYS)})
    taken = {one.key for one in windows if draw(st.booleans())}
    return chunks, windows, taken, keys, low


def sort(life, key):
    chunks, windows, taken, keys, low = life
    return under_one_key(
        [*chunks, *windows],
        lambda batch: keys[batch.key],
        key=key,
        low=Point(1, 1, low) if low is not None else None,
        chunks={batch.key for batch in chunks},
        windows=taken,
    )


@given(lives(), st.none() | KEYS)
def test_merged_batches_have_one_key_or_the_others_are_named(life, key):
    """So rows of two keys never get into one table silently."""
    found, keys = sort(life, key), life[3]
    counted = {one for batch in found.batches for one in keys[batch.key]}
    assert counted - {found.key} == found.others
    assert not found.windows or found.key not in found.former


@given(lives(), st.none() | KEYS)
def test_only_windows_that_a_snapshot_replaced_are_left_out(life, key):
    """That is, windows with another key that end before the snapshot's low watermark or at it."""
    chunks, windows, taken, keys, low = life
    found = sort(life, key)
    counted = {batch.key for batch in found.batches}
    left_out = {batch.key for batch in found.windows}
    assert left_out == {one.key for one in windows if one.key in taken} - counted
    for one in found.windows:
        assert one.manifest.window.stop.offset <= low
        assert keys[one.key] - {found.key}
    assert {batch.key for batch in chunks} <= counted
    assert {key for key in keys if not keys[key] - {found.key}} <= counted
    order = [batch.key for batch in [*chunks, *windows]]
    assert [batch.key for batch in found.batches] == [key for key in order if key in counted]


@given(lives(), KEYS)
def test_the_key_is_that_of_the_merged_snapshot_or_else_of_the_lake_table(life, key):
    """For a missing table it is that of the last rows."""
    chunks, windows, taken, keys, _ = life
    (read,) = keys["c0"] if chunks else (key,)
    assert sort(life, key).key == read
    changed = [one for batch in windows if batch.key in taken for one in sorted(keys[batch.key])]
    assert sort(life, None).key == (read if chunks else changed[-1] if changed else None)
