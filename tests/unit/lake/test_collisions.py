"""Two source tables share a lake table only if a route says so."""

from __future__ import annotations

import pytest

from cdc_lib.config import SourceConfig
from cdc_lib.errors import LakeTableShared
from cdc_lib.lake.routing import colliding, lake_merges, refuse_collisions
from cdc_lib.model.table_name import TableName


def source(routes=(), **lake):
    return SourceConfig(
        source="s", server={"host": "h", "user": "u", "password_env": "P"}, tables={"include": ["*.*"]},
        store={"url": "file:///s"}, routes=list(routes),
        lake={"type": "jdbc", "uri": "jdbc:sqlite:/c", "warehouse": "file:///l", **lake},
    )  # fmt: skip


def names(tables):
    return [TableName(*table) for table in tables]


@pytest.mark.parametrize(
    ("lake", "tables"),
    [
        ({"type": "hive", "uri": "thrift://h"}, [("a", "t"), ("a", "T")]),
        ({"type": "glue"}, [("A", "t"), ("a", "t")]),
    ],
)
def test_tables_with_one_lake_name_are_refused(lake, tables):
    """The error names both, and how to separate them."""
    with pytest.raises(LakeTableShared, match="would be one lake table") as error:
        refuse_collisions(source(**lake), names(tables))
    assert all(TableName(*table) in error.value.message for table in tables)
    assert "lake.namespace" in error.value.hint


@pytest.mark.parametrize(
    ("lake", "tables"),
    [
        ({}, [("w", "y.z"), ("w.y", "z")]),
        ({"namespace": "{database}.{source}"}, [("w", "y.z"), ("w.y", "z"), ("w", "z")]),
        ({}, [("a", "t"), ("a", "T"), ("A", "t")]),
        ({"type": "hadoop"}, [("a", "t"), ("a", "T")]),
    ],
)
def test_tables_with_different_lake_names_are_accepted(lake, tables):
    """Each has its own lake table."""
    config = source(**lake)
    refuse_collisions(config, names(tables))
    assert len(lake_merges(config, [TableName(*table) for table in tables])) == len(tables)


def test_a_route_may_merge_tables_into_one():
    """A table that is not routed is not merged with them."""
    together = source([{"tables": "*.t", "into": "all.t", "keys": ["schema"]}])
    refuse_collisions(together, names([("a", "t"), ("b", "t")]))
    [lake] = lake_merges(together, [TableName("a", "t"), TableName("b", "t")])
    assert lake.tables == (TableName("a", "t"), TableName("b", "t"))


def test_a_route_keeps_dots_in_names():
    """Only the first dot of the template separates database and name."""
    config = source([{"tables": "*.*", "into": "{database}.{table}_copy"}])
    lakes = [lake.name for lake in lake_merges(config, [TableName("w", "y.z"), TableName("w.y", "z")])]
    assert {(name.namespace, name.name) for name in lakes} == {(("w",), "y.z_copy"), (("w.y",), "z_copy")}


def test_equal_names_made_by_a_route_template_are_refused():
    """A template with both names means one lake table for each table."""
    config = source([{"tables": "*.*", "into": "all.{database}_{table}"}])
    refuse_collisions(config, names([("a_b", "c"), ("a", "c")]))
    with pytest.raises(LakeTableShared, match=r"a\.b_c, a_b\.c would be one lake table, lake\.all\.a_b_c"):
        refuse_collisions(config, names([("a_b", "c"), ("a", "b_c")]))


OLD, NEW, NEWER, OTHER = names([("a", "t"), ("a", "T"), ("A", "t"), ("a", "u")])


@pytest.mark.parametrize(
    ("merged", "begun", "refused"),
    [
        ([OLD], [], [NEW, NEWER]),
        ([], [OLD], [NEW, NEWER]),
        ([OLD], [NEW], [NEW, NEWER]),
        ([], [OLD, NEW], [OLD, NEW, NEWER]),
        ([], [], [OLD, NEW, NEWER]),
    ],
)
def test_the_table_that_was_first_keeps_its_lake_table(merged, begun, refused):
    """Of tables that come together none is first; a table with a name of its own is never refused."""
    config = source(type="hive", uri="thrift://h")
    tables = [OLD, NEW, NEWER, OTHER]
    assert sorted(colliding(config, tables, frozenset(merged), frozenset(begun))) == sorted(refused)


def test_a_file_that_makes_one_of_two_lake_tables_is_at_fault_and_no_table():
    config = source([{"tables": "*.*", "into": "all.{database}_{table}"}])
    tables = names([("a_b", "c"), ("a", "b_c")])
    with pytest.raises(LakeTableShared, match=r"a\.b_c, a_b\.c would be one lake table"):
        colliding(config, tables, frozenset(tables), frozenset())
