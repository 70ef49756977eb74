"""Translates errors of Iceberg, Spark and their storage into errors of this project."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from cdc_lib.apply.stored_files import LOST
from cdc_lib.errors import (
    CdcError,
    CorruptBatch,
    LakeRefused,
    MachineExhausted,
    MergeConflict,
    MergeError,
    StoreUnavailable,
    WrongClock,
)
from cdc_lib.lake.log_in import OVER

VALIDATIONS = (
    "Found conflicting files",
    "Found conflicting deleted files",
    "Found new conflicting delete files",
    "Found concurrently added DV",
    "Cannot commit, found new delete",
    "Cannot commit, found new position delete",
    "Cannot commit, missing data files",
    "Cannot determine history between starting snapshot",
    "Missing required files to delete",
    "is not an ancestor of",
    "Cannot use branch (does not exist)",
)
"""Texts of Iceberg's ValidationException about what another job did. With another text, a retry would meet the same error."""

CONFLICTS = (
    "CommitFailedException",
    "CommitStateUnknownException",
    *VALIDATIONS,
    "AlreadyExistsException",
    "TABLE_OR_VIEW_ALREADY_EXISTS",
    "FIELD_ALREADY_EXISTS",
    "SQLITE_CONSTRAINT",
    "Cannot fast-forward",
    "SQLITE_BUSY",
    "database is locked",
    "Error while running command to get file permissions",
)
"""Names and words of a commit that conflicts with another one, or of a file that another job removed while it was listed."""

LATE = ("Invalid update timestamp",)
"""Words of a commit that is a minute older than the one before, by the clock of this machine."""

NO_KEYS = (
    "Unable to load credentials",
    "NoAuthWithAWSException",
    "NoAwsCredentialsException",
    "NoCredentialsException",
    "Error getting access token from metadata server",  # Google's connector
    "AzureADAuthenticator",  # Hadoop's client of Azure, without a token
)
"""Names and words of a process, perhaps on another machine, without keys for the storage."""

NO_REGION = ("Unable to load region",)
"""Words of a client of S3 without a region."""

NO_RIGHTS = ("SQLITE_READONLY", "SQLITE_CANTOPEN", "readonly database", "unable to open database file")
"""Names and words of a catalog file that cannot be opened or written."""

UNAVAILABLE = (
    "SdkClientException",
    "ApiCallTimeoutException",
    "ServiceUnavailableException",
    "ServiceFailureException",
    "ConnectException",
    "SocketTimeoutException",
    "UncheckedSQLException",
    "Communications link failure",
    '", 503, ',  # Hadoop's client of Azure
)
"""Names and words of a storage or catalog that does not answer."""

FULL = ("No space left on device", "Disk quota exceeded")
"""Words of a machine without room on a disk."""

EXHAUSTED = (
    "OutOfMemoryError",
    "Too many open files",
    "SparkContext was shut down",
    "stopped SparkContext",
    "ExecutorLostFailure",
    "Answer from Java side is empty",
)
"""Names and words of a machine without room in its memory, and of a Spark that has ended."""

NO_PERMISSION = (
    "Permission denied",
    "AccessDenied",
    "AccessControlException",
    "ForbiddenException",
    "NotAuthorizedException",
)
"""Names of a storage or a catalog that refuses the job."""

MISSING = (
    "FAILED_READ_FILE",
    "PATH_NOT_FOUND",
    "FileNotFoundException",
    "Location does not exist",
    "is not a Parquet file",
    "java.io.EOFException",
    "Status Code: 416",  # S3 has fewer bytes of the file
)
"""Names and words of a data file that cannot be read."""


@dataclass(frozen=True, slots=True)
class _Failure:
    """What a failure is.

    Args:
        words: one of them is in its text.
        error: its class.
        hint: what to do.
        what: what came in between, in front of the text.
    """

    words: tuple[str, ...]
    error: type[CdcError]
    hint: str
    what: str = ""


