"""The client of Azure Blob Storage for one container: credentials, limits, retries, and the translation of its errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, TypeVar

import requests
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import AzureError, ClientAuthenticationError, HttpResponseError
from azure.core.pipeline.transport import RequestsTransport
from azure.identity import DefaultAzureCredential
from azure.storage.blob import BlobClient, ContainerClient, ExponentialRetry
from requests.adapters import HTTPAdapter

from cdc_lib.errors import ConfigError, StoreUnavailable
from cdc_lib.model.azure_secret import azure_secret
from cdc_lib.store.objects.azure_errors import LOGIN, fault_of
from cdc_lib.store.objects.azure_options import AzureOptions
from cdc_lib.store.objects.keys import check_key, unreached
from cdc_lib.store.objects.patience import Patience

CONNECTIONS = 32
"""Connections that are kept open to one server, for threads that share a store."""

_ONE_REQUEST = 4000 << 20
"""Bytes that are read or written with one request; a block of Azure may have so many."""

T = TypeVar("T")


class AzureContainer:
    """One container; safe to share between threads.

    Args:
        name: of the container.
        host: of its account, such as ``account.dfs.core.windows.net``.
        base: prefix of every object, with a slash at its end unless it is empty.
        options: connection options.
    """

    def __init__(self, name: str, host: str, base: str, options: AzureOptions) -> None:
        self.name = name
        self.host = host
        self.account = host.partition(".")[0]
        self.base = base
        self.options = options

    @property
    def account_url(self) -> str:
        """Address of the account: at Azure that of its Blob API, which accounts with and without folders have."""
        if self.options.endpoint_url is not None:
            return f"{self.options.endpoint_url.rstrip('/')}/{self.account}"
        return f"https://{self.host.replace('.dfs.', '.blob.', 1)}"

    @cached_property
    def client(self) -> ContainerClient:
        """The client, created at its first use. It sends each request once; :meth:`do` sends it again."""
        options, session = self.options, requests.Session()
        for scheme in ("https://", "http://"):
            session.mount(scheme, HTTPAdapter(pool_connections=2, pool_maxsize=CONNECTIONS))
        transport = RequestsTransport(
            session=session,
            session_owner=False,
            connection_timeout=options.connect_timeout,
            read_timeout=options.read_timeout,
            connection_verify=str(options.ca) if options.ca is not None else True,
        )
        return ContainerClient(
            self.account_url,
            self.name,
            credential=self._credential(),
            transport=transport,
            retry_policy=ExponentialRetry(retry_total=0),
            max_single_put_size=_ONE_REQUEST,
            max_single_get_size=_ONE_REQUEST,
        )

    def blob(self, key: str) -> BlobClient:
        """Return the client of an object by its key, without a request."""
        return self.client.get_blob_client(self.base + check_key(key))

    def do(self, action: str, key: str, send: Callable[[], T]) -> T:
        """Send a request that may be sent again, until it is answered or the patience ends; returns the answer."""
        remaining = Patience(self.options.patience)
        while True:
            try:
                with self.translate_errors(action, key):
                    return send()
            except StoreUnavailable:
                if not remaining.is_left():
                    raise

    @contextmanager
    def translate_errors(self, action: str, key: str) -> Iterator[None]:
        """Translate the errors of Azure's client into this project's."""
        context = {
            "container": self.name,
            "account": self.host,
            "endpoint": self.options.endpoint_url,
            "key": key or None,
        }
        try:
            yield
        except ClientAuthenticationError as error:
            first_line, *_ = str(error).splitlines() or [""]
            if error.response is None:  # the identity of this process, not an answer of the store
                raise ConfigError(f"could not {action}: {first_line}", hint=LOGIN, **context) from error
            raise self._fault(error, action, context) from error
        except HttpResponseError as error:
            raise self._fault(error, action, context) from error
        except (AzureError, OSError) as error:
            if "CERTIFICATE_VERIFY_FAILED" in str(error):
                raise ConfigError(
                    f"the certificate of the Azure server {self.account_url} is not accepted: {error}",
                    hint="Name the file with the certificate of its authority in store.ca.",
                    **context,
                ) from error
            raise StoreUnavailable(
                f"could not {action}: {error}", hint=unreached(self.account_url), **context
            ) from error

    def _fault(self, error: HttpResponseError, action: str, context: dict[str, str | None]) -> Exception:
        if error.status_code is None or error.status_code < 300:  # an answer that broke off
            return StoreUnavailable(f"could not {action}: {error}", hint=unreached(self.account_url), **context)
        return fault_of(error.status_code, code_of(error), str(error.message), action=action, **context)

    def _credential(self) -> Any:
        if self.options.secret is None:
            if self.account_url.startswith("http:"):
                raise ConfigError(
                    f"a token is not sent to {self.options.endpoint_url}, where anyone could read it",
                    hint="Name an account key or a SAS token in store.azure_secret_env, or use https.",
                )
            return DefaultAzureCredential()
        secret = azure_secret(self.options.secret, self.account)
        if secret.sas:
            return AzureSasCredential(secret.sas)
        return AzureNamedKeyCredential(self.account, secret.account_key)


def code_of(error: HttpResponseError) -> str:
    """Return Azure's code of an error response; empty if it has none."""
    code = getattr(error, "error_code", None)
    return str(getattr(code, "value", code) or "")
