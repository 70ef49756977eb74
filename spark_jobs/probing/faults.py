"""What a failure of Spark means for the one who set it up: who failed, and which key, endpoint, certificate, right or jar is missing."""

from __future__ import annotations

import re
from dataclasses import dataclass

from cdc_lib.errors import MergeError
from cdc_lib.lake.log_in import OVER
from spark_jobs.errors import NO_KEYS, NO_REGION


@dataclass(frozen=True, slots=True)
class Cause:
    """A kind of failure.

    Args:
        words: words of Java's text, one of which it has.
        what: what is missing.
        hint: what to do.
    """

    words: tuple[str, ...]
    what: str
    hint: str


CAUSES = (
    Cause(
        (
            "PKIX path building failed",
            "unable to find valid certification path",
            "trustAnchors",
            "SSLHandshakeException",
        ),
        "the certificate of the server is not trusted there",
        "Name the file of its authority in store.ca; start a Spark server with it: cdc spark serve --ca FILE.",
    ),
    Cause(
        NO_KEYS,
        "there are no keys for the storage",
        "Name them in the source file (store.access_key_env and store.secret_key_env, store.service_account_env or "
        "store.azure_secret_env), or give each machine of Spark a role that may use the store.",
    ),
    Cause(
        NO_REGION,
        "there is no region for S3",
        "Name it in the source file: store.region, or client.region in lake.properties.",
    ),
    Cause(
        OVER,
        "the session token is over",
        "Give the machines of Spark a role, or new keys; restart a Spark server with them.",
    ),
    Cause(
        (
            "InvalidAccessKeyId",
            "Access Key Id you provided does not exist",
            "No user exists with the provided access key",
            "SignatureDoesNotMatch",
            "request signature we calculated does not match",
            "InvalidToken",
        ),
        "S3 does not accept the key",
        "Correct the keys that store.access_key_env and store.secret_key_env name, or those in lake.properties.",
    ),
    Cause(
        ("Server failed to authenticate the request", "This request is not authorized to perform this operation"),
        "Azure refuses the secret or the identity",
        "Correct the secret that store.azure_secret_env names, or give the identity the role Storage Blob Data Contributor.",
    ),
    Cause(
        ("NoSuchBucket", "UnknownStoreException", "specified bucket does not exist"),
        "there is no such bucket",
        "Create it, or correct store.url, lake.warehouse and the endpoint.",
    ),
    Cause(
        ("AccessDenied", "Access Denied", "Status Code: 403", "ForbiddenException"),
        "access is denied: the key is unknown, its secret is wrong, or it lacks a right",
        "Give the key s3:GetObject, PutObject, DeleteObject and ListBucket there.",
    ),
    Cause(
        ("NotAuthorizedException", "password authentication failed", "Access denied for user"),
        "the catalog refuses the log-in",
        "Correct the user and the password, or the token, in lake.uri or lake.properties.",
    ),
    Cause(
        ("ClassNotFoundException", "NoClassDefFoundError", "No suitable driver"),
        "a jar is missing",
        "Name it in merge.conf: {spark.jars: FILE}; on a Spark server, cdc spark serve --conf spark.jars=FILE.",
    ),
    Cause(
        ("InvalidClassException", "NoSuchMethodError", "NoSuchFieldError", "UnsupportedClassVersionError"),
        "the machines have different versions of Java, Spark or a jar",
        "Install the Spark of this package (pyspark) and its Java on all machines, and no other Iceberg there.",
    ),
    Cause(
        (
            "UnknownHostException",
            "ConnectException",
            "Connection refused",
            "NoRouteToHost",
            "Unable to execute HTTP request",
            "ConnectTimeoutException",
            "SocketTimeoutException",
            "ApiCallTimeoutException",
            "The connection attempt failed",
        ),
        "the server cannot be reached from there",
        "Correct the address in the source file (store.endpoint_url, lake.uri), or open the network between both machines.",
    ),
    Cause(
        ("FileNotFoundException", "Mkdirs failed", "Permission denied", "NoSuchFileException"),
        "the file or folder is not there, or not writable",
        "A folder must be one that all machines of Spark share, at the same path and for the same user; else use S3.",
    ),
)
"""Kinds of failures; the first one whose words a text has explains it."""

UNKNOWN = Cause((), "", "See Spark's own output, on a cluster that of the executor.")

_EXECUTOR = re.compile(r"\(TID \d+\) \((?P<host>\S+) executor (?P<id>[^)\s]+)\)")
_DRIVER = "driver"
_LONGEST = 200


def fault(doing: str, text: str) -> MergeError:
    """Return the error for a failure.

    Args:
        doing: what was tried: "read the store s3://bucket/cdc".
        text: the texts of the Java exceptions, each on a line of its own, the outermost first.
    """
    cause = cause_of(text) or UNKNOWN
    line = line_of(cause, text)
    what = f"{cause.what} ({line})" if cause.what else line
    return MergeError(f"{who(text)} could not {doing}: {what}", hint=cause.hint)


def cause_of(text: str) -> Cause | None:
    """Return the cause that a text shows; None if it shows none of them."""
    return next((one for one in CAUSES if any(word in text for word in one.words)), None)


def who(text: str) -> str:
    """Return who failed: the executor that a text of Spark names, else the driver."""
    found = _EXECUTOR.search(text)
    return "the driver" if found is None or found["id"] == _DRIVER else f"the executor on {found['host']}"


def line_of(cause: Cause, text: str) -> str:
    """Return the line that shows a cause, shortened; the last line of an unknown one, where Java's innermost exception is."""
    lines = [line.strip().removeprefix("Caused by: ") for line in text.splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith(("at ", "... "))] or [text.strip()]
    shown = [line for line in lines if any(word in line for word in cause.words)] or lines
    line = shown[-1]
    after_task = _EXECUTOR.search(line)
    line = line[after_task.end() :].lstrip(": ") if after_task is not None else line
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"
