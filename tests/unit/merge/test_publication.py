from __future__ import annotations

import pytest

from cdc_lib.model.lake_table import Marker
from cdc_lib.model.position import Point
from cdc_lib.model.publication import PUBLISHED_PROPERTY, publication, why_unpublished

OF_A = Marker(Point(1, 1, 100), merge_id="a").to_json()
OF_B = Marker(Point(1, 1, 90), merge_id="b").to_json()
OLD = Marker(Point(1, 1, 100)).to_json()


def text(merge_id, rows):
    return publication(merge_id, rows)[PUBLISHED_PROPERTY]


@pytest.mark.parametrize(
    ("markers", "published", "rows"),
    [
        ([OLD], None, 5),
        ([OF_A], text("a", 5), 5),
        ([OF_A], text("a", None), 5),
        ([OF_A], text("a", 5), None),
        ([OF_A, OF_B], text("b", 5), 5),
    ],
    ids=["of an older release", "published", "uncounted", "not shown", "repeated by another source"],
)
def test_markers_count_in_the_commit_of_their_merge(markers, published, rows):
    assert why_unpublished(markers, published, rows) == ""


@pytest.mark.parametrize(
    ("published", "rows", "why"),
    [
        (None, 5, "of merge a, in a commit that no merge published"),
        (text("c", 5), 5, "of merge a, in a commit that merge c published"),
        (text("a", 4), 5, "has 5 rows, and merge a published 4"),
    ],
)
def test_other_commits_prove_nothing(published, rows, why):
    assert why in why_unpublished([OF_A], published, rows)


def test_a_commit_without_a_merge_has_no_property():
    assert publication("", 5) == {}
