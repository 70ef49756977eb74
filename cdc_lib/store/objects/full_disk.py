"""What to do about a disk that is full."""

from __future__ import annotations

import shutil
from pathlib import Path


def full_disk(folder: Path) -> str:
    """Return the hint about a folder whose disk is full; the folder may not exist."""
    return f"The disk of {folder} is full: {free_bytes(folder):,} bytes are free. Remove other files there, or enlarge it; then run it again."


def full_store(root: Path, key: str) -> str:
    """Return the hint about the disk of a store in which an object could not be written."""
    source = key.partition("/")[0] if not key.startswith("_") else "SOURCE"
    return f"{full_disk(root)} cdc batches gc {source} --yes removes batches that all have read."


def free_bytes(folder: Path) -> int:
    """Return the bytes that this user may write to the disk of a folder, which may not exist."""
    return shutil.disk_usage(next(one for one in (folder, *folder.parents) if one.exists())).free
