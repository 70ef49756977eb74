"""The decisions of a merge on a table that is a dict: random histories end with the source's rows."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc_lib.model.lake_table import Marker, SnapshotMark
from cdc_lib.model.position import Point
from tests.harness.generated.examples import examples
from tests.harness.generated.histories import histories
from tests.harness.lake.planned import DictTable


@pytest.mark.parametrize("mode", ["mirror", "soft_delete"])
@settings(max_examples=examples(300), deadline=None)
@given(history=histories())
def test_any_split_of_any_history_ends_with_the_sources_rows(mode, history):
    """With any windows, late chunks and repeated merges; deleted rows may be kept."""
    lake = DictTable(history, mode)
    for step in history.steps:
        lake.step(step)
    assert {key: value for key, (_, value) in lake.rows.items() if value is not None} == history.final


@settings(max_examples=examples(200), deadline=None)
@given(histories())
def test_merging_everything_again_writes_nothing(history):
    """The marker counts every merged batch."""
    lake = DictTable(history)
    for step in history.steps:
        lake.step(step)
    before = lake.changed
    for step in history.steps:
        lake.step(step)
    assert lake.changed == before


points = st.builds(Point, st.integers(1, 5), st.integers(1, 10**9), st.integers(4, 2**60))
marks = st.builds(SnapshotMark, st.text(min_size=1), st.integers(0, 9), st.booleans(), points, points)


@given(st.none() | points, st.lists(marks, unique_by=lambda m: m.snapshot_id, max_size=3))
def test_a_marker_round_trips_as_json(merged_to, snapshots):
    """It is text in a snapshot's summary."""
    marker = Marker(merged_to)
    for mark in snapshots:
        marker = marker.with_snapshot(mark)
    assert Marker.from_json(marker.to_json(), "db.t") == marker
