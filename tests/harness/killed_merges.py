"""Merges that die at one of their steps."""

from __future__ import annotations

import pytest

from cdc_lib.errors import MergeError
from cdc_lib.model.merge_plan import MergePlan
from spark_jobs.iceberg import lake_table
from tests.harness.lake import Lake


def merge_killed_at(monkeypatch: pytest.MonkeyPatch, where: str, lake: Lake, plan: MergePlan) -> None:
    """Merge a plan, and die at ``publish`` or at a method of the lake table."""

    def killed(*_: object, **__: object) -> None:
        raise MergeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(lake_table if where == "publish" else lake_table.IcebergTable, where, killed)
        with pytest.raises(MergeError, match="killed"):
            lake.merge(plan)
