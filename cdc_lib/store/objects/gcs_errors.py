"""Translates error responses of Google Cloud Storage into this project's errors."""

from __future__ import annotations

from cdc_lib.errors import ConfigError, StoreError, StoreUnavailable

_RIGHTS = (
    "Give the service account the role Storage Object User (roles/storage.objectUser) on the bucket: it gets, creates, "
    "deletes and lists objects."
)
KEYS = "Check the key in service_account_env or connection, or the application default credentials of this process."


def fault_of(status: int, answer: str, *, action: str, **context: str | None) -> StoreError | ConfigError:
    """Return the error to raise for an error response.

    Args:
        status: the HTTP status.
        answer: message of the server.
        action: the failed operation, for example ``read an object``.
        **context: where the error happened.
    """
    message = f"could not {action}: Google Cloud Storage answered {status}: {answer.rstrip('.')}"
    if status >= 500 or status in {408, 429}:
        return StoreUnavailable(message, hint="It is retried.", **context)
    if status == 401:
        return ConfigError(message, hint=KEYS, **context)
    if status == 403:
        return ConfigError(message, hint=_RIGHTS, **context)
    if status == 404:
        return ConfigError(message, hint="Create the bucket, or correct store.url.", **context)
    return StoreError(message, hint="Check store.url and store.endpoint_url.", **context)
