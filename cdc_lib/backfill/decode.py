"""Decodes one window again from its archived raw events, without the server."""

from __future__ import annotations

from dataclasses import dataclass

from cdc_lib.config import Credentials, SourceConfig
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
from cdc_lib.store import layout
from cdc_lib.store.objects.layered import LayeredStore
from cdc_lib.store.raw_archive import read_facts


@dataclass(frozen=True, slots=True)
class ArchiveDecoder:
    """Writes the files of windows from their raw events.

    Args:
        config: of the source.
        credentials: of the source; the server is not asked.
        live: holds the raw events and the schema history.
        target: where the files go; it may be ``live``.
    """

    config: SourceConfig
    credentials: Credentials
    live: ObjectStore
    target: ObjectStore

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
        key = layout.manifest_key(window)
        known = read_facts(self.live, key, raw)
        config = self.config.model_copy(update={"raw_archive": False}).with_text_keys(cursor.text_keys)
        origin = ArchivedOrigin(self.live, key, raw, known)
        versions = LayeredStore(self.target, self.live) if self.target is not self.live else self.live
        histories = ArchivedHistories(
            config, self.credentials, versions, window.epoch, archived_facts(known), known.charsets,
            dict.fromkeys(cursor.versions, False),
        )  # fmt: skip
        batches = WindowBatches(config, self.target, shape_of(config, self.credentials), origin)
        excluded = Exclusions.of(cursor, window)
        return batches.write(window, histories, (), excluded, {})
