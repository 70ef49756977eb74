"""Translates error responses of Azure Blob Storage into this project's errors."""

from __future__ import annotations

from cdc_lib.errors import ConfigError, StoreError, StoreUnavailable

LOGIN = (
    "Check the secret in azure_secret_env or connection; without one, the identity of this process: a managed or workload "
    "identity, AZURE_CLIENT_ID, AZURE_TENANT_ID and AZURE_CLIENT_SECRET, or az login."
)

_RIGHTS = (
    "Give the identity the role Storage Blob Data Contributor on the container, or the SAS token the permissions rwdlac; "
    "let the account's firewall admit this machine."
)
_OF_MOMENT = frozenset({"ContainerBeingDeleted", "AccountBeingCreated", "ServerBusy", "OperationTimedOut"})
_NEVER = frozenset({501, 505})
_NO_LOGIN = frozenset({"AuthenticationFailed", "InvalidAuthenticationInfo", "NoAuthenticationInformation"})
_NOT_THERE = frozenset({"ContainerNotFound", "ResourceNotFound", "AccountIsDisabled", "InvalidResourceName"})


def fault_of(status: int, code: str, answer: str, *, action: str, **context: str | None) -> StoreError | ConfigError:
    """Return the error to raise for an error response.

    Args:
        status: the HTTP status.
        code: Azure's error code; may be empty.
        answer: message of the server.
        action: the failed operation, for example ``read an object``.
        **context: where the error happened.
    """
    first, *_ = answer.strip().splitlines() or [""]
    said = f"{status} {code}".rstrip()
    message = f"could not {action}: Azure Blob Storage answered {said}: {first.rstrip('.')}"
    if (status >= 500 and status not in _NEVER) or status in {408, 429} or code in _OF_MOMENT:
        return StoreUnavailable(message, hint="It is retried.", **context)
    if status == 401 or code in _NO_LOGIN:
        return ConfigError(message, hint=LOGIN, **context)
    if status == 403:
        return ConfigError(message, hint=_RIGHTS, **context)
    if code in _NOT_THERE:
        return ConfigError(message, hint="Create the container, or correct store.url.", **context)
    return StoreError(message, hint="Check store.url and store.endpoint_url.", **context)
