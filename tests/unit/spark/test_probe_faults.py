"""What a failure of Spark means, from Java's text."""

from __future__ import annotations

import pytest

from spark_jobs.probing.faults import CAUSES, fault
from spark_jobs.probing.limits import CATALOG, START, hurried
from tests.harness.lake.running import lake_config

LOST = (
    "org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 0.0 failed 4 times, most recent failure: "
    "Lost task 0.3 in stage 0.0 (TID 3) (10.0.0.5 executor 1): "
)


@pytest.mark.parametrize(
    ("text", "what", "hint"),
    [
        ("javax.net.ssl.SSLHandshakeException: PKIX path building failed", "certificate of the server is not trusted", "store.ca"),
        ("software.amazon.awssdk.core.exception.SdkClientException: Unable to load credentials from any of the providers", "no keys for the storage", "store.access_key_env"),
        ("java.io.IOException: Error getting access token from metadata server at: 'http://metadata/token'. cause='...'", "no keys for the storage", "store.service_account_env"),
        ("org.apache.hadoop.fs.azurebfs.oauth2.AzureADAuthenticator$HttpException: HTTP Error -1; url='http://169.254.169.254/token'", "no keys for the storage", "store.azure_secret_env"),
        ('java.nio.file.AccessDeniedException: Operation failed: "Server failed to authenticate the request.", 403, HEAD', "Azure refuses the secret", "store.azure_secret_env"),
        ("SdkClientException: Unable to load region from any of the providers in the chain", "no region for S3", "client.region"),
        ("S3Exception: The AWS Access Key Id you provided does not exist (InvalidAccessKeyId)", "does not accept the key", "lake.properties"),
        ("NoSuchBucketException: The specified bucket does not exist (Service: S3, Status Code: 404)", "no such bucket", "lake.warehouse"),
        ("S3Exception: Access Denied (Service: S3, Status Code: 403)", "lacks a right", "s3:GetObject"),
        ('FATAL: password authentication failed for user "lake"', "refuses the log-in", "lake.uri"),
        ("java.lang.ClassNotFoundException: org.apache.hadoop.fs.s3a.S3AFileSystem", "a jar is missing (java.lang.ClassNotFoundException: org.apache.hadoop.fs.s3a", "spark.jars"),
        ("java.io.InvalidClassException: org.apache.spark.rdd.RDD; local class incompatible", "different versions", "pyspark"),
        ("Connect to s3.internal:9000 failed: java.net.ConnectException: Connection refused", "cannot be reached", "open the network"),
        ("java.io.FileNotFoundException: File file:/data/x.parquet does not exist", "not there", "share"),
    ],
)  # fmt: skip
def test_a_failure_names_who_lacks_what(text: str, what: str, hint: str) -> None:
    """In one line, with what to do."""
    error = fault("read the store s3://b/cdc", LOST + text)
    assert error.message.startswith("the executor on 10.0.0.5 could not read the store s3://b/cdc: ")
    assert what in error.message
    assert hint in error.hint
    assert "\n" not in error.message


def test_a_failure_before_any_task_is_one_of_the_driver() -> None:
    """Also that of a task in the driver's own process."""
    for text in ("java.net.ConnectException: refused", LOST.replace("10.0.0.5 executor 1", "host executor driver")):
        assert fault("open the catalog", text).message.startswith("the driver could not open the catalog: ")


def test_an_unknown_failure_shows_javas_innermost_line() -> None:
    """Without the lines of a stack trace, and not longer than a line."""
    text = f"{LOST}java.lang.RuntimeException: outer\n\tat a.B.c(D.java:1)\nCaused by: java.lang.Error: {'x' * 500}\n\t... 3 more"
    message = fault("write", text).message
    assert "could not write: java.lang.Error: xxx" in message
    assert len(message) < 300


def test_every_cause_has_words_and_a_hint() -> None:
    assert all(cause.words and cause.what and cause.hint for cause in CAUSES)


def test_limits_leave_what_the_source_file_sets(tmp_path) -> None:
    """A server's start is not changed: its tasks keep their attempts."""
    config = lake_config(tmp_path, merge={"conf": {"spark.task.maxFailures": "3"}})
    hasty = hurried(config)
    assert hasty.merge.conf == {**START, "spark.task.maxFailures": "3"}
    assert hasty.lake.properties == CATALOG
    server = lake_config(tmp_path, merge={"spark_server": {"url": "http://h:1"}})
    assert hurried(server).merge.conf == {}
