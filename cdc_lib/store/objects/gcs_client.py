"""The client of Google Cloud Storage for one bucket: credentials, limits, retries, and the translation of its errors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import google.auth
from google.api_core.exceptions import GoogleAPICallError, RetryError
from google.auth.credentials import AnonymousCredentials
from google.auth.exceptions import GoogleAuthError, TransportError
from google.auth.transport.requests import AuthorizedSession
from google.cloud import storage
from google.cloud.storage.exceptions import DataCorruption, InvalidResponse
from google.cloud.storage.retry import DEFAULT_RETRY
from google.oauth2 import service_account
from requests.adapters import HTTPAdapter
from requests.exceptions import RequestException

from cdc_lib.errors import ConfigError, StoreUnavailable
from cdc_lib.model.service_account import service_account as checked
from cdc_lib.store.objects.gcs_errors import KEYS, fault_of
from cdc_lib.store.objects.gcs_options import GcsOptions
from cdc_lib.store.objects.keys import check_key, unreached

CONNECTIONS = 32
"""Connections that are kept open to one server, for threads that share a store."""

_SCOPES = ["https://www.googleapis.com/auth/devstorage.read_write"]


class GoogleBucket:
    """One bucket; safe to share between threads.

    Args:
        name: of the bucket.
        base: prefix of every object, with a slash at its end unless it is empty.
        options: connection options.
    """

    def __init__(self, name: str, base: str, options: GcsOptions) -> None:
        self.name = name
        self.base = base
        self.options = options
        self._seen = False

    @cached_property
    def client(self) -> Any:
        """The client, created at its first use."""
        session: Any = AuthorizedSession(_credentials(self.options))  # type: ignore[no-untyped-call]
        for scheme in ("https://", "http://"):
            session.mount(scheme, HTTPAdapter(pool_connections=2, pool_maxsize=CONNECTIONS))
        endpoint = self.options.endpoint_url
        return storage.Client(
            project=None,
            credentials=session.credentials,
            _http=session,
            client_options={"api_endpoint": endpoint.rstrip("/")} if endpoint else None,
        )

    @property
    def once(self) -> dict[str, Any]:
        """Arguments of a request that is sent once."""
        return {"timeout": (self.options.connect_timeout, self.options.read_timeout), "retry": None}

    @property
    def again(self) -> dict[str, Any]:
        """Arguments of a request that the client may send again."""
        patient = DEFAULT_RETRY.with_delay(initial=0.2, maximum=5, multiplier=2).with_timeout(self.options.patience)
        return {**self.once, "retry": patient}

    def blob(self, key: str, generation: int | None = None) -> Any:
        """Return an object by its key, without a request."""
        return self.client.bucket(self.name).blob(self.base + check_key(key), generation=generation)

    def upload(self, key: str, data: bytes, **how: Any) -> str:
        """Write an object with one request, which carries a checksum; returns its generation."""
        blob = self.blob(key)
        blob.upload_from_string(data, content_type="application/octet-stream", checksum="crc32c", **how)
        return str(blob.generation)

    def refuse_missing_bucket(self) -> None:
        """Raise NotFound if there is no bucket: the answer to a missing object is the same.

        It lists, because the role that reads and writes objects may not ask for the bucket itself.
        """
        if not self._seen:
            next(iter(self.client.list_blobs(self.name, max_results=1, **self.again)), None)
            self._seen = True

    @contextmanager
    def translate_errors(self, action: str, key: str) -> Iterator[None]:
        """Translate the errors of Google's client into this project's."""
        context = {"bucket": self.name, "endpoint": self.options.endpoint_url, "key": key or None}
        hint = unreached(self.options.endpoint_url or "Google Cloud Storage")
        try:
            yield
        except RetryError as error:
            raise StoreUnavailable(f"could not {action}: {error.cause or error}", hint=hint, **context) from error
        except GoogleAPICallError as error:
            raise fault_of(int(error.code or 0), error.message, action=action, **context) from error
        except InvalidResponse as error:
            answer = error.response
            raise fault_of(answer.status_code, answer.text[:300], action=action, **context) from error
        except (TransportError, RequestException, DataCorruption, OSError) as error:
            raise StoreUnavailable(f"could not {action}: {error}", hint=hint, **context) from error
        except GoogleAuthError as error:
            if error.retryable:
                raise StoreUnavailable(f"could not {action}: no token: {error}", hint=hint, **context) from error
            raise ConfigError(f"could not {action}: {error}", hint=KEYS, **context) from error


def _credentials(options: GcsOptions) -> Any:
    """Return the credentials of requests.

    Raises:
        ConfigError: the key is not that of a service account.
        DefaultCredentialsError: there is no key, and this machine has no application default credentials.
    """
    if options.key is not None:
        checked(options.key)
        try:
            # The library has no types.
            return service_account.Credentials.from_service_account_info(json.loads(options.key), scopes=_SCOPES)  # type: ignore[no-untyped-call]
        except ValueError as error:
            raise ConfigError(
                "the private key in the key of the service account cannot be read",
                hint="Give the whole text of the file that Google's console makes.",
            ) from error
    if (options.endpoint_url or "").startswith("http:"):
        return AnonymousCredentials()  # type: ignore[no-untyped-call]
    found, _ = google.auth.default(scopes=_SCOPES)
    return found
