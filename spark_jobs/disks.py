"""The local disks of a job."""

from __future__ import annotations

import os
from pathlib import Path

from cdc_lib.config.source import SourceConfig
from cdc_lib.lake.location import local_folder, sqlite_file
from cdc_lib.store.objects.full_disk import free_bytes


def disks_of(config: SourceConfig) -> str:
    """Return the folders of this machine that a job of a source writes to, with the bytes that are free on their disks."""
    temporary = config.merge.conf.get("spark.local.dir") or os.environ.get("SPARK_LOCAL_DIRS") or "/tmp"  # noqa: S108 - as Spark does
    uri = config.lake.uri or ""
    found = (
        local_folder(config.lake.warehouse or ""),
        sqlite_file(uri).parent if uri.startswith("jdbc:sqlite:") else None,
        config.store.folder if config.store.scheme == "file" else None,
        Path(temporary.split(",")[0]),
    )
    folders = dict.fromkeys(folder for folder in found if folder is not None and folder.is_absolute())
    return ", ".join(f"{folder} ({free_bytes(folder):,} bytes free)" for folder in folders)
