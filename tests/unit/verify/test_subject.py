from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_lib.model.lake_table import LakeColumn, LakeName, LakeTable, Marker
from cdc_lib.model.mask import Mask
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


def standing(*columns, key=("id",)):
    found = tuple(LakeColumn(*column) for column in columns)
    return LakeTable(found, key, "mirror" if key else "append", Marker(), 1, records=1)


ALL = standing(("id", "int"), ("note", "string"), ("total", "int"))


def subject(schema=SCHEMA, projection=None, target=TARGET, found=ALL, constants=None):
    return subject_of(schema, projection or whole(schema), target, LAKE, found, constants or {}, ValuePolicy())


def test_everything_is_compared_where_nothing_stands_against_it():
    """Names compare without their case, as in the lake."""
    found = subject()
    assert isinstance(found, Subject)
    assert [cell.column.name for cell in found.cells] == ["id", "Note", "total"]
    assert (found.uncompared, found.how, [cell.column.name for cell in found.keys]) == ((), "ranges", ["id"])


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"projection": project(SCHEMA, lambda name: name != "Note", lambda _: None)}, "leaves it out (columns)"),
        ({"projection": project(SCHEMA, lambda _: True, {"Note": Mask("hash")}.get)}, "behind a mask"),
        ({"target": replace(TARGET, keeps=lambda name: name != "Note")}, "the route leaves it out"),
        ({"found": standing(("id", "int"), ("total", "int"))}, "the lake table does not have it"),
        (
            {"schema": replace(SCHEMA, columns=(SCHEMA.columns[0], Column("Note", SourceType("unsupported", text="xmltype"))))},
            "the type xmltype is not read",
        ),
    ],
)  # fmt: skip
def test_a_column_that_cannot_be_compared_is_named_with_its_reason(how, why):
    """The others are compared all the same."""
    found = subject(**how)
    assert isinstance(found, Subject)
    assert [one.column for one in found.uncompared] == ["Note"]
    assert why in found.uncompared[0].why
    assert "Note" not in [cell.column.name for cell in found.cells]


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"target": replace(TARGET, where=("total > 1",))}, "a filter"),
        ({"projection": project(SCHEMA, lambda _: True, {"id": Mask("hash")}.get)}, "column id of its key has a mask"),
        ({"found": standing(("id", "int"), key=())}, "its key at the source is id, and that of the lake table none"),
        ({"found": standing(("id", "int"), key=("total",))}, "that of the lake table total"),
        ({"found": standing(("note", "string"))}, "not the whole of its key"),
    ],
)
def test_a_table_of_which_nothing_can_be_compared_is_said_with_its_reason(how, why):
    """A comparison that would call sound rows wrong is worse than none."""
    found = subject(**how)
    assert isinstance(found, str)
    assert why in found


def test_a_table_that_is_not_in_the_lake_yet_is_compared_with_nothing():
    """Its rows are missing, if it has some."""
    assert isinstance(subject(found=None), Subject)


def test_what_is_added_by_a_route_stands_in_front_of_the_key():
    """It says whose rows are compared."""
    found = standing(("id", "int"), ("note", "string"), ("total", "int"), key=("_source_table", "id"))
    shared = subject(found=found, constants={"_source_table": "orders"})
    assert isinstance(shared, Subject)
    assert [cell.column.name for cell in shared.keys] == ["id"]


def test_a_wider_column_of_the_lake_is_read_as_the_source_has_it():
    """Widening is followed, and the lake keeps the wider type when the source's table is made again."""
    found = subject(found=standing(("id", "bigint"), ("note", "string"), ("total", "int")))
    assert isinstance(found, Subject)
    assert found.cells[0].lake == "CAST(TRY_CAST(`id` AS int) AS STRING)"


@pytest.mark.parametrize("cuts", [1, 2, 3, 4, 7, 8, 100])
def test_the_binary_search_takes_steps_enough_for_all_cuts(cuts):
    """And no more; the array holds a value for each number that they can add up to."""
    found = subject()
    assert isinstance(found, Subject)
    steps = lake_range(found, cuts)
    assert 2 ** (len(steps) - 1) <= cuts < 2 ** len(steps)
    assert lake_cuts(found, tuple(range(cuts))).count("CAST(") == 2 ** len(steps) - 1


@pytest.mark.parametrize(
    ("mode", "state"),
    [("mirror", ""), ("soft_delete", "`_is_deleted` IS NOT TRUE"), ("scd2", "`_is_current`"), ("append", "")],
)
def test_only_rows_that_are_to_be_at_the_source_are_compared(mode, state):
    """Deleted rows and versions that ended are left out; a list of changes is folded."""
    found = subject(found=replace(ALL, mode=mode))
    assert isinstance(found, Subject)
    assert (found.current_rows, found.folded) == (state, mode == "append")
