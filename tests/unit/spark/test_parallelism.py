"""How many tasks and tables a merge has at once."""

import pytest

from cdc_lib.config.work import MergeConfig
from spark_jobs.runtime.parallelism import tables_at_once


@pytest.mark.parametrize(("asked", "cores", "tables"), [(None, 2, 4), (None, 12, 12), (None, 400, 32), (1, 400, 1)])
def test_tables_follow_the_cores_unless_the_source_file_says(asked, cores, tables):
    assert tables_at_once(MergeConfig(parallelism=asked), cores) == tables
