"""Checks that files can be written to the lake's warehouse: a folder, or a prefix of a bucket."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from cdc_lib.config import LakeConfig, StoreConfig
from cdc_lib.errors import CdcError, StoreUnavailable
from cdc_lib.lake.location import local_folder
from cdc_lib.model.finding import Finding
from cdc_lib.ports import ObjectStore
from cdc_lib.store.objects.full_disk import free_bytes, full_disk
from cdc_lib.store.objects.s3 import S3Store
from cdc_lib.store.objects.s3_options import S3Options

_CONNECT, _READ = 2.0, 3.0
"""Time limits of the S3 client in seconds."""

_S3_FILE_IO = "org.apache.iceberg.aws.s3.S3FileIO"


def check_warehouse(lake: LakeConfig, config: StoreConfig, store: ObjectStore) -> Finding | None:
    """Return a finding about the warehouse; None if it is only a name that the catalog knows.

    Args:
        lake: of the source file.
        config: ``store:`` of the source file; a lake in S3 takes its connection settings.
        store: the store itself, which has the keys.
    """
    warehouse = lake.warehouse or ""
    scheme = urlsplit(warehouse).scheme
    folder = local_folder(warehouse)
    if folder is not None and (lake.type != "rest" or scheme == "file"):
        return _writable(folder)
    if scheme in ("s3", "s3a"):
        if lake.properties.get("io-impl", _S3_FILE_IO) != _S3_FILE_IO:
            return Finding("info", f"the warehouse {warehouse} was not checked: lake.properties names another io-impl")
        return _takes(lake, warehouse, _options(lake.properties, config, store), config.s3_endpoint_url)
    if scheme:
        return Finding("info", f"the warehouse {warehouse} was not checked: cdc doctor has no client for {scheme}:")
    return None


def fault_of_folder(folder: Path) -> str:
    """Return why a folder is not writable, else an empty text; a run would create it with its parents."""
    here = folder
    while not here.exists() and here != here.parent:
        here = here.parent
    if not here.is_dir():
        return f"{here} is not a folder"
    probe = here / f".cdc-probe-{secrets.token_hex(8)}"
    try:
        probe.write_bytes(b"probe")
        probe.unlink()
    except OSError as error:
        return f"{here}: {error.strerror or error}"
    return ""


def _writable(folder: Path) -> Finding:
    if fault := fault_of_folder(folder):
        hint = f'mkdir -p "{folder}" && chown "$(id -un)" "{folder}"'
        if free_bytes(folder) == 0:
            hint = full_disk(folder)
        return Finding("error", f"the warehouse {folder} cannot be written to: {fault}", hint)
    return Finding("ok", f"the warehouse {folder} can be written to")


def _options(properties: Mapping[str, str], config: StoreConfig, store: ObjectStore) -> S3Options:
    """Return how the lake reaches its bucket: like the store, except where ``lake.properties`` say otherwise, as in a merge."""
    options = S3Options(config.s3_endpoint_url, config.region, ca=config.s3_ca, path_style=config.path_style)
    if isinstance(store, S3Store):
        options = store.options
    key, secret = properties.get("s3.access-key-id"), properties.get("s3.secret-access-key")
    if key and secret:
        options = replace(options, access_key=key, secret_key=secret, session_token=properties.get("s3.session-token"))
    path_style = properties.get("s3.path-style-access")
    return replace(
        options,
        endpoint_url=properties.get("s3.endpoint", options.endpoint_url),
        region=properties.get("client.region", options.region) or "us-east-1",
        path_style=options.path_style if path_style is None else path_style.lower() == "true",
        connect_timeout=_CONNECT,
        read_timeout=_READ,
        attempts=1,
    )


def _takes(lake: LakeConfig, warehouse: str, options: S3Options, endpoint_of_store: str | None) -> Finding:
    """Write and delete an object below an S3 warehouse.

    Raises:
        StoreUnavailable: the server, which is also the store's, does not answer.
    """
    parts = urlsplit(warehouse)
    try:
        store, probe = S3Store(parts.netloc, parts.path.strip("/"), options), f"cdc-probe-{secrets.token_hex(8)}"
        store.put(probe, b"probe")
        store.delete([probe])
    except CdcError as error:
        if isinstance(error, StoreUnavailable) and lake.type != "rest" and options.endpoint_url == endpoint_of_store:
            raise  # an outage of the store's server
        what = f"the warehouse {warehouse} cannot be written to: {error.message}"
        if lake.type == "rest":
            return Finding("warning", what, "It does not matter if the catalog gives merges keys of its own.")
        return Finding(
            "error",
            what,
            "Correct lake.warehouse, or the keys and the S3 settings that the lake has from store or lake.properties.",
        )
    return Finding("ok", f"the warehouse {warehouse} can be written to")
