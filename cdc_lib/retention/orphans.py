"""Files that no manifest names: of drains that died, and of races that were lost."""

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
    """Yield what no manifest names: parts of lost races beside one, and whole folders without one.

    Args:
        listing: what lies in the store.
        cursors: of the source; what the drain has in flight stays.
        going: folders that go as a whole anyway.
        before: younger files stay, because a drain may be about to name them.
    """
    drain = next((cursor for cursor in cursors if cursor.consumer == DRAIN), None)
    for folder, objects in sorted(listing.folders.items()):
        manifest = listing.manifests.get(folder)
        if folder in going or (manifest is None and _is_busy(drain, folder)):
            continue
        named = _named(manifest, folder) if manifest else set()
        # Beside a manifest only files of rows: what else a release may put there is none of this one's business.
        loose = [info for info in objects if manifest is None or _ROWS.search(info.key)]
        left = [info for info in loose if info.key not in named and info.modified < before]
        if left:
            yield removal(folder, "unnamed file", left)


def is_still_unnamed(store: ObjectStore, found: Removal) -> bool:
    """Tell whether the manifest beside the files, if there is one by now, does not name them."""
    manifest = find_manifest(store, layout.manifest_in(found.folder))
    return manifest is None or _named(manifest, found.folder).isdisjoint(found.keys)


def _named(manifest: Manifest, folder: str) -> set[str]:
    return {f"{folder}/{file.path}" for file in (*manifest.files, *manifest.prepared_files)}


def _is_busy(drain: Cursor | None, folder: str) -> bool:
    """Tell whether a drain may be writing to a folder that has no manifest yet."""
    if drain is None or any(f"{folder}/".startswith(layout.chunks_prefix(task)) for task in drain.open_snapshots):
        return True
    last = folder.rpartition("/")[2]
    bounds = bounds_of(last)
    if any(window.id == last for window in drain.in_flight):
        return True
    return bounds is not None and bounds[1] > Point.at(drain.epoch, drain.position)
