"""Files of batches that are searched together: a key is found where it is, and segments stay when windows come and go."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from cdc_lib.model.manifest import DataFile
from cdc_lib.model.position import Point
from cdc_lib.model.table_name import TableName
from cdc_lib.read.archive.reach import Part
from cdc_lib.read.archive.segments import SegmentKeys, segments_of
from cdc_lib.read.columns import ReadColumn
from cdc_lib.read.keys import KeyColumns
from tests.harness.lake.batches import BIGINT, table

SCHEMA = table("shop.orders", {"id": BIGINT})
TYPES = [pa.string(), pa.int64()]
KEY = KeyColumns((ReadColumn("name", 1, TYPES[0]), ReadColumn("n", 2, TYPES[1])), "shop.orders")


def part(rows, at=4):
    return Part(
        "m", DataFile("p", TableName("shop", "orders"), "s", rows, 1, ""), SCHEMA, Point(1, 1, at), Point(1, 1, at + 1)
    )


def segments(numbers, rows=1_000):
    """Segments of the windows with these numbers, newest first."""
    newest = sorted(numbers, reverse=True)
    return segments_of([part(rows, number) for number in newest], [f"batches/{number}/part" for number in newest])


def test_a_key_is_found_in_each_row_group_that_has_it():
    """In files without rows and with several row groups, with a null as part of the key; each row as a plain search finds it."""
    chosen = random.Random(1)

    def keys(count):
        names = pa.array([chosen.choice(["a", "ä", "", None]) for _ in range(count)], TYPES[0])
        numbers = pa.array([chosen.randrange(3) for _ in range(count)], TYPES[1])
        return [pa.chunked_array([one.slice(0, count // 2), one.slice(count // 2)]) for one in (names, numbers)]

    files = [[keys(30), keys(1)], [], [keys(0), keys(17)], [keys(5)]]
    found = SegmentKeys.of(files, TYPES)
    for name in ("a", "ä", "", None, "b"):
        for number in range(4):
            expected = {}
            for at, groups in enumerate(files):
                for group, (names, numbers) in enumerate(groups):
                    rows = [
                        row
                        for row, one in enumerate(zip(names.to_pylist(), numbers.to_pylist(), strict=True))
                        if one == (name, number)
                    ]
                    if rows:
                        expected.setdefault(at, {})[group] = rows
            hits = found.hits(KEY.parse((name, number)))
            assert {at: {group: rows.tolist() for group, rows in of.items()} for at, of in hits.items()} == expected
    assert SegmentKeys.of([[]], TYPES).hits(KEY.parse(("a", 1))) == {}


def test_segments_have_all_files_in_order_and_are_small():
    made = segments(range(300))
    assert [path for one in made for path in one.paths] == [f"batches/{number}/part" for number in reversed(range(300))]
    assert max(len(one.parts) for one in made) == 8
    assert len(made) < 300 / 3
    assert [len(one.parts) for one in segments(range(5), rows=200_000)] == [1] * 5
    assert segments([]) == ()


def test_the_files_of_one_window_are_in_one_segment():
    """They are in no order of time: the newest version may be in any of them."""
    parts = [part(1_000, number // 6) for number in reversed(range(60))]
    found = segments_of(parts, [f"batches/{number}/part" for number in range(60)])
    assert [one for each in found for one in each.parts] == parts
    assert len(found) > 3
    assert all(
        len({one.low for one in each.parts} & {one.low for one in other.parts}) == 0 for each, other in pairwise(found)
    )


@pytest.mark.parametrize("removed", [1, 2, 3, 5])
def test_most_segments_stay_when_windows_come_and_go(removed):
    """Their keys are in memory under their names."""
    before = {one.paths for one in segments(range(300))}
    after = {one.paths for one in segments(range(removed, 310))}
    assert len(after - before) <= 6
    assert np.mean([paths in before for paths in after]) > 0.9
