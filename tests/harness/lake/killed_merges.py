"""Merges that die at one of their steps."""

from __future__ import annotations

import pytest

from cdc_lib.errors import MergeError
from cdc_lib.model.merge_plan import MergePlan
from spark_jobs.iceberg import lake_table
from spark_jobs.iceberg.deleted_rows import DeletedRows
from spark_jobs.iceberg.row_files import RowFiles
from spark_jobs.merging import rows_commit
from tests.harness.lake.running import Lake

OF_ARROW = {"write": RowFiles, "_write_vectors": DeletedRows}
"""Methods that write the files of a merge in Arrow, and their classes."""


def merge_killed_at(monkeypatch: pytest.MonkeyPatch, where: str, lake: Lake, plan: MergePlan) -> None:
    """Merge a plan, and die at ``publish`` or at a method of the lake table: of :data:`OF_ARROW`, or else of Spark's way."""
    owner: object = lake_table if where == "publish" else OF_ARROW.get(where, lake_table.IcebergTable)

    def killed(*_: object, **__: object) -> None:
        raise MergeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(owner, where, killed)
        if owner is lake_table.IcebergTable:
            patch.setattr(rows_commit, "is_done_here", lambda *_: False)
        with pytest.raises(MergeError, match="killed"):
            lake.merge(plan)
