"""Checks the store: a test object is written, replaced, read and deleted."""

from __future__ import annotations

from collections.abc import Iterator

from cdc_lib.config import StoreConfig
from cdc_lib.errors import CdcError, StoreUnavailable
from cdc_lib.model.finding import Finding
from cdc_lib.ports import ObjectStore
from cdc_lib.store.objects.probe import refuse_broken_conditions


def check_store(config: StoreConfig, store: ObjectStore) -> Iterator[Finding]:
    """Yield a finding about the store."""
    try:
        refuse_broken_conditions(store, config.url)
    except StoreUnavailable as error:
        raise StoreUnavailable(f"the store {config.url} cannot be used: {error.message}", hint=error.hint) from error
    except CdcError as error:
        yield Finding("error", f"the store {config.url} cannot be used: {error.message}", _way(config, error))
        return
    yield Finding("ok", f"the store {config.url} takes and gives back what is written")


def _way(config: StoreConfig, error: CdcError) -> str:
    if config.scheme == "file":
        folder = config.folder
        return error.hint or f'mkdir -p "{folder}" && chown "$(id -un)" "{folder}"'
    if config.scheme == "gs":
        return error.hint or "Give the service account the role Storage Object User on the bucket."
    if config.scheme == "abfss":
        return error.hint or "Give the identity the role Storage Blob Data Contributor on the container."
    return error.hint or "Give the key s3:GetObject, PutObject, DeleteObject and ListBucket there."
