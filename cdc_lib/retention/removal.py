"""The result of a garbage collection, planned or done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cdc_lib.ports import ObjectInfo, Unfinished
from cdc_lib.store import layout


@dataclass(frozen=True, slots=True)
class Removal:
    """One batch, or the orphans of one folder.

    Args:
        folder: key of the folder.
        what: ``window``, ``snapshot chunk``, ``cut`` or ``unnamed file``.
        keys: keys of its objects, manifest first.
        size: bytes of its objects.
    """

    folder: str
    what: str
    keys: tuple[str, ...]
    size: int


@dataclass(frozen=True, slots=True)
class Collection:
    """The objects that a garbage collection removes.

    Args:
        source: name of the source.
        removals: batches and files to remove.
        unfinished: unfinished writes to remove.
        kept: number of kept windows, by reason.
        holding: number of windows past their retention that are kept, by the consumer that needs them.
    """

    source: str
    removals: tuple[Removal, ...]
    unfinished: tuple[Unfinished, ...]
    kept: dict[str, int]
    holding: dict[str, int]

    @property
    def size(self) -> int:
        """Bytes of all removals."""
        return sum(one.size for one in self.removals) + sum(one.size for one in self.unfinished)


def removal(folder: str, what: str, objects: Sequence[ObjectInfo]) -> Removal:
    """Return the removal of objects of one folder."""
    manifest = layout.manifest_in(folder)
    keys = sorted((info.key for info in objects), key=lambda key: (key != manifest, key))
    return Removal(folder, what, tuple(keys), sum(info.size for info in objects))
