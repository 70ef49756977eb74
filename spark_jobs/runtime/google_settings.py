"""How Hadoop's connector of Google Cloud Storage reaches the store, as settings of a session.

Spark passes the settings of a session to its executors, so that no worker needs the key in its own environment or as a file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from cdc_lib.config.credentials import store_keys_from_environment
from cdc_lib.config.store import StoreConfig
from cdc_lib.model.service_account import service_account


def google_settings(store: StoreConfig, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the settings to read batches at ``gs://``.

    Without a key in the source file each machine finds its own credentials: the file that GOOGLE_APPLICATION_CREDENTIALS
    names, or the account of the machine.

    Raises:
        ConfigError: the variable that the source file names is not set, or holds no key of a service account.
    """
    settings = {"fs.gs.impl": "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem"}
    if store.endpoint_url:
        settings["fs.gs.storage.root.url"] = store.endpoint_url.rstrip("/") + "/"
    keys = store_keys_from_environment(store, environ)
    if keys is not None:
        account = service_account(keys.secret_key)
        return settings | {
            "fs.gs.auth.service.account.email": account.email,
            "fs.gs.auth.service.account.private.key.id": account.key_id,
            "fs.gs.auth.service.account.private.key": account.private_key,
            "fs.gs.token.server.url": account.token_uri,
        }
    if (store.endpoint_url or "").startswith("http:"):
        # As the store itself: no token is sent over a connection that anyone can read.
        return settings | {"fs.gs.auth.service.account.enable": "false", "fs.gs.auth.null.enable": "true"}
    return settings
