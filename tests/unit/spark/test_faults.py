from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException

from cdc_lib.errors import CorruptBatch, MergeConflict, MergeError, StoreUnavailable
from spark_jobs.side_by_side import all_failures
from spark_jobs.tables.faults import fault_of


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("org.apache.iceberg.exceptions.CommitFailedException: metadata location has changed", MergeConflict),
        ("java.lang.IllegalArgumentException: Cannot fast-forward: main is not an ancestor of cdc_1", MergeConflict),
        ("[SQLITE_BUSY] The database file is locked", MergeConflict),
        ("software.amazon.awssdk.core.exception.SdkClientException: Unable to execute HTTP request", StoreUnavailable),
        ("[FAILED_READ_FILE.NO_HINT] Encountered error while reading file", CorruptBatch),
        ("[CAST_OVERFLOW] The value cannot be cast", MergeError),
    ],
)
def test_what_java_says_becomes_an_error_of_the_tree(text, kind):
    """Whether a task is tried again hangs on it."""
    error = fault_of(AnalysisException(text), "merge", "shop.orders")
    assert type(error) is kind
    assert error.context["table"] == "shop.orders"


def test_failures_of_several_tables_are_tried_again_only_when_each_may_be():
    """One table that needs a hand is enough to call for it."""
    conflict, stuck = MergeConflict("first"), MergeError("second")
    assert all_failures({"a": conflict, "b": MergeConflict("x")}, 3, "merged", "wait").retryable
    assert not all_failures({"a": conflict, "b": stuck}, 3, "merged", "wait").retryable
    assert all_failures({"a": stuck}, 3, "merged", "wait") is stuck
