"""How many tasks and tables a merge has at once."""

import pytest

from cdc_lib.config.work import MergeConfig
from spark_jobs.runtime.parallelism import partitions_for, tables_at_once


@pytest.mark.parametrize(
    ("rows", "cores", "partitions"),
    [(0, 1, 4), (50, 2, 4), (1_000_000, 2, 4), (1_000_001, 2, 5), (50, 64, 128), (100_000_000, 64, 400)],
)
def test_partitions_follow_rows_and_cores(rows, cores, partitions):
    assert partitions_for(rows, cores) == partitions


@pytest.mark.parametrize(("asked", "cores", "tables"), [(None, 2, 4), (None, 12, 12), (None, 400, 32), (1, 400, 1)])
def test_tables_follow_the_cores_unless_the_source_file_says(asked, cores, tables):
    assert tables_at_once(MergeConfig(parallelism=asked), cores) == tables
