"""Source and lake are compared row by row without reading them whole, and what differs is named."""

from __future__ import annotations

import pytest

from tests.integration.test_drain_types import COLUMNS
from tests.support.shop import seed
from tests.support.verifying import Compared


@pytest.fixture
def source(any_server, database, tmp_path, lake):
    return Compared(any_server, database, tmp_path, lake)


def test_a_table_with_every_type_is_the_same_and_one_changed_cell_of_each_is_found(source):
    """By the cell's column and key, and nothing else is found."""
    declared = ", ".join(f"{name} {kind}" for name, (kind, _) in COLUMNS.items())
    source.execute(f"CREATE TABLE a (id INT PRIMARY KEY, {declared})")
    rows = len(COLUMNS)
    values = [", ".join(found[i] for _, found in COLUMNS.values()) for i in (0, 1)]
    for number in range(1, 2 * rows + 1):
        source.execute(f"INSERT INTO a VALUES ({number}, {values[number > rows]})")
    source.execute(f"INSERT INTO a (id) VALUES ({2 * rows + 1})")
    source.round()
    found = source.table("a", chunk_rows=20)
    assert (found.skipped, found.rows, found.unequal_ranges, found.left_out) == ("", (), 0, ())
    assert (found.source_rows, found.lake_rows) == (2 * rows + 1, 2 * rows + 1)
    assert found.ranges == (2 * rows + 1) // 20 + 1

    source.unlogged(
        *(f"UPDATE a SET {name} = {two} WHERE id = {i}" for i, (name, (_, (_, two))) in enumerate(COLUMNS.items(), 1))
    )
    found = source.table("a", chunk_rows=20)
    assert {(row.key["id"], *(cell.column for cell in row.cells)) for row in found.rows} == {
        (str(i), name) for i, name in enumerate(COLUMNS, 1)
    }
    assert (found.different, found.missing, found.extra, found.in_flight, found.unexamined) == (rows, 0, 0, 0, 0)


def test_the_shop_is_the_same(source):
    """All of its tables, one of them without a key, and keys of several columns."""
    with source.server.connect() as connection:
        connection.cursor().execute(f"USE {source.database}")
        for statement in seed.TABLES.values():
            connection.cursor().execute(statement)
        seed.fill(connection, 3000)
    source.round()
    report = source.report(chunk_rows=100)
    assert [
        (one.table, one.rows, one.skipped, one.unequal_ranges)
        for one in report.tables
        if not one.clean or one.unequal_ranges
    ] == []
    assert len(report.tables) == len(seed.TABLES)
    assert sum(one.source_rows for one in report.tables) > 2900
