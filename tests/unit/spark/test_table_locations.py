"""Whether orphan files of a table may be removed, by the locations of all tables of a catalog."""

from __future__ import annotations

import pytest

from spark_jobs.iceberg.locations import TableLocation, TableLocations


def located(name, location):
    return TableLocation(f"lake.{name}", name, location)


@pytest.mark.parametrize(
    ("others", "named"),
    [
        ({"b": "file:///l/n/b"}, None),
        ({"ab": "file:///l/n/ab"}, None),
        ({"b": "file:/l/n/a/data"}, "b"),
        ({"b": "/l/n"}, "b"),
        ({"b": "file:///l/N/A"}, "b"),
        ({"b": "file:///l/n/a/../b"}, "b"),
        ({"root": "file:///l/n/.."}, "root"),
        ({"b": "s3://l/n/a"}, None),
    ],
)
def test_overlapping_folders_are_found(others, named):
    """For both tables, and not for a separate one."""
    mine, beside = located("a", "file:///l/n/a"), located("beside", "file:///else/where")
    all_of_them = TableLocations([mine, beside, *(located(*one) for one in others.items())])
    assert (all_of_them.in_the_way(mine) or "").endswith(f"lake.{named}" if named else "")
    assert (all_of_them.in_the_way(mine) is None) is (named is None)
    for name, location in others.items():
        assert (all_of_them.in_the_way(located(name, location)) is None) is (named is None)
    assert all_of_them.in_the_way(beside) is None


def test_a_table_with_unknown_location_may_be_anywhere():
    """Then no orphan file is removed."""
    mine = located("a", "file:///l/n/a")
    assert "lake.n.x" in TableLocations([mine], ["lake.n.x"]).in_the_way(mine)
