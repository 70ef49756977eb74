"""Objects in an S3 bucket: Amazon's, or any S3 server with conditional writes.

The only file that imports boto3. Retries are botocore's, bounded. A write whose response was lost is recognized by the
object that is stored.
"""

from __future__ import annotations

import hashlib
import logging
import re
import ssl
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, BinaryIO, TypedDict, cast

import boto3.session
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    HTTPClientError,
    IncompleteReadError,
    MetadataRetrievalError,
    SSLError,
)
from botocore.exceptions import ConnectionError as BotoConnectionError
from tenacity import retry, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from cdc_lib.errors import ConfigError, CorruptBatch, StoreError, StoreUnavailable
from cdc_lib.ports import ObjectInfo, StoredObject, Unfinished
from cdc_lib.store.objects.cloud import CloudStore
from cdc_lib.store.objects.keys import check_key, check_prefix, hint_of_missing, unreached
from cdc_lib.store.objects.own_write import etag_of_own_write
from cdc_lib.store.objects.s3_errors import CONFLICT, NOT_FOUND, PRECONDITION_FAILED, fault_of
from cdc_lib.store.objects.s3_options import S3Options
from cdc_lib.store.objects.streams import read_by_ranges

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

log = logging.getLogger(__name__)

_KEYS_OF_ONE_DELETE = 1000
_NOT_TRUSTED = re.compile(r"CERTIFICATE_VERIFY_FAILED\]\s*(.*)|(hostname '.*' doesn't match .*)", re.DOTALL)
"""What OpenSSL and urllib3 say of a certificate that is not accepted; botocore passes it on as a text."""
_UNREACHED = (BotoConnectionError, HTTPClientError, IncompleteReadError, MetadataRetrievalError)


class _Named(TypedDict):
    Bucket: str
    Key: str


