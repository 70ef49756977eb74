"""Translates error responses of an S3 server into this project's errors."""

from __future__ import annotations

from cdc_lib.errors import ConfigError, StoreError, StoreUnavailable

CONFLICT = 409
NOT_FOUND = 404
PRECONDITION_FAILED = 412

_TRY_AGAIN = {
    "BandwidthLimitExceeded",
    "ConditionalRequestConflict",
    "InternalError",
    "OperationAborted",
    "PriorRequestNotComplete",
    "RequestLimitExceeded",
    "RequestThrottled",
    "RequestTimeout",
    "ServiceUnavailable",
    "SlowDown",
    "Throttling",
    "ThrottlingException",
    "TooManyRequestsException",
}

_OVER = {"ExpiredToken", "ExpiredTokenException", "RequestExpired", "TokenRefreshRequired"}
"""Codes of a session token that was valid: the next process may get a new one."""

_KEYS = "Check access_key_env and secret_key_env, or the AWS credentials of this process."

_HINTS = {
    "NoSuchBucket": "Create the bucket, or correct store.url.",
    "InvalidBucketName": "Correct store.url.",
    "InvalidAccessKeyId": _KEYS,
    "XAdminUserNotFound": _KEYS,  # versitygw's word for an access key that it does not know
    "SignatureDoesNotMatch": _KEYS,
    "AuthorizationHeaderMalformed": "Set store.region to the region of the bucket.",
    "IllegalLocationConstraintException": "Set store.region to the region of the bucket.",
    "PermanentRedirect": "Set store.region to the region of the bucket, or correct store.endpoint_url.",
    "InvalidToken": _KEYS,
    "RequestTimeTooSkewed": "Set this machine's clock right.",
    "NotImplemented": "The server lacks conditional writes or multipart uploads; take one that has them.",
    "MethodNotAllowed": "Something else than an S3 server may answer at store.endpoint_url.",
}
"""Codes that a retry does not fix, with hints."""


def fault_of(
    code: str, status: int, answer: str, *, action: str, **context: str | int | None
) -> StoreError | ConfigError:
    """Return the error to raise for an error response.

    Args:
        code: S3's code, for example ``NoSuchBucket``; for requests without a body the status as text.
        status: the HTTP status.
        answer: message of S3.
        action: the failed operation, for example ``read an object``.
        **context: where the error happened.
    """
    name = "" if code == str(status) else f" {code}"  # a response to HEAD has no body with a code
    message = f"could not {action}: the S3 server answered {status}{name}: {answer.rstrip('.')}"
    if (status >= 500 and code != "NotImplemented") or status in {408, 429} or code in _TRY_AGAIN:
        return StoreUnavailable(message, hint="It is retried.", **context)
    if code in _OVER:
        return StoreUnavailable(
            message,
            hint="It is retried: a role or a web identity gives each attempt a new token. If you set AWS_SESSION_TOKEN or the fields of a "
            "connection by hand, set new keys there.",
            **context,
        )
    if code in _HINTS:
        return ConfigError(message, hint=_HINTS[code], **context)
    if status in {401, 403}:
        return ConfigError(
            message,
            hint=f"{_KEYS} They need the rights to list the bucket and to get, put and delete objects.",
            **context,
        )
    if status in {301, 307, 308}:
        return ConfigError(message, hint=_HINTS["PermanentRedirect"], **context)
    return StoreError(message, hint="The server's log may say more.", **context)
