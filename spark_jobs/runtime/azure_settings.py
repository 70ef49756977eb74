"""How Hadoop's client of Azure's Data Lake reaches the store, as settings of a session.

Spark passes the settings of a session to its executors, so that no worker needs the secret in its own environment.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import urlsplit

from cdc_lib.config.credentials import store_keys_from_environment
from cdc_lib.config.store import StoreConfig
from cdc_lib.model.azure_secret import azure_secret

_FILES = "org.apache.hadoop.fs.azurebfs"
_OAUTH = "fs.azure.account.oauth2"
_AUTHORITY = "https://login.microsoftonline.com"


def azure_settings(store: StoreConfig, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the settings to read batches at ``abfss://``.

    Without a secret in the source file they follow the environment as DefaultAzureCredential does: a service principal, a
    workload identity, else the managed identity of each machine.

    Raises:
        ConfigError: the variable that the source file names is not set, or holds no secret of the account.
    """
    settings = {"fs.abfss.impl": f"{_FILES}.SecureAzureBlobFileSystem", "fs.abfs.impl": f"{_FILES}.AzureBlobFileSystem"}
    if store.endpoint_url is not None:
        settings |= _other_server(store.endpoint_url)
    keys = store_keys_from_environment(store, environ)
    if keys is not None:
        secret = azure_secret(keys.secret_key, store.account)
        login = {"fs.azure.account.auth.type": "SharedKey", "fs.azure.account.key": secret.account_key}
        if secret.sas:
            login = {"fs.azure.account.auth.type": "SAS", "fs.azure.sas.fixed.token": secret.sas}
    else:
        login = {"fs.azure.account.auth.type": "OAuth", **_identity(environ)}
    # Hadoop takes a setting for one account by a name that ends in its host.
    return settings | {f"{name}.{store.account_host}": value for name, value in login.items()}


def _other_server(endpoint_url: str) -> dict[str, str]:
    """Return the settings of a server that has the Blob API only, and the account in its paths."""
    parts = urlsplit(endpoint_url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return {
        "fs.azure.abfs.endpoint": f"{parts.hostname}:{port}",
        "fs.azure.always.use.https": str(parts.scheme == "https").lower(),
        "fs.azure.fns.account.service.type": "BLOB",
        "fs.azure.account.hns.enabled": "false",
    }


def _identity(environ: Mapping[str, str]) -> dict[str, str]:
    """Return who reads: as in Azure's client, the variables of a service principal come first."""
    client, tenant = environ.get("AZURE_CLIENT_ID"), environ.get("AZURE_TENANT_ID")
    secret, token_file = environ.get("AZURE_CLIENT_SECRET"), environ.get("AZURE_FEDERATED_TOKEN_FILE")
    authority = environ.get("AZURE_AUTHORITY_HOST", _AUTHORITY).rstrip("/")
    if "://" not in authority:
        authority = f"https://{authority}"
    provider = "fs.azure.account.oauth.provider.type"
    if client and tenant and secret:
        return {
            provider: f"{_FILES}.oauth2.ClientCredsTokenProvider",
            f"{_OAUTH}.client.endpoint": f"{authority}/{tenant}/oauth2/token",
            f"{_OAUTH}.client.id": client,
            f"{_OAUTH}.client.secret": secret,
        }
    if client and tenant and token_file:
        return {
            provider: f"{_FILES}.oauth2.WorkloadIdentityTokenProvider",
            f"{_OAUTH}.msi.authority": authority,
            f"{_OAUTH}.msi.tenant": tenant,
            f"{_OAUTH}.client.id": client,
            f"{_OAUTH}.token.file": token_file,
        }
    found = {provider: f"{_FILES}.oauth2.MsiTokenProvider"}
    return found | ({f"{_OAUTH}.client.id": client} if client else {})
