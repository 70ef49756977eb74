"""Which merges use the settings of small merges."""

from __future__ import annotations

import pytest

from spark_jobs.changes.frames import ONE_TASK_ROWS
from spark_jobs.merging.small_merge import SMALL_TABLE, small_merge_settings

ADAPTIVE, CODE = "spark.sql.adaptive.enabled", "spark.sql.codegen.wholeStage"


def test_a_small_merge_turns_off_adaptive_execution_and_code_generation():
    """Both settings are off."""
    assert small_merge_settings(ONE_TASK_ROWS, SMALL_TABLE, {}) == {ADAPTIVE: "false", CODE: "false"}


@pytest.mark.parametrize(("changes", "records"), [(ONE_TASK_ROWS + 1, 0), (1, SMALL_TABLE + 1), (1, None)])
def test_a_large_merge_keeps_sparks_defaults(changes, records):
    """A table of unknown size may be large."""
    assert small_merge_settings(changes, records, {}) == {}


def test_settings_of_the_source_file_are_kept():
    """They override those of small merges."""
    assert small_merge_settings(1, 1, {ADAPTIVE: "true"}) == {CODE: "false"}
