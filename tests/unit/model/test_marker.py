"""The marker in a lake table's snapshot: what this release did not write is not read."""

from __future__ import annotations

import json

import pytest

from cdc_lib.errors import MergeError
from cdc_lib.model.lake_table import Marker, Reselected
from cdc_lib.model.position import Point

MARKER = Marker(Point(1, 2, 300), reselected=Reselected(Point(1, 2, 200), Point(1, 2, 400)), source_uuid="aa")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"format_version": 2}, "its format_version is 2"),
        ({"later": True}, "it has the unknown field later"),
        ({"merged_to": 5}, "cannot be read"),
        ({"reselected": [[1, 2]]}, "cannot be read"),
    ],
)
def test_a_marker_of_another_release_is_refused(change, says):
    """A field that is not known may change what the others mean, so that a merge on top of it could lose rows."""
    assert Marker.from_json(MARKER.to_json(), "shop.orders") == MARKER
    text = json.dumps({**json.loads(MARKER.to_json()), **change})
    with pytest.raises(MergeError, match=says) as caught:
        Marker.from_json(text, "shop.orders")
    assert caught.value.context["table"] == "shop.orders"
