"""Lists the objects of a source, by batch folder."""

from __future__ import annotations

from dataclasses import dataclass

from cdc_lib.errors import CorruptBatch
from cdc_lib.model.manifest import Manifest
from cdc_lib.model.stored_window import StoredWindow
from cdc_lib.ports import ObjectInfo, ObjectStore
from cdc_lib.store import layout
from cdc_lib.store.manifests import find_manifest
from cdc_lib.store.windows import windows_among


@dataclass(frozen=True, slots=True)
class Listing:
    """All objects of one source except its cursors, cuts and schemas.

    Args:
        folders: the objects of each batch, complete or not, by its folder.
        windows: the windows among them, in the stream's order.
        manifests: manifests by folder.
    """

    folders: dict[str, list[ObjectInfo]]
    windows: list[StoredWindow]
    manifests: dict[str, Manifest]


def list_batches(store: ObjectStore, source: str) -> Listing:
    """List the batches of a source and read their manifests.

    Raises:
        CorruptBatch: a manifest cannot be read, so its files are not known.
        StoreUnavailable: the store does not respond.
    """
    folders: dict[str, list[ObjectInfo]] = {}
    # source/batches/<epoch>/<window>/..., source/snapshots/<id>/<table>/<chunk>/...
    for prefix, depth in ((layout.batches_prefix(source), 4), (layout.snapshots_prefix(source), 5)):
        for info in store.list(prefix):
            folders.setdefault("/".join(info.key.split("/")[:depth]), []).append(info)
    named = [folder for folder, found in folders.items() if any(i.key == layout.manifest_in(folder) for i in found)]
    manifests = {folder: _manifest(store, layout.manifest_in(folder)) for folder in named}
    return Listing(folders, windows_among(info for found in folders.values() for info in found), manifests)


def _manifest(store: ObjectStore, key: str) -> Manifest:
    found = find_manifest(store, key)
    if found is None:
        raise CorruptBatch("a manifest was removed while it was read", hint="Collect again.", key=key)
    return found
