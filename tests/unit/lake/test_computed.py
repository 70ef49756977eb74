"""Which expressions a merge computes, and what becomes of them when columns are renamed."""

from __future__ import annotations

import pytest

from cdc_lib.errors import ConfigError, IncompatibleSchema
from cdc_lib.lake.computed import columns_in, fault_of, refuse_invalid, refuse_other, renamed
from cdc_lib.model.lake_table import LakeColumn, LakeTable, Marker

COLUMNS = ("id", "amount", "Note", "tags", "_op")


@pytest.mark.parametrize(
    "expression",
    [
        "amount * 1.2",
        "upper(`note`) || '-' || id",
        "CASE WHEN amount > 0 THEN 'in' ELSE 'out' END",
        "date_trunc('DAY', CAST(note AS TIMESTAMP))",
        "size(filter(split(tags, ','), t -> t <> ''))",
        "sha2(note, 256)",
        "1",
    ],
)
def test_an_expression_of_the_row_is_accepted(expression):
    assert fault_of(expression, COLUMNS) == ""


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("rand()", "another value each time"),
        ("amount + RANDN(3)", "another value each time"),
        ("uuid()", "another value each time"),
        ("current_timestamp()", "another value each time"),
        ("current_timestamp", "another value each time"),
        ("now()", "another value each time"),
        ("datediff(current_date, note)", "another value each time"),
        ("current_user()", "another value each time"),
        ("unix_timestamp()", "another value each time"),
        ("monotonically_increasing_id()", "another value each time"),
        ("reflect('java.lang.System', 'nanoTime')", "another value each time"),
        ("(SELECT max(amount) FROM t)", "needs other rows"),
        ("amount IN (SELECT 1)", "needs other rows"),
        ("sum(amount)", "needs other rows"),
        ("row_number() OVER (ORDER BY id)", "needs other rows"),
        ("amount, id", "more than one expression"),
        ("amount AS a", "more than one expression"),
        ("*", "more than one expression"),
        ("amount FROM t", "more than one expression"),
        ("amount) , (id", "not an expression"),
        ("amount; DROP TABLE t", "more than one expression"),
        ("price * 2", "no column price; there are id, amount, Note, tags"),
        ("_op", "no column _op"),
        ("amount +", "not an expression"),
    ],
)
def test_any_other_is_refused_with_the_reason(expression, says):
    assert says in fault_of(expression, COLUMNS)


def test_names_compare_without_case_and_a_rename_is_followed():
    """The record in the lake follows the source, and the source file must follow too."""
    before = {"total": "AMOUNT * 1.2 + length(note)", "other": "id"}
    assert columns_in(before["total"]) == {"amount", "note"}
    after = renamed(before, {"amount": "price", "Note": "my note"})
    assert columns_in(after["total"]) == {"price", "my note"}
    assert after["other"] == "id"
    state = lake(after)
    refuse_other(state, {"Total": "price*1.2  +  length(`my note`)", "other": "ID"}, "lake.shop.t")
    with pytest.raises(IncompatibleSchema, match="the computed column total is"):
        refuse_other(state, before, "lake.shop.t")


def lake(computed, mode="mirror"):
    columns = tuple(LakeColumn(name, "int") for name in COLUMNS)
    return LakeTable(columns, ("id",), mode, Marker(), 1, 1, computed=computed)


@pytest.mark.parametrize(
    ("computed", "mode", "says"),
    [
        ({"x": "id + 2"}, "mirror", "Take a new snapshot"),
        ({"x": "id + 2"}, "scd2", "drop the lake table"),
        ({}, "soft_delete", "drop the lake table"),
        ({"x": "id + 1", "y": "id"}, "append", "drop the lake table"),
    ],
)
def test_other_columns_than_those_of_existing_rows_are_refused(computed, mode, says):
    with pytest.raises(IncompatibleSchema) as refused:
        refuse_other(lake({"x": "id + 1"}, mode), computed, "lake.shop.t")
    assert says in refused.value.hint


def test_a_column_of_the_source_cannot_be_computed():
    with pytest.raises(ConfigError, match="the source table has a column of this name"):
        refuse_invalid({"AMOUNT": "id"}, COLUMNS, "lake.shop.t")
