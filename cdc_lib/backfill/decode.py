"""Decodes one window again from its archived raw events, without the server."""

from __future__ import annotations

from dataclasses import dataclass

from cdc_lib.drain.batch import WindowBatches
from cdc_lib.drain.columns import shape_of
from cdc_lib.drain.exclusions import Exclusions
from cdc_lib.drain.origin import ArchivedOrigin, archived_facts
from cdc_lib.model.cursor import Cursor
from cdc_lib.model.manifest import Manifest
from cdc_lib.model.raw_event import RawArchive
from cdc_lib.model.window import Window
from cdc_lib.ports import ObjectStore
from cdc_lib.schema_history.versions import ArchivedHistories
from cdc_lib.source import Source
from cdc_lib.store import layout
from cdc_lib.store.erasures import erasures_by_table
from cdc_lib.store.objects.layered import LayeredStore
from cdc_lib.store.raw_archive import read_facts


@dataclass(frozen=True, slots=True)
class ArchiveDecoder:
    """Writes the files of windows from their raw events.

    Args:
        source: its store holds the raw events and the schema history; the server is not asked.
        target: where the files go; it may be the source's store.
        with_erased: whether erased rows are written too, to look for them.
    """

    source: Source
    target: ObjectStore
    with_erased: bool = False

    def write(self, window: Window, raw: RawArchive, cursor: Cursor) -> Manifest:
        """Write the files of a window, and return its manifest, which is not stored yet and names no raw events.

        Args:
            window: with the bounds of the archive.
            raw: its archive.
            cursor: the drain cursor, which knows the quarantined tables.

        Raises:
            CorruptBatch: the raw events are damaged.
            DecodeError: an event cannot be decoded.
        """
        live, key = self.source.store, layout.manifest_key(window)
        known = read_facts(live, key, raw)
        config = self.source.config.model_copy(update={"raw_archive": False}).with_text_keys(cursor.text_keys)
        origin = ArchivedOrigin(live, key, raw, known)
        versions = LayeredStore(self.target, live) if self.target is not live else live
        histories = ArchivedHistories(
            config, self.source.credentials, versions, window.epoch, archived_facts(known), known.charsets,
            dict.fromkeys(cursor.versions, False),
        )  # fmt: skip
        erased = (lambda _: ()) if self.with_erased else erasures_by_table(live, self.source.name)
        batches = WindowBatches(config, self.target, shape_of(config, self.source.credentials), origin, erased)
        excluded = Exclusions.of(cursor, window)
        return batches.write(window, histories, (), excluded, {})
