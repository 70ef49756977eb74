"""Objects in a container of Azure Blob Storage, with or without a hierarchical namespace (Data Lake Storage Gen2).

All requests are of the Blob API, which both kinds of accounts have. Conditions are ``If-None-Match: *`` and ``If-Match``.
Requests are sent again here and not by Azure's client, so that a conditional write whose response was lost is recognized by the
object that is stored.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from datetime import UTC
from typing import Any, BinaryIO

from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobBlock

from cdc_lib.errors import CorruptBatch
from cdc_lib.ports import ObjectInfo, StoredObject
from cdc_lib.store.objects.azure_client import CONNECTIONS, AzureContainer, code_of
from cdc_lib.store.objects.azure_options import AzureOptions
from cdc_lib.store.objects.cloud import CloudStore
from cdc_lib.store.objects.deletes import delete_each
from cdc_lib.store.objects.key_order import in_order_of_keys
from cdc_lib.store.objects.keys import check_key, check_prefix, hint_of_missing
from cdc_lib.store.objects.streams import read_by_ranges

_ABSENT = ("BlobNotFound", "ResourceNotFound")
_CONDITION_FALSE = ("BlobAlreadyExists", "ConditionNotMet", *_ABSENT)
"""Codes of a conditional write that was not done. Others have the same status 409 or 412: a lease, or a policy."""

_IF_FREE: dict[str, Any] = {"overwrite": False}


class AzureStore(CloudStore):
    """An object store in a container of Azure Blob Storage; safe to share between threads.

    Before its first conditional write a process tries the store with a few tiny objects, once (see :meth:`probe`).

    Args:
        container: name of the container, which must exist.
        host: host of the account, such as ``account.dfs.core.windows.net``.
        prefix: prefix of every key, without slashes at its ends; may be empty.
        options: connection options.
    """

    def __init__(self, container: str, host: str, prefix: str = "", options: AzureOptions | None = None) -> None:
        self.container = container
        self.host = host
        self.options = options or AzureOptions()
        super().__init__(f"abfss://{container}@{host}", prefix, self.options.endpoint_url, self.options.patience)
        self._azure = AzureContainer(container, host, f"{prefix}/" if prefix else "", self.options)

    def get(self, key: str) -> StoredObject | None:
        """Return a whole object, or None if it does not exist."""
        blob = self._azure.blob(key)

        def read() -> StoredObject | None:
            try:
                answer = blob.download_blob()
            except HttpResponseError as error:
                if code_of(error) in _ABSENT:
                    return None
                raise
            found = answer.properties
            return None if _is_folder(found.metadata) else StoredObject(answer.readall(), found.etag or "")

        return self._azure.do("read an object", key, read)

    def put(self, key: str, data: bytes) -> str:
        """Write or overwrite an object; returns its etag."""
        return self._azure.do("write an object", key, lambda: self._upload(key, data, {"overwrite": True}))

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """Write an object if the key is free; returns whether this call wrote it, also if the response was lost."""
        return self._put_if(key, data, _IF_FREE) is not None

    def put_if_match(self, key: str, data: bytes, etag: str) -> str | None:
        """Overwrite the object if it still has this etag; returns the new etag, else None."""
        unchanged = {"overwrite": True, "etag": etag, "match_condition": MatchConditions.IfNotModified}
        return self._put_if(key, data, unchanged)

    def open_read(self, key: str) -> BinaryIO:
        """Open an object for reading with seek; raises CorruptBatch if it does not exist.

        All ranges are of one version: an object that is replaced during the read raises CorruptBatch too.
        """
        blob = self._azure.blob(key)

        def ask() -> Any:
            try:
                return blob.get_blob_properties()
            except HttpResponseError as error:
                if code_of(error) in _ABSENT:
                    return None
                raise

        found = self._azure.do("read an object", key, ask)
        place = {"container": self.container, "account": self.host, "key": key}
        if found is None or _is_folder(found.metadata):
            raise CorruptBatch("there is no such object", hint=hint_of_missing(key), **place)

        def read(start: int, stop: int) -> bytes:
            try:
                part = blob.download_blob(
                    offset=start,
                    length=stop - start,
                    etag=found.etag,
                    match_condition=MatchConditions.IfNotModified,
                )
                return part.readall()
            except HttpResponseError as error:
                if code_of(error) not in _CONDITION_FALSE:
                    raise
                raise CorruptBatch(
                    "an object was replaced or removed while it was read", hint="Read it again.", **place
                ) from error

        def fetch(start: int, stop: int) -> bytes:
            return self._azure.do("read an object", key, lambda: read(start, stop))

        return read_by_ranges(int(found.size), fetch)

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """List every object whose key starts with the prefix, in the order of their keys."""
        return in_order_of_keys(self._listed(check_prefix(prefix)), prefix)

    def delete(self, keys: Iterable[str]) -> None:
        """Delete objects, some at the same time; a missing one is no error."""
        delete_each(keys, self._delete, CONNECTIONS // 2)

    def url(self, key: str) -> str:
        """Return the address by which Spark reads the object; Hadoop's name of a server without TLS is ``abfs``."""
        scheme = "abfs" if (self.options.endpoint_url or "").startswith("http:") else "abfss"
        return f"{scheme}://{self.container}@{self.host}/{self._azure.base}{check_key(key)}"

    def _upload(self, key: str, data: bytes, condition: dict[str, Any]) -> str:
        return str(self._azure.blob(key).upload_blob(data, length=len(data), **condition)["etag"])

    def _send_if(self, key: str, data: bytes, condition: dict[str, Any]) -> str | None:
        with self._azure.translate_errors("write an object", key):
            try:
                return self._upload(key, data, condition)
            except HttpResponseError as error:
                if code_of(error) in _CONDITION_FALSE:
                    return None
                raise

    def _upload_of(self, key: str) -> _AzureUpload:
        return _AzureUpload(self._azure, key)

    def _listed(self, prefix: str) -> Iterator[ObjectInfo]:
        base = self._azure.base
        # In an account with folders, only metadata tell a folder from an empty object.
        listing = self._azure.client.list_blobs(name_starts_with=base + prefix, include=["metadata"])
        pages = listing.by_page()
        while (page := self._azure.do("list objects", prefix, lambda: next(pages, None))) is not None:
            for found in page:
                key = found.name.removeprefix(base)
                if key and not key.endswith("/") and not _is_folder(found.metadata):
                    yield ObjectInfo(key, int(found.size), found.last_modified.astimezone(UTC))

    def _delete(self, key: str) -> None:
        def send() -> None:
            try:
                self._azure.blob(key).delete_blob(delete_snapshots="include")
            except HttpResponseError as error:
                if code_of(error) not in _ABSENT:
                    raise

        self._azure.do("delete an object", key, send)


