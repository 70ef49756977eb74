"""Merges that die at one of their steps."""

from __future__ import annotations

import pytest

from cdc_lib.errors import MergeError
from cdc_lib.model.merge_plan import MergePlan
from spark_jobs.iceberg.deleted_rows import DeletedRows
from spark_jobs.iceberg.row_delta import RowCommit
from spark_jobs.iceberg.row_files import RowFiles
from tests.harness.lake.running import Lake

STEPS = {"write": RowFiles, "_write_vectors": DeletedRows, "publish": RowCommit}
"""Methods that write the files of a merge and commit them, and their classes."""


def merge_killed_at(monkeypatch: pytest.MonkeyPatch, where: str, lake: Lake, plan: MergePlan) -> None:
    """Merge a plan, and die at one of :data:`STEPS`."""

    def killed(*_: object, **__: object) -> None:
        raise MergeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(STEPS[where], where, killed)
        with pytest.raises(MergeError, match="killed"):
            lake.merge(plan)