class S3Store(CloudStore):
    """An object store in a bucket; safe to share between threads.

    Before its first conditional write a process tries the store with a few tiny objects, once (see :meth:`probe`).

    Args:
        bucket: name of the bucket, which must exist.
        prefix: prefix of every key, without slashes at its ends; may be empty.
        options: connection options.
    """

    def __init__(self, bucket: str, prefix: str = "", options: S3Options | None = None) -> None:
        self.bucket = bucket
        self.options = options or S3Options()
        super().__init__(
            f"s3://{bucket}", prefix, self.options.endpoint_url, patience=0
        )  # its client sends again itself
        self._s3 = _Bucket(bucket, f"{prefix}/" if prefix else "", self.options)

    def get(self, key: str) -> StoredObject | None:
        """Return a whole object, or None if it does not exist."""
        with self._s3.translate_errors("read an object", key):
            try:
                return self._s3.read(key)
            except ClientError as error:
                if _code(error) == "NoSuchKey":
                    return None
                raise

    def put(self, key: str, data: bytes) -> str:
        """Write or overwrite an object; returns its etag."""
        with self._s3.translate_errors("write an object", key):
            return self._s3.client.put_object(**self._s3.named(key), Body=data)["ETag"]

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """Write an object if the key is free; returns whether this call wrote it, also if the response was lost."""
        return self._put_if(key, data, {"IfNoneMatch": "*"}) is not None

    def put_if_match(self, key: str, data: bytes, etag: str) -> str | None:
        """Overwrite the object if it still has this etag; returns the new etag, else None."""
        return self._put_if(key, data, {"IfMatch": etag})

    def open_read(self, key: str) -> BinaryIO:
        """Open an object for reading with seek; raises CorruptBatch if it does not exist.

        All ranges are of one version: an object that is replaced during the read raises CorruptBatch too.
        """
        with self._s3.translate_errors("read an object", key):
            try:
                head = self._s3.client.head_object(**self._s3.named(key))
            except ClientError as error:
                # A response to HEAD has no body: unlike ``get`` it cannot distinguish a missing object from a missing bucket.
                if _status(error) != NOT_FOUND or self.get(key) is not None:
                    raise
                raise CorruptBatch(
                    "there is no such object", hint=hint_of_missing(key), bucket=self.bucket, key=key
                ) from error

        def fetch(start: int, stop: int) -> bytes:
            with self._s3.translate_errors("read an object", key):
                return self._s3.read(key, Range=f"bytes={start}-{stop - 1}", IfMatch=head["ETag"]).data

        return read_by_ranges(head["ContentLength"], fetch)

    def list(self, prefix: str) -> Iterator[ObjectInfo]:
        """List every object whose key starts with the prefix, in the order of their keys."""
        base = self._s3.base
        with self._s3.translate_errors("list objects", prefix):
            pages = self._s3.client.get_paginator("list_objects_v2")
            for page in pages.paginate(Bucket=self.bucket, Prefix=base + check_prefix(prefix)):
                for found in page.get("Contents", []):
                    key = found["Key"].removeprefix(base)
                    if key and not key.endswith("/"):  # consoles create such objects to show empty folders
                        yield ObjectInfo(key, found["Size"], found["LastModified"].astimezone(UTC))

    def delete(self, keys: Iterable[str]) -> None:
        """Delete objects; a missing one is no error."""
        remaining = iter(keys)
        while some := tuple(islice(remaining, _KEYS_OF_ONE_DELETE)):
            names: Any = {"Objects": [{"Key": self._s3.named(key)["Key"]} for key in some], "Quiet": True}
            with self._s3.translate_errors("delete objects", some[0]):
                answer = self._s3.client.delete_objects(Bucket=self.bucket, Delete=names)
            for fault in answer.get("Errors", []):
                code, message, key = fault.get("Code", ""), fault.get("Message", ""), fault.get("Key")
                raise fault_of(code, 200, message, action="delete an object", bucket=self.bucket, key=key)

    def unfinished(self, prefix: str, before: datetime) -> Sequence[Unfinished]:
        """Return multipart uploads that began before a time and were neither completed nor aborted."""
        base, found = self._s3.base, []
        with self._s3.translate_errors("list uploads", prefix):
            pages = self._s3.client.get_paginator("list_multipart_uploads")
            for page in pages.paginate(Bucket=self.bucket, Prefix=base + check_prefix(prefix)):
                for upload in page.get("Uploads", []):
                    key, began = upload["Key"].removeprefix(base), upload["Initiated"].astimezone(UTC)
                    if began < before and upload["Key"].startswith(base + prefix):
                        found.append(Unfinished(key, upload["UploadId"], 0, began))
        return found

    def discard(self, writes: Iterable[Unfinished]) -> None:
        """Abort uploads; a missing one is no error."""
        for one in writes:
            with self._s3.translate_errors("abort an upload", one.key):
                try:
                    self._s3.client.abort_multipart_upload(**self._s3.named(one.key), UploadId=one.name)
                except ClientError as error:
                    if _code(error) != "NoSuchUpload":
                        raise

    def url(self, key: str) -> str:
        """Return the address by which Spark reads the object."""
        return f"s3a://{self.bucket}/{self._s3.named(key)['Key']}"

    def _send_if(self, key: str, data: bytes, condition: dict[str, str]) -> str | None:
        try:
            with self._s3.translate_errors("write an object", key):
                return self._s3.put_if(key, data, condition)
        except _ConditionFailed as failed:
            # Only a request that was sent twice can have failed on what itself had written.
            return etag_of_own_write(self, key, data) if failed.sent_twice else None

    def _upload_of(self, key: str) -> _S3Upload:
        return _S3Upload(self._s3, key)