_FAILURES = (
    _Failure(
        CONFLICTS, MergeConflict, "Nothing was changed; the merge can be run again.", "another commit came first: "
    ),
    _Failure(
        LATE,
        WrongClock,
        "Set this machine's clock, or wait until the time of the last commit is over.",
        "this machine's clock is before the last commit: ",
    ),
    _Failure(
        NO_KEYS,
        StoreUnavailable,
        "Name the keys in the source file (store.access_key_env and store.secret_key_env, store.service_account_env or "
        "store.azure_secret_env), or give each machine of Spark a role that may use the store.",
        "no keys for the storage: ",
    ),
    _Failure(
        OVER,
        StoreUnavailable,
        "It is retried: a role gives each attempt a new token. A token that was set by hand (AWS_SESSION_TOKEN, lake.properties) "
        "must be replaced; restart a Spark server with it.",
        "the session token is over: ",
    ),
    _Failure(
        NO_REGION,
        LakeRefused,
        "Name it in the source file: store.region, or client.region in lake.properties.",
        "no region for S3: ",
    ),
    _Failure(
        NO_PERMISSION,
        LakeRefused,
        "Give the job's user the right to read and write the lake's tables in the storage and the catalog.",
        "no permission: ",
    ),
    _Failure(
        NO_RIGHTS,
        LakeRefused,
        "Give the file in lake.uri and its folder to the user of the job (chown), with the right to write.",
        "the catalog's file cannot be opened: ",
    ),
    _Failure(
        UNAVAILABLE,
        StoreUnavailable,
        "It is retried. Check that the lake's catalog (lake.uri) and its storage (lake.warehouse) run, and that this machine reaches them: "
        "cdc doctor tries both.",
        "no answer: ",
    ),
    _Failure(
        FULL,
        MachineExhausted,
        "A disk is full. Here: {disks}. Remove other files there, or enlarge it; then run it again. cdc batches gc {source} --yes removes "
        "batches that all have read.",
    ),
    _Failure(
        EXHAUSTED,
        MachineExhausted,
        "Look at the memory of Spark's machines and at merge.driver_memory, then run it again.",
    ),
    _Failure(MISSING, CorruptBatch, LOST),
)
"""The first one that fits counts."""

NO_TABLE = ("NoSuchTableException", "TABLE_OR_VIEW_NOT_FOUND", "NoSuchNamespaceException", "SCHEMA_NOT_FOUND")
"""Names and words of a missing table."""


@contextmanager
def translate_errors(action: str, table: str | None = None, **place: str) -> Iterator[None]:
    """Translate errors of Java, and of files of this machine, in the block into the error tree.

    Args:
        action: what could not be done.
        table: of the source, or some of them.
        **place: where it was instead, such as ``catalog="lake"`` or ``lake_table="lake.shop.orders"``.
    """
    if table is not None:
        place["table"] = table
    try:
        yield
    except CdcError as error:
        if table is not None:
            error.fill(table=table, tables=table.replace(", ", " "))
        raise
    except (Py4JError, PySparkException, OSError) as error:
        raise fault_of(error, action, place) from error


def fault_of(error: Exception, action: str, place: Mapping[str, str]) -> CdcError:
    """Return the error for a failure of Spark, in the context of a place."""
    text = said(error)
    for failure in _FAILURES:
        if any(word in text for word in failure.words):
            tables = place.get("table", "{tables}").replace(", ", " ")
            return failure.error(
                f"could not {action}: {failure.what}{_short(text)}",
                hint=failure.hint.replace("{tables}", tables),
                **place,
            )
    return MergeError(f"could not {action}: {_short(text)}", **place)


def is_missing(error: Exception) -> bool:
    """Whether an error says that a table or namespace does not exist."""
    return any(word in said(error) for word in NO_TABLE)


def is_lost(error: Exception) -> bool:
    """Whether an error says that a file does not exist or is too short."""
    return isinstance(fault_of(error, "", {}), CorruptBatch)


def lacks_metadata(error: Exception) -> bool:
    """Whether a file of a table's metadata is missing."""
    text = said(error)
    return "NotFoundException" in text and "/metadata/" in text


def is_overtaken(error: Exception) -> bool:
    """Whether a commit certainly failed because the table's metadata changed since it was read."""
    text = said(error)
    return "CommitFailedException" in text and "CommitStateUnknownException" not in text


def said(error: Exception) -> str:
    """Return the text of a Spark error, with the names of the Java exceptions that caused it."""
    if not isinstance(error, Py4JJavaError):
        cause = getattr(error, "_cause", None)
        return f"{error}\n{cause}" if cause is not None else str(error)
    texts: list[str] = []
    java = error.java_exception
    while java is not None and len(texts) < 10:  # a chain of causes may be cyclic
        texts.append(str(java.toString()))
        java = java.getCause()
    return "\n".join(texts)


def _short(text: str) -> str:
    return " / ".join(line.strip() for line in text.splitlines() if line.strip())[:600]
