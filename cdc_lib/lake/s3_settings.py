"""Whether the files of a lake are reached with the S3 settings of ``store``. Pure."""

from __future__ import annotations

from urllib.parse import urlsplit

from cdc_lib.config.lake import LakeConfig
from cdc_lib.lake.location import base_of

_DELEGATION = "header.x-iceberg-access-delegation"
"""Property with which a client asks a REST catalog for keys; Iceberg's Java client asks for none without it."""


def is_in_s3(lake: LakeConfig) -> bool:
    """Return whether the source file says that the tables are in S3."""
    return lake.type == "glue" or urlsplit(lake.warehouse or "").scheme in ("s3", "s3a")


def only_catalog_knows(lake: LakeConfig) -> bool:
    """Return whether only a REST catalog knows where the tables are: its warehouse is a name, or there is none."""
    return lake.type == "rest" and base_of(lake.type, lake.warehouse) is None


def takes_settings_of_store(lake: LakeConfig) -> bool:
    """Return whether the lake's files are reached with the keys and the server of ``store``.

    What the catalog returns with a table comes first in any case. Of a catalog that is asked for keys nothing is added: its keys
    may be for another S3 server than the store's, which it does not always return.
    """
    return is_in_s3(lake) or (only_catalog_knows(lake) and not _asks_for_keys(lake))


def _asks_for_keys(lake: LakeConfig) -> bool:
    return any(name.lower() == _DELEGATION and value for name, value in lake.properties.items())
