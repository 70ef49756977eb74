from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_lib.model.lake_table import LakeColumn, LakeName, LakeTable, Marker
from cdc_lib.model.mask import Mask
from cdc_lib.model.position import Point
from cdc_lib.model.projection import project, whole
from cdc_lib.model.route import Target
from cdc_lib.model.schema import Column, SourceType, TableSchema
from cdc_lib.model.value_policy import ValuePolicy
from cdc_lib.verify.comparability import Subject, lake_cuts, lake_range, subject_of

INT = SourceType("int", width=4)
TEXT = SourceType("string", width=40, charset="utf8mb4")
SCHEMA = TableSchema(
    "shop", "orders", (Column("id", INT, nullable=False), Column("Note", TEXT), Column("total", INT)), ("id",)
)
LAKE = LakeName("lake", ("shop",), "orders")
TARGET = Target("shop", "orders")


def lake_table(*columns, key=("id",)):
    lake_columns = tuple(LakeColumn(*column) for column in columns)
    return LakeTable(lake_columns, key, "mirror" if key else "append", Marker(), 1, records=1)


ALL = lake_table(("id", "int"), ("note", "string"), ("total", "int"))


def subject(schema=SCHEMA, projection=None, target=TARGET, table=ALL, constants=None):
    return subject_of(schema, projection or whole(schema), target, LAKE, table, constants or {}, ValuePolicy())


def test_all_columns_are_compared_by_default():
    """Column names ignore case, as in the lake."""
    found = subject()
    assert isinstance(found, Subject)
    assert [cell.column.name for cell in found.cells] == ["id", "Note", "total"]
    assert (found.uncompared, found.how, [cell.column.name for cell in found.keys]) == ((), "ranges", ["id"])


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"projection": project(SCHEMA, lambda name: name != "Note", lambda _: None)}, "leaves it out (columns)"),
        ({"projection": project(SCHEMA, lambda _: True, {"Note": Mask("hash")}.get)}, "masked in the lake"),
        ({"target": replace(TARGET, keeps=lambda name: name != "Note")}, "the route leaves it out"),
        ({"table": lake_table(("id", "int"), ("total", "int"))}, "the lake table does not have it"),
        (
            {"schema": replace(SCHEMA, columns=(SCHEMA.columns[0], Column("Note", SourceType("unsupported", text="xmltype"))))},
            "the type xmltype is not read",
        ),
    ],
)  # fmt: skip
def test_a_column_that_cannot_be_compared_is_reported_with_its_reason(how, why):
    """The others are compared."""
    found = subject(**how)
    assert isinstance(found, Subject)
    assert [one.column for one in found.uncompared if "the lake keeps it" not in one.why] == ["Note"]
    assert why in found.uncompared[0].why
    assert "Note" not in [cell.column.name for cell in found.cells]


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"target": replace(TARGET, where=("total > 1",))}, "a filter"),
        ({"projection": project(SCHEMA, lambda _: True, {"id": Mask("hash")}.get)}, "column id of its key has a mask"),
        ({"table": lake_table(("id", "int"), key=())}, "its key at the source is id, and that of the lake table none"),
        ({"table": lake_table(("id", "int"), key=("total",))}, "that of the lake table total"),
        ({"table": lake_table(("note", "string"))}, "only a part of its key"),
    ],
)
def test_a_table_that_cannot_be_compared_is_reported_with_its_reason(how, why):
    """A comparison must not report correct rows as wrong."""
    reason = subject(**how)
    assert isinstance(reason, str)
    assert why in reason


def test_a_table_that_is_not_in_the_lake_yet_is_compared_with_an_empty_one():
    """All of its rows are missing."""
    assert isinstance(subject(table=None), Subject)


def test_constants_of_a_route_come_before_the_key():
    """They identify the source table of the compared rows."""
    table = lake_table(("id", "int"), ("note", "string"), ("total", "int"), key=("_source_table", "id"))
    shared = subject(table=table, constants={"_source_table": "orders"})
    assert isinstance(shared, Subject)
    assert [cell.column.name for cell in shared.keys] == ["id"]


def test_a_wider_column_of_the_lake_is_cast_to_the_source_type():
    """The lake keeps the wider type when the source table is created again."""
    found = subject(table=lake_table(("id", "bigint"), ("note", "string"), ("total", "int")))
    assert isinstance(found, Subject)
    assert found.cells[0].lake == "CAST(TRY_CAST(`id` AS int) AS STRING)"


@pytest.mark.parametrize("cuts", [1, 2, 3, 4, 7, 8, 100])
def test_the_binary_search_has_exactly_the_steps_for_all_cuts(cuts):
    """The array has a value for each number that the steps can reach."""
    found = subject()
    assert isinstance(found, Subject)
    steps = lake_range(found, cuts)
    assert 2 ** (len(steps) - 1) <= cuts < 2 ** len(steps)
    assert lake_cuts(found, tuple(range(cuts))).count("CAST(") == 2 ** len(steps) - 1


@pytest.mark.parametrize(
    ("mode", "condition"),
    [("mirror", ""), ("soft_delete", "`_is_deleted` IS NOT TRUE"), ("scd2", "`_is_current`"), ("append", "")],
)
def test_only_current_rows_are_compared(mode, condition):
    """Deleted rows and closed versions are left out; an append table is folded."""
    found = subject(table=replace(ALL, mode=mode))
    assert isinstance(found, Subject)
    assert (found.current_rows, found.folded) == (condition, mode == "append")


def test_columns_that_the_lake_keeps_are_reported():
    """In a lake table of several source tables, they may be those of another one."""
    table = lake_table(("id", "int"), ("total", "int"), ("note", "string"), ("gone", "int"))
    found = subject(table=table)
    assert [(one.column, one.why) for one in found.uncompared] == [
        ("gone", "the source does not have it, and the lake keeps it")
    ]
    assert subject(table=table, target=replace(TARGET, routed=True)).uncompared == ()


def test_rows_that_the_lake_keeps_are_those_of_the_state_that_is_read():
    """Its marker says from before which point they are."""
    found, state = subject(), lake_table(("id", "int"))
    kept = replace(state, marker=Marker(kept_before=Point(1, 2, 3)))
    assert (found.as_in(kept).kept_before, found.as_in(state).kept_before) == (Point(1, 2, 3), None)
