"""Objects in a bucket of Google Cloud Storage.

The etag of an object is its generation, and the conditions are ``ifGenerationMatch``; 0 is that of an object that does not
exist. Conditional writes are sent again here and not by Google's client, so that a write whose response was lost is
recognized by the object that is stored.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC
from typing import Any, BinaryIO, cast

from google.api_core.exceptions import NotFound, PreconditionFailed

from cdc_lib.errors import ConfigError, CorruptBatch, StoreError
from cdc_lib.ports import ObjectInfo, StoredObject
from cdc_lib.store.objects.cloud import CloudStore
from cdc_lib.store.objects.deletes import delete_each
from cdc_lib.store.objects.gcs_client import CONNECTIONS, GoogleBucket
from cdc_lib.store.objects.gcs_options import GcsOptions
from cdc_lib.store.objects.keys import check_key, check_prefix, hint_of_missing
from cdc_lib.store.objects.streams import PART_BYTES, read_by_ranges

log = logging.getLogger(__name__)

_ABSENT = 0
"""Generation of an object that does not exist, in a condition."""


class GcsStore(CloudStore):
    """An object store in a bucket of Google Cloud Storage; safe to share between threads.

    Before its first conditional write a process tries the store with a few tiny objects, once (see :meth:`probe`).

    Args:
        bucket: name of the bucket, which must exist.
        prefix: prefix of every key, without slashes at its ends; may be empty.
        options: connection options.
    """

    def __init__(self, bucket: str, prefix: str = "", options: GcsOptions | None = None) -> None:
        self.bucket = bucket
        self.options = options or GcsOptions()
        super().__init__(f"gs://{bucket}", prefix, self.options.endpoint_url, self.options.patience)
        self._gcs = GoogleBucket(bucket, f"{prefix}/" if prefix else "", self.options)

    def get(self, key: str) -> StoredObject | None:
        """Return a whole object, or None if it does not exist."""
        blob: Any = None
        data: bytes | None = None
        with self._gcs.translate_errors("read an object", key), self._none_if_missing():
            blob = self._gcs.blob(key)
            data = blob.download_as_bytes(**self._gcs.again)
        return StoredObject(data, str(blob.generation)) if data is not None else None

    def put(self, key: str, data: bytes) -> str:
        """Write or overwrite an object; returns its etag."""
        with self._gcs.translate_errors("write an object", key):
            return self._gcs.upload(key, data, **self._gcs.again)

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """Write an object if the key is free; returns whether this call wrote it, also if the response was lost."""
        return self._put_if(key, data, _ABSENT) is not None

    def put_if_match(self, key: str, data: bytes, etag: str) -> str | None:
        """Overwrite the object if it still has this etag; returns the new etag, else None."""
        check_key(key)
        return self._put_if(key, data, int(etag)) if etag.isdecimal() and int(etag) != _ABSENT else None

    def open_read(self, key: str) -> BinaryIO:
        """Open an object for reading with seek; raises CorruptBatch if it does not exist.

        All ranges are of one generation: an object that is replaced during the read raises CorruptBatch too.
        """
        blob: Any = None
        with self._gcs.translate_errors("read an object", key), self._none_if_missing():
            blob = self._gcs.blob(key)
            blob.reload(**self._gcs.again)
        if blob is None or blob.generation is None:
            raise CorruptBatch("there is no such object", hint=hint_of_missing(key), bucket=self.bucket, key=key)
        generation = int(blob.generation)

        def fetch(start: int, stop: int) -> bytes:
            with self._gcs.translate_errors("read an object", key):
                try:
                    part = self._gcs.blob(key, generation).download_as_bytes(
                        start=start, end=stop - 1, **self._gcs.again
                    )
                except NotFound as error:
                    raise CorruptBatch(
                        "an object was replaced or removed while it was read",
                        hint="Read it again.",
                        bucket=self.bucket,
                        key=key,
                    ) from error
            return cast("bytes", part)

        return read_by_ranges(blob.size, fetch)

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """List every object whose key starts with the prefix, in the order of their keys."""
        base = self._gcs.base
        whole = base + check_prefix(prefix)
        with self._gcs.translate_errors("list objects", prefix):
            wanted = "items(name,size,updated),nextPageToken"
            for found in self._gcs.client.list_blobs(self.bucket, prefix=whole, fields=wanted, **self._gcs.again):
                key = found.name.removeprefix(base)
                if key and not key.endswith("/"):  # consoles create such objects to show empty folders
                    yield ObjectInfo(key, int(found.size), found.updated.astimezone(UTC))

    def delete(self, keys: Iterable[str]) -> None:
        """Delete objects, some at the same time; a missing one is no error."""
        delete_each(keys, self._delete, CONNECTIONS // 2)

    def url(self, key: str) -> str:
        """Return the address by which Spark reads the object."""
        return f"gs://{self.bucket}/{self._gcs.base}{check_key(key)}"

    @contextmanager
    def _none_if_missing(self) -> Iterator[None]:
        """End a block that finds no object; raise NotFound if there is no bucket."""
        try:
            yield
        except NotFound:
            self._gcs.refuse_missing_bucket()

    def _delete(self, key: str) -> None:
        with self._gcs.translate_errors("delete an object", key), self._none_if_missing():
            self._gcs.blob(key).delete(**self._gcs.again)

    def _send_if(self, key: str, data: bytes, condition: int) -> str | None:
        with self._gcs.translate_errors("write an object", key):
            try:
                return self._gcs.upload(key, data, if_generation_match=condition, **self._gcs.once)
            except PreconditionFailed:
                return None

    def _upload_of(self, key: str) -> _GcsUpload:
        return _GcsUpload(self._gcs, key)


class _GcsUpload:
    """The upload of one object: one request, or a resumable upload from the first full part on."""

    def __init__(self, bucket: GoogleBucket, key: str) -> None:
        self._gcs = bucket
        self._key = key
        self._writer: Any = None

    def put_whole(self, data: bytes) -> None:
        """Write the object with one request."""
        with self._gcs.translate_errors("write an object", self._key):
            self._gcs.upload(self._key, data, **self._gcs.again)

    def put_part(self, data: bytes) -> None:
        """Send the next part; the first one begins the upload."""
        with self._gcs.translate_errors("write a part of an object", self._key):
            if self._writer is None:
                self._writer = self._gcs.blob(self._key).open(
                    "wb",
                    chunk_size=PART_BYTES,
                    content_type="application/octet-stream",
                    checksum="crc32c",
                    **self._gcs.again,
                )
            self._writer.write(data)

    def complete(self) -> None:
        """Send what is left and complete the upload."""
        with self._gcs.translate_errors("complete an object", self._key):
            self._writer.close()

    def abort(self) -> None:
        """Cancel the upload. A failure is only logged, so that it does not hide the original error."""
        if self._writer is None:
            return
        try:
            with self._gcs.translate_errors("cancel an upload", self._key):
                self._writer.terminate()
        except (StoreError, ConfigError) as error:
            log.warning("an upload of %s stays until Google removes it, within a week: %s", self._key, error)
