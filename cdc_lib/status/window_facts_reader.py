"""The batches of the windows that a cursor remembers, each read once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from cdc_lib.model.window import Window
from cdc_lib.ports import ObjectStore
from cdc_lib.status.timeline import WindowFacts, facts_of_window
from cdc_lib.store import layout
from cdc_lib.store.manifests import find_manifest


@dataclass
class WindowFactsReader:
    """Reads what is shown of windows; a manifest never changes, so that one that was read is not read again.

    Args:
        store: where they are.
    """

    store: ObjectStore
    _known: dict[str, WindowFacts] = field(default_factory=dict)

    def read(self, windows: Sequence[Window]) -> dict[str, WindowFacts]:
        """Return what the manifests of windows say, by window id; a window without a manifest is left out.

        Raises:
            StoreUnavailable: the store gives no answer.
            CorruptBatch: a manifest cannot be read.
        """
        found = {}
        for window in windows:
            facts = self._known.get(window.id) or self._read(window)
            if facts is not None:
                found[window.id] = facts
        self._known = found
        return found

    def _read(self, window: Window) -> WindowFacts | None:
        manifest = find_manifest(self.store, layout.manifest_key(window))
        return facts_of_window(manifest) if manifest is not None else None
