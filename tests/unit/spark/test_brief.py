"""Which merges go without what Spark does for large ones."""

from __future__ import annotations

import pytest

from spark_jobs.changes.frames import ONE_TASK_ROWS
from spark_jobs.merging.small_merge import SMALL_TABLE, brief_settings

ADAPTIVE, CODE = "spark.sql.adaptive.enabled", "spark.sql.codegen.wholeStage"


def test_few_changes_of_a_small_table_are_merged_by_the_plan_as_it_is():
    """Both settings are off."""
    assert brief_settings(ONE_TASK_ROWS, SMALL_TABLE, {}) == {ADAPTIVE: "false", CODE: "false"}


@pytest.mark.parametrize(("changes", "records"), [(ONE_TASK_ROWS + 1, 0), (1, SMALL_TABLE + 1), (1, None)])
def test_many_changes_and_large_tables_take_all_of_spark(changes, records):
    """A table of which nobody knows the size may be large."""
    assert brief_settings(changes, records, {}) == {}


def test_what_the_source_file_says_stays():
    """Its own settings go over the merge's."""
    assert brief_settings(1, 1, {ADAPTIVE: "true"}) == {CODE: "false"}
