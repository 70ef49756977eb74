"""A job proves that commits of the Iceberg that is there do what merges rely on, before it changes a table."""

from __future__ import annotations

import pyspark
import pytest

from cdc_lib.errors import ConfigError
from spark_jobs.iceberg.proof import PROVED, prove_commits
from spark_jobs.iceberg.row_delta import RowCommit
from spark_jobs.runtime.java_classes import java_classes
from tests.harness.lake.batches import BIGINT, Row, table

BEGUN = RowCommit.begun


@pytest.fixture
def unproved(lake):
    """The running Spark, in which nothing is proved yet."""
    java_classes(lake.spark).static("java.lang.System", "clearProperty")(PROVED)
    return lake.spark


def test_this_spark_commits_merges_and_is_asked_once(unproved, monkeypatch):
    assert unproved.version == pyspark.__version__
    prove_commits(unproved)
    monkeypatch.setattr(RowCommit, "begun", None)
    prove_commits(unproved)


def without_properties(commit, java, expected):
    """Commit as a Spark that ignores what a snapshot is to say of itself."""
    object.__setattr__(commit, "properties", lambda _: {})
    return BEGUN(commit, java, expected)


def without_vectors(commit, java, expected):
    """Commit as an Iceberg that leaves deletion vectors out."""
    commit.done.deletes.clear()
    return BEGUN(commit, java, expected)


def rebased(commit, java, expected):
    """Commit rows on what another commit left."""
    change = java.newTransaction()
    delta = change.newRowDelta()
    for file in commit.done.data.values():
        delta = delta.addRows(file)
    for file in commit.done.deletes.values():
        delta = delta.addDeletes(file)
    for name, text in commit.properties(expected).items():
        delta = delta.set(name, text)
    delta.commit()
    return change


def without_a_method(commit, java, expected):
    """Commit by a method that this Iceberg does not have."""
    return java.newTransaction().newRowDeltaOfAnotherVersion()


@pytest.mark.parametrize(
    ("begun", "why"),
    [
        (without_properties, "a commit is not shown, or without its property"),
        (without_vectors, "rows: 2 by the merge, 3 in the snapshot"),
        (rebased, "a commit that came too late is not refused"),
        (without_a_method, "newRowDeltaOfAnotherVersion"),
    ],
)
def test_a_merge_on_an_iceberg_that_commits_otherwise_is_refused_and_changes_nothing(
    lake, unproved, monkeypatch, begun, why
):
    orders = table(f"{lake.database}.orders", {"id": BIGINT})
    plan = lake.batches.plan(100, lake.batches.window(4, 100, {orders: [Row("c", 10, {"id": 1})]}))
    with monkeypatch.context() as patch:
        patch.setattr(RowCommit, "begun", begun)
        with pytest.raises(ConfigError, match=f"cannot commit merges: .*{why}"):
            lake.merge(plan)
    assert not lake.cuts
    assert lake.target(orders.name).load() is None
    lake.merge(plan)
    assert lake.rows(orders.name, "id") == [(1,)]
