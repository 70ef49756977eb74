from __future__ import annotations

import pytest
from pyspark.errors import AnalysisException

from cdc_lib.errors import (
    CdcError,
    CorruptBatch,
    LakeRefused,
    MachineExhausted,
    MergeConflict,
    MergeError,
    StoreUnavailable,
)
from spark_jobs.errors import fault_of, translate_errors
from spark_jobs.runtime.parallel_tables import all_failures


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("org.apache.iceberg.exceptions.CommitFailedException: metadata location has changed", MergeConflict),
        ("java.lang.IllegalArgumentException: Cannot fast-forward: main is not an ancestor of cdc_1", MergeConflict),
        (
            "o.a.i.exceptions.ValidationException: Found conflicting files that can contain records matching true",
            MergeConflict,
        ),
        ("o.a.i.exceptions.ValidationException: Cannot commit, missing data files: [a.parquet]", MergeConflict),
        ("o.a.i.exceptions.ValidationException: No results for rewrite of file set 1 in table t", MergeError),
        ("[SQLITE_BUSY] The database file is locked", MergeConflict),
        ("software.amazon.awssdk.core.exception.SdkClientException: Unable to execute HTTP request", StoreUnavailable),
        ("[SQLITE_CANTOPEN] Unable to open the database file (unable to open database file)", LakeRefused),
        ("UncheckedSQLException: [SQLITE_READONLY] Attempt to write a readonly database", LakeRefused),
        ("java.io.IOException: No space left on device", MachineExhausted),
        ("AccessDeniedException: s3a://lake/shop: Access Denied", LakeRefused),
        ("[FAILED_READ_FILE.NO_HINT] Encountered error while reading file", CorruptBatch),
        ("java.io.EOFException: Cannot seek after EOF", CorruptBatch),
        ("S3Exception: The requested range is not satisfiable (Service: S3, Status Code: 416)", CorruptBatch),
        ("[Errno 28] No space left on device", MachineExhausted),
        ("[Errno 13] Permission denied: '/lake/t/data/a.parquet'", LakeRefused),
        ("S3Exception: The provided token has expired. (Service: S3, Status Code: 400)", StoreUnavailable),
        ("[FAILED_READ_FILE.NO_HINT] Encountered error: AWS Error Code: ExpiredToken", StoreUnavailable),
        ("[CAST_OVERFLOW] The value cannot be cast", MergeError),
    ],
)
def test_java_errors_are_translated_to_the_error_tree(text, kind):
    """The type decides whether a task is retried."""
    error = fault_of(AnalysisException(text), "merge", {"table": "shop.orders"})
    assert type(error) is kind
    assert error.context["table"] == "shop.orders"


@pytest.mark.parametrize(("missing", "hint"), [("credentials", "store.access_key_env"), ("region", "store.region")])
def test_missing_settings_of_executors_have_a_hint(missing, hint):
    """A retry does not help."""
    text = f"SdkClientException: Unable to load {missing} from any of the providers in the chain"
    assert hint in fault_of(AnalysisException(text), "merge", {"table": "shop.orders"}).hint


def test_a_lost_file_of_a_batch_is_written_again_by_the_command_of_the_hint():
    """The way out of *Missing batches*, with the name of the source."""
    error = fault_of(
        AnalysisException("[FAILED_READ_FILE.NO_HINT] Encountered error while reading file"), "merge", {"table": "a.b"}
    )
    error.fill(source="shop")
    assert error.hint.startswith("cdc batches refill shop ")


def test_a_full_disk_is_named_by_the_folders_of_the_job():
    """With what is free there."""
    error = fault_of(AnalysisException("java.io.IOException: No space left on device"), "merge", {"table": "a.b"})
    error.fill(source="shop", disks="/lake (0 bytes free)")
    assert error.hint.startswith("A disk is full. Here: /lake (0 bytes free). ")
    assert "cdc batches gc shop --yes" in error.hint


def test_failures_of_several_tables_are_retryable_only_if_all_are():
    """One permanent failure is enough to stop."""
    conflict, stuck = MergeConflict("first"), MergeError("second")
    assert all_failures({"a": conflict, "b": MergeConflict("x")}, 3, "merged", "wait").retryable
    assert not all_failures({"a": conflict, "b": stuck}, 3, "merged", "wait").retryable
    assert all_failures({"a": stuck}, 3, "merged", "wait") is stuck


@pytest.mark.parametrize(
    "place", [{"catalog": "lake"}, {"lake_table": "lake.shop.orders"}, {"namespace": "`lake`.`shop`"}]
)
@pytest.mark.parametrize(
    "text", ["Unable to execute HTTP request", "Unable to load region", "No space left on device", "no word of it"]
)
def test_an_error_outside_of_a_source_table_names_no_table(place, text):
    """A catalog named ``lake`` was shown as a table of this name."""
    with pytest.raises(CdcError) as caught, translate_errors("open the lake's catalog", **place):
        raise AnalysisException(text)
    assert caught.value.context == place


def test_a_hint_about_tables_names_those_of_the_source():
    """Or shows that some are to be named: the name of a lake table is none."""
    text = "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file"
    for place, named in (({"table": "a.b, a.c"}, "a.b a.c"), ({"lake_table": "lake.a.b"}, "TABLES")):
        error = fault_of(AnalysisException(text), "merge", place)
        error.fill(source="shop")
        assert f"cdc snapshot shop {named}" in error.hint
        assert "lake.a.b" not in error.hint
