"""Schema versions: few are looked up one by one, many in one listing, with the same result."""

from __future__ import annotations

import pytest

from cdc_lib.model.position import Position
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.schema_version import Definition, SchemaVersion
from cdc_lib.store.objects.local import LocalStore
from cdc_lib.store.schemas import SchemaVersions, VersionsAt

TABLES = 40


def at(offset):
    return Position("binlog.000002", offset)


@pytest.fixture
def versions(tmp_path):
    """Of each table at 100 plus its number, of every third also at 500; and of their database."""
    versions = SchemaVersions(LocalStore(tmp_path / "store"), "shop", 1)
    for number in range(TABLES):
        for offset in (100 + number, *([500] if number % 3 == 0 else [])):
            definition = Definition(TableSchema("db", f"t{number}", ()), "latin1" if offset == 500 else "utf8mb4")
            versions.put(SchemaVersion("shop", 1, "db", f"t{number}", at(offset), definition))
    versions.put(SchemaVersion("shop", 1, "db", "", at(4), None))
    return versions


@pytest.mark.parametrize("offset", [90, 120, 499, 500, 1000])
def test_many_tables_are_looked_up_like_each_of_them(versions, offset):
    """At positions before, between and after the versions."""
    entities = [("db", ""), *(("db", f"t{number}") for number in range(TABLES)), ("db", "t"), ("other", "t1")]
    one_by_one = [versions.at(*entity, at(offset)) for entity in entities]
    many = VersionsAt(versions, at(offset))
    assert [many.of(*entity) for entity in entities] == one_by_one
    assert [many.of(*entity) for entity in entities] == one_by_one


def test_the_oldest_version_decides_whether_a_table_was_known_before(versions):
    """Asked of a few tables or of all."""
    few = [("db", f"t{number}") for number in (0, 20, 39)]
    expected = {("db", "t0"): True, ("db", "t20"): False, ("db", "t39"): False}
    assert versions.begun_before([*few, ("db", "none")], at(120)) == expected
    every = versions.begun_before([("db", f"t{number}") for number in range(TABLES + 9)], at(120))
    assert every == {("db", f"t{number}"): number < 20 for number in range(TABLES)}
    assert versions.begun_before([("db", "")], at(5)) == {("db", ""): True}
