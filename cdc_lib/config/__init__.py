"""Source files: their valid keys, and loading them into frozen objects."""

from __future__ import annotations

from cdc_lib.config.credentials import (
    Credentials,
    HopLogin,
    StoreKeys,
    credentials_from_environment,
    mask_key_from_environment,
    store_keys_from_environment,
)
from cdc_lib.config.lake import LakeConfig
from cdc_lib.config.load import DEFAULTS_FILE, Loaded, load_source, load_sources
from cdc_lib.config.server import ServerConfig, TlsConfig
from cdc_lib.config.source import SourceConfig
from cdc_lib.config.store import StoreConfig
from cdc_lib.config.tables import TablesConfig
from cdc_lib.config.tunnel import SocksConfig, SshConfig
from cdc_lib.config.work import DrainConfig, MergeConfig, SnapshotConfig

__all__ = [
    "DEFAULTS_FILE",
    "Credentials",
    "DrainConfig",
    "HopLogin",
    "LakeConfig",
    "Loaded",
    "MergeConfig",
    "ServerConfig",
    "SnapshotConfig",
    "SocksConfig",
    "SourceConfig",
    "SshConfig",
    "StoreConfig",
    "StoreKeys",
    "TablesConfig",
    "TlsConfig",
    "credentials_from_environment",
    "load_source",
    "load_sources",
    "mask_key_from_environment",
    "store_keys_from_environment",
]