class _Bucket:
    """The client, the names of objects in the bucket, and the translation of the client's errors."""

    def __init__(self, bucket: str, base: str, options: S3Options) -> None:
        self.bucket = bucket
        self.base = base
        self.options = options

    @cached_property
    def client(self) -> S3Client:
        """The client, created at its first use."""
        options = self.options
        config = Config(
            connect_timeout=options.connect_timeout,
            read_timeout=options.read_timeout,
            retries={"mode": "standard", "total_max_attempts": options.attempts},
            s3={"addressing_style": "path" if options.path_style else "auto"},
            # Newer checksums than the protocol asks for are refused by many servers that are not Amazon's.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
            max_pool_connections=32,
            tcp_keepalive=True,
            user_agent_extra="lakecdc",
        )
        with self.translate_errors("reach the bucket", ""):
            try:
                return boto3.session.Session().client(
                    "s3",
                    endpoint_url=options.endpoint_url,
                    region_name=options.region,
                    aws_access_key_id=options.access_key,
                    aws_secret_access_key=options.secret_key,
                    aws_session_token=options.session_token,
                    verify=_authorities(options),
                    config=config,
                )
            except ValueError as error:  # botocore's word for an endpoint that is no address
                raise ConfigError(str(error), hint="Correct store.endpoint_url.") from error

    def named(self, key: str) -> _Named:
        """Return the two names of an object as the client's arguments."""
        return {"Bucket": self.bucket, "Key": self.base + check_key(key)}

    @retry(
        retry=retry_if_exception_type(StoreUnavailable),
        stop=stop_after_attempt(3),
        wait=wait_random_exponential(multiplier=0.1, max=2),
        reraise=True,
    )
    def read(self, key: str, **what: str) -> StoredObject:
        """Read an object or a range of it."""
        answer = self.client.get_object(**self.named(key), **cast("Any", what))
        with closing(answer["Body"]) as body:
            try:
                return StoredObject(body.read(), answer["ETag"])
            except (HTTPClientError, IncompleteReadError) as error:
                # botocore retries requests, but not response bodies that break off.
                raise StoreUnavailable(f"an object broke off while it was read: {error}", key=key) from error

    @retry(
        retry=retry_if_exception_type(StoreUnavailable),
        stop=stop_after_attempt(6),
        wait=wait_random_exponential(multiplier=0.05, max=1),
        reraise=True,
    )
    def put_if(self, key: str, data: bytes, condition: dict[str, str]) -> str:
        """Write under a condition; retry while the server reports a concurrent write."""
        try:
            return self.client.put_object(**self.named(key), Body=data, **cast("Any", condition))["ETag"]
        except ClientError as error:
            status = _status(error)
            if status == CONFLICT:
                raise self._fault(error, "write an object", key) from error
            if status == PRECONDITION_FAILED or _code(error) == "NoSuchKey":
                raise _ConditionFailed(_sent_twice(error)) from error
            raise

    @contextmanager
    def translate_errors(self, action: str, key: str) -> Iterator[None]:
        """Translate boto's errors into this project's."""
        context = {"bucket": self.bucket, "endpoint": self.options.endpoint_url, "key": key or None}
        try:
            yield
        except ClientError as error:
            if _status(error) == PRECONDITION_FAILED:
                raise CorruptBatch(
                    "an object was replaced while it was read", hint="Read it again.", **context
                ) from error
            raise self._fault(error, action, key) from error
        except _UNREACHED as error:
            if isinstance(error, SSLError) and (why := _why_not_trusted(error)):
                raise ConfigError(
                    f"the certificate of the S3 server {self.options.endpoint_url or 'of Amazon'} is not accepted: {why}",
                    hint="Name the file with the certificate of its authority in store.ca, and the server in "
                    "store.endpoint_url as its certificate does.",
                    **context,
                ) from error
            hint = unreached(self.options.endpoint_url or "Amazon S3", tls=isinstance(error, SSLError))
            raise StoreUnavailable(f"could not {action}: {error}", hint=hint, **context) from error
        except BotoCoreError as error:
            hint = "Check the store section of the source file, and the AWS credentials of this process."
            raise ConfigError(f"could not {action}: {error}", hint=hint, **context) from error

    def _fault(self, error: ClientError, action: str, key: str) -> StoreError | ConfigError:
        message = str(error.response.get("Error", {}).get("Message", ""))
        return fault_of(_code(error), _status(error), message, action=action, bucket=self.bucket, key=key or None)