class _AzureUpload:
    """The upload of one object: one request, or blocks from the first full part on, which a list of them makes an object."""

    def __init__(self, container: AzureContainer, key: str) -> None:
        self._azure = container
        self._key = key
        self._id = secrets.token_hex(8)
        """Two writers of one key do not take each other's blocks. All blocks of an object have ids of one length."""
        self._blocks: list[BlobBlock] = []

    def put_whole(self, data: bytes) -> None:
        """Write the object with one request."""
        blob = self._azure.blob(self._key)
        self._azure.do("write an object", self._key, lambda: blob.upload_blob(data, length=len(data), overwrite=True))

    def put_part(self, data: bytes) -> None:
        """Send the next block."""
        blob, block = self._azure.blob(self._key), f"{self._id}-{len(self._blocks):06}"
        self._azure.do("write a part of an object", self._key, lambda: blob.stage_block(block, data, length=len(data)))
        self._blocks.append(BlobBlock(block))

    def complete(self) -> None:
        """Make the blocks an object. The same list a second time makes the same object."""
        blob = self._azure.blob(self._key)
        self._azure.do("complete an object", self._key, lambda: blob.commit_block_list(self._blocks))

    def abort(self) -> None:
        """Do nothing: nobody sees blocks that no list names, and Azure removes them within a week."""


def _is_folder(metadata: dict[str, str] | None) -> bool:
    """Whether an object is a folder of an account with a hierarchical namespace."""
    return any(name.lower() == "hdi_isfolder" and value == "true" for name, value in (metadata or {}).items())
