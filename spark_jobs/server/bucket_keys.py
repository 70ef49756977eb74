"""Which sources read a bucket with different keys.

Hadoop keeps one open file system per bucket in a Java process, with the keys of the job that used it first.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from cdc_lib.config.credentials import HANDED_STORE
from cdc_lib.jobs.secrets import AWS, AZURE

_NAMED = ("access_key_env", "secret_key_env", "service_account_env", "azure_secret_env")


class BucketKeys:
    """Remembers the keys with which each bucket was used first; not thread-safe."""

    def __init__(self) -> None:
        self._first: dict[str, str] = {}

    def are_others(self, config: Mapping[str, Any], secrets: Mapping[str, str]) -> bool:
        """Whether a job uses a bucket of its store or lake with other keys or another endpoint than the first job that used it.

        Args:
            config: the values of its source file.
            secrets: its environment variables.
        """
        store = config.get("store", {})
        used = [
            store.get("endpoint_url"),
            *(secrets.get(str(store.get(name))) for name in _NAMED),
            *(value for name, value in sorted(secrets.items()) if name in (*AWS, *AZURE, *HANDED_STORE)),
        ]
        digest = hashlib.sha256(json.dumps(used).encode()).hexdigest()
        addresses = store.get("url", ""), config.get("lake", {}).get("warehouse", "")
        urls = [urlsplit(str(address).replace("s3a:", "s3:", 1)) for address in addresses]
        buckets = {f"{url.scheme}://{url.netloc}" for url in urls if url.scheme in ("s3", "gs", "abfss")}
        return {digest} != {digest, *(self._first.setdefault(bucket, digest) for bucket in buckets)}