class _S3Upload:
    """The upload of one object: one request, or a multipart upload from the first full part on."""

    def __init__(self, connection: _Bucket, key: str) -> None:
        self._s3 = connection
        self._key = key
        self._named = connection.named(key)
        self._id = ""
        self._etags: list[str] = []

    def put_whole(self, data: bytes) -> None:
        """Write the object with one request."""
        with self._s3.translate_errors("write an object", self._key):
            self._s3.client.put_object(**self._named, Body=data)

    def put_part(self, data: bytes) -> None:
        """Send the next part; the first one begins the upload."""
        with self._s3.translate_errors("write a part of an object", self._key):
            if not self._id:
                self._id = self._s3.client.create_multipart_upload(**self._named)["UploadId"]
            answer = self._s3.client.upload_part(
                **self._named, UploadId=self._id, PartNumber=len(self._etags) + 1, Body=data
            )
        self._etags.append(answer["ETag"])

    def complete(self) -> None:
        """Complete the multipart upload."""
        parts: Any = [{"PartNumber": number, "ETag": etag} for number, etag in enumerate(self._etags, 1)]
        with self._s3.translate_errors("complete an object", self._key):
            try:
                self._s3.client.complete_multipart_upload(
                    **self._named, UploadId=self._id, MultipartUpload={"Parts": parts}
                )
            except ClientError as error:
                if _code(error) != "NoSuchUpload" or not _sent_twice(error) or not self._is_complete():
                    raise

    def abort(self) -> None:
        """Abort the multipart upload. A failure is only logged, so that it does not hide the original error."""
        if not self._id:
            return
        try:
            with self._s3.translate_errors("abort an upload", self._key):
                self._s3.client.abort_multipart_upload(**self._named, UploadId=self._id)
        except (StoreError, ConfigError) as error:
            log.warning("parts of %s stay until the bucket's lifecycle rule removes them: %s", self._key, error)

    def _is_complete(self) -> bool:
        """Whether the object consists of these parts: its etag is the digest of theirs."""
        digests = b"".join(bytes.fromhex(etag.strip('"')) for etag in self._etags)
        expected = f'"{hashlib.md5(digests, usedforsecurity=False).hexdigest()}-{len(self._etags)}"'
        return self._s3.client.head_object(**self._named)["ETag"] == expected


def _why_not_trusted(error: SSLError) -> str:
    """Return why a certificate is not accepted; empty if something else is wrong."""
    found = _NOT_TRUSTED.search(str(error))
    return (found[1] or found[2]) if found else ""


def _authorities(options: S3Options) -> str | None:
    """Return the file with the authorities to trust as text; None for the client's own.

    Raises:
        ConfigError: it cannot be read.
    """
    if options.ca is None:
        return None
    try:
        ssl.create_default_context(cafile=str(options.ca))
    except OSError as error:
        raise ConfigError(
            f"the file of store.ca cannot be read: {error.strerror or error}",
            hint="Name a file with certificates in the form PEM.",
            file=str(options.ca),
        ) from error
    return str(options.ca)


class _ConditionFailed(Exception):
    """The server refused a conditional write; ``sent_twice``: whether botocore had sent the request before."""

    def __init__(self, sent_twice: bool) -> None:
        super().__init__(sent_twice)
        self.sent_twice = sent_twice


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def _status(error: ClientError) -> int:
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _sent_twice(error: ClientError) -> bool:
    return int(error.response.get("ResponseMetadata", {}).get("RetryAttempts", 0)) > 0
