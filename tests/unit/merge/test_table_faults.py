"""Which errors of a merge concern one table alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_lib.errors import (
    ConfigError,
    CorruptBatch,
    IncompatibleSchema,
    LakeRefused,
    MachineExhausted,
    MergeConflict,
    MergeError,
    StoreUnavailable,
)
from cdc_lib.merge.table_faults import FailedTable, faults_of_one_table, to_compare
from cdc_lib.model.failed_table import StoppedTable
from cdc_lib.model.table_name import TableName


def failed(*errors):
    tables = [(TableName("shop", f"t{number}"), error) for number, error in enumerate(errors)]
    return [FailedTable((table,), f"lake.{table}", error) for table, error in tables]


@pytest.mark.parametrize("kind", [MergeError, IncompatibleSchema, CorruptBatch, ConfigError])
def test_a_permanent_error_of_one_table_concerns_it(kind):
    """Also if nothing else was merged."""
    one = failed(kind("column n is int in the lake"))
    assert faults_of_one_table(one, 0) == faults_of_one_table(one, 3) == one


@pytest.mark.parametrize("kind", [MergeConflict, StoreUnavailable, MachineExhausted, LakeRefused])
def test_an_error_of_the_machine_or_one_that_passes_concerns_no_table(kind):
    """The merge is tried again, or waits for a person."""
    assert faults_of_one_table(failed(kind("no answer")), 3) == []


@pytest.mark.parametrize("kind", [LakeRefused, MachineExhausted])
def test_what_two_merges_met_with_one_table_while_others_were_merged_is_its_own(kind):
    """A folder that is denied, a table that needs more memory than there is: not if it was another error, or met most tables."""
    one = failed(kind("no permission"))
    before = [StoppedTable.by(each.error, each.tables, each.lake_table) for each in one]
    assert faults_of_one_table(one, 1, before) == one
    assert faults_of_one_table(one, 0, before) == []
    assert faults_of_one_table(failed(kind(""), kind("")), 1, before) == []
    assert faults_of_one_table(failed(kind(""), kind("")), 2, before)[0].tables == one[0].tables
    assert faults_of_one_table(one, 1, [replace(each, code="merge_error") for each in before]) == []
    assert faults_of_one_table(one, 1, [replace(each, lake_table="lake.shop.other") for each in before]) == []


def test_a_commit_without_rows_shows_whose_a_second_refusal_is_and_nothing_of_a_full_machine():
    def compared(*errors):
        met = failed(*errors)
        before = [StoppedTable.by(each.error, each.tables, each.lake_table) for each in met[:1]]
        return to_compare(met, before), to_compare(met, [])

    assert compared(LakeRefused("")) == (1, 0)
    assert compared(LakeRefused(""), LakeRefused(""), MergeError("")) == (2, 0)
    assert compared(MachineExhausted("")) == (0, 0)
    assert compared(LakeRefused(""), MachineExhausted("")) == (0, 0)


def test_what_all_tables_meet_concerns_none_of_them():
    """The names of the tables and of files do not make it another error."""
    texts = [f"could not merge: java.lang.IllegalStateException: /lake/t{number}/x.parquet" for number in range(3)]
    assert faults_of_one_table(failed(*map(MergeError, texts)), 0) == []
    assert faults_of_one_table(failed(*(MergeError(f"shop.t{number} lacks room") for number in range(3))), 0) == []


def test_several_tables_fail_alone_if_one_is_merged_or_their_errors_differ():
    """An error whose cause is the table's own is never taken for a common one."""
    same = failed(*(MergeError("could not merge: java.lang.ArithmeticException") for _ in range(2)))
    assert faults_of_one_table(same, 1) == same
    other = failed(MergeError("could not merge: ArithmeticException"), MergeError("could not merge: ParseException"))
    assert faults_of_one_table(other, 0) == other
    own = failed(*(IncompatibleSchema("column n is int in the lake") for _ in range(2)))
    assert faults_of_one_table(own, 0) == own
