"""Orphans: files that no manifest names, from crashed drains and lost races."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime

from cdc_lib.model.cursor import DRAIN, Cursor
from cdc_lib.model.manifest import Manifest
from cdc_lib.model.position import Point
from cdc_lib.ports import ObjectStore
from cdc_lib.retention.listing import Listing
from cdc_lib.retention.removal import Removal, removal
from cdc_lib.store import layout
from cdc_lib.store.manifests import find_manifest
from cdc_lib.store.windows import bounds_of

_ROWS = re.compile(r"/(part|prepared)-[^/]*\.parquet$")


def unnamed(listing: Listing, cursors: Sequence[Cursor], going: Collection[str], before: datetime) -> Iterator[Removal]:
    """Yield files that no manifest names: files of lost races in a batch's folder, and folders without a manifest.

    Args:
        listing: objects of the source.
        cursors: cursors of the source; units that the drain has in flight are kept.
        going: folders that are removed anyway.
        before: newer files are kept, because a drain may be about to write their manifest.
    """
    drain = next((cursor for cursor in cursors if cursor.consumer == DRAIN), None)
    for folder, objects in sorted(listing.folders.items()):
        manifest = listing.manifests.get(folder)
        if folder in going or (manifest is None and _is_busy(drain, folder)):
            continue
        named = _named(manifest, folder) if manifest else set()
        # With a manifest only Parquet files: another release may store other files there.
        loose = [info for info in objects if manifest is None or _ROWS.search(info.key)]
        left = [info for info in loose if info.key not in named and info.modified < before]
        if left:
            yield removal(folder, "unnamed file", left)


def is_still_unnamed(store: ObjectStore, found: Removal) -> bool:
    """Whether the folder's manifest, if one was written meanwhile, still does not name the files."""
    manifest = find_manifest(store, layout.manifest_in(found.folder))
    return manifest is None or _named(manifest, found.folder).isdisjoint(found.keys)


def _named(manifest: Manifest, folder: str) -> set[str]:
    return {f"{folder}/{file.path}" for file in (*manifest.files, *manifest.prepared_files)}


def _is_busy(drain: Cursor | None, folder: str) -> bool:
    """Whether a drain may be writing to a folder without a manifest."""
    if drain is None or any(f"{folder}/".startswith(layout.chunks_prefix(task)) for task in drain.open_snapshots):
        return True
    last = folder.rpartition("/")[2]
    bounds = bounds_of(last)
    if any(window.id == last for window in drain.in_flight):
        return True
    return bounds is not None and bounds[1] > Point.at(drain.epoch, drain.position)
