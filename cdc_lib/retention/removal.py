"""What a collection of garbage removes, or would."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cdc_lib.ports import ObjectInfo, Unfinished
from cdc_lib.store import layout


@dataclass(frozen=True, slots=True)
class Removal:
    """One batch, or what no manifest names in one folder.

    Args:
        folder: key of the folder.
        what: ``window``, ``snapshot chunk``, ``cut`` or ``unnamed file``.
        keys: of its objects; a manifest stands first.
        size: bytes of its objects.
    """

    folder: str
    what: str
    keys: tuple[str, ...]
    size: int


@dataclass(frozen=True, slots=True)
class Collection:
    """What a collection removes, or would.

    Args:
        source: name of the source.
        removals: batches and files that go.
        unfinished: writes that never became an object, which go.
        kept: how many windows stay, by the reason.
        holding: consumers for which windows stay that are old enough to go, and how many.
    """

    source: str
    removals: tuple[Removal, ...]
    unfinished: tuple[Unfinished, ...]
    kept: dict[str, int]
    holding: dict[str, int]

    @property
    def size(self) -> int:
        """Bytes of all that goes."""
        return sum(one.size for one in self.removals) + sum(one.size for one in self.unfinished)


def removal(folder: str, what: str, objects: Sequence[ObjectInfo]) -> Removal:
    """Return the removal of objects of one folder."""
    manifest = layout.manifest_in(folder)
    keys = sorted((info.key for info in objects), key=lambda key: (key != manifest, key))
    return Removal(folder, what, tuple(keys), sum(info.size for info in objects))
