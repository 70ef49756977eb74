"""The raw events of a window as a file in its batch: written during decoding, and read instead of the server."""

from __future__ import annotations

import hashlib
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, BinaryIO, Self, cast

import zstandard

from cdc_lib.errors import CorruptBatch
from cdc_lib.model.raw_event import RawArchive, RawFacts
from cdc_lib.ports import ObjectStore
from cdc_lib.store import documents, layout
from cdc_lib.store.hashed import HashedFile

PORTION = 1 << 20
"""Block size of the compressor: fixed, so that its output depends on the events only."""

_COMPRESSED = 64 << 10
"""Bytes that are decompressed at once; they may become many more."""


@dataclass(slots=True)
class RawArchiveWriter:
    """Writes the file of one window; it appears when the block ends without an error, else never.

    Args:
        store: the object store.
        manifest: key of the window's manifest.
        level: zstd level.
    """

    store: ObjectStore
    manifest: str
    level: int = 1
    received: int = 0
    _waiting: bytearray = field(default_factory=bytearray)
    _stack: ExitStack = field(default_factory=ExitStack)
    _file: HashedFile | None = None
    _writer: Any = None

    def take(self, data: memoryview) -> None:
        """Append the next bytes of the stream."""
        self.received += data.nbytes
        self._waiting += data
        whole = len(self._waiting) // PORTION * PORTION
        for at in range(0, whole, PORTION):
            self._writer.write(bytes(self._waiting[at : at + PORTION]))
        del self._waiting[:whole]

    def archive(self, facts: RawFacts) -> RawArchive:
        """Write the decoder's facts after the events are durable, and return the entry for the manifest."""
        if self._file is None:
            raise AssertionError(self.manifest)
        data = documents.dump(facts)
        digest = hashlib.sha256(data).hexdigest()
        path = layout.raw_facts_path(digest)
        self.store.put(layout.beside(self.manifest, path), data)
        size, events = self._file.size, self._file.sha256.hexdigest()
        return RawArchive(layout.raw_events_path(), size, events, self.received, path, digest)

    def __enter__(self) -> Self:
        """Write while the block runs."""
        key = layout.beside(self.manifest, layout.raw_events_path())
        self._file = HashedFile(self._stack.enter_context(self.store.open_write(key)))
        compressor = zstandard.ZstdCompressor(level=self.level, write_checksum=True)
        self._writer = compressor.stream_writer(cast(BinaryIO, self._file), closefd=False)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Complete the file, or leave none."""
        if error is not None:
            self._stack.__exit__(kind, error, trace)
            return
        self._writer.write(bytes(self._waiting))
        self._writer.close()
        self._stack.close()


class ArchivedStream:
    """Replays the archived bytes of a server; implements :class:`cdc_lib.ports.BinlogStream`.

    Args:
        store: the object store.
        manifest: key of the window's manifest.
        archive: the manifest's entry.
    """

    def __init__(self, store: ObjectStore, manifest: str, archive: RawArchive) -> None:
        """Open nothing yet."""
        self._store = store
        self._key = layout.beside(manifest, archive.path)
        self._archive = archive
        self._stack = ExitStack()
        self._reader: Any = None

    def read_into(self, view: memoryview) -> int:
        """Read the next bytes into the view and return how many; 0 at the end.

        Raises:
            CorruptBatch: the file is damaged.
        """
        try:
            return int(self._reader.readinto(view))
        except zstandard.ZstdError as error:
            raise _damaged(self._key, str(error)) from error

    def __enter__(self) -> Self:
        """Check the file against the manifest, and open it.

        Raises:
            CorruptBatch: it is missing, or its digest differs.
        """
        digest = hashlib.sha256()
        with self._store.open_read(self._key) as file:
            while part := file.read(PORTION):
                digest.update(part)
        if digest.hexdigest() != self._archive.sha256:
            raise _damaged(self._key, "its SHA-256 is another one")
        file = self._stack.enter_context(self._store.open_read(self._key))
        self._reader = self._stack.enter_context(zstandard.ZstdDecompressor().stream_reader(file))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file."""
        self._stack.__exit__(kind, error, trace)


def read_facts(store: ObjectStore, manifest: str, archive: RawArchive) -> RawFacts:
    """Return the decoder's facts of the archive.

    Raises:
        CorruptBatch: they are missing, or their digest differs from the manifest's.
    """
    key = layout.beside(manifest, archive.facts)
    found = store.get(key)
    if found is None or hashlib.sha256(found.data).hexdigest() != archive.facts_sha256:
        raise _damaged(key, "it is missing, or its SHA-256 is another one")
    return documents.load(RawFacts, found.data, key)


def find_archive(store: ObjectStore, manifest: str) -> RawArchive | None:
    """Return the entry of an archive whose manifest is missing; None if a file of the archive is missing.

    The events have the checksum of the compressor, and the name of the facts holds their digest.

    Args:
        store: of the archive.
        manifest: key that the window's manifest had.

    Raises:
        CorruptBatch: the events are damaged.
    """
    key = layout.beside(manifest, layout.raw_events_path())
    stored = {info.key: info for info in store.list(layout.beside(manifest, layout.raw_prefix()))}
    facts = sorted((info.modified, name) for name, info in stored.items() if layout.is_raw_facts(name))
    if key not in stored or not facts:
        return None
    events, received = _checked(store, key)
    # Facts of another drain of the window would do as well; the first drain has most likely published the manifest.
    name = facts[0][1]
    found = store.get(name)
    if found is None:
        return None
    facts_digest = hashlib.sha256(found.data).hexdigest()
    path = layout.raw_facts_path(facts_digest)
    if layout.beside(manifest, path) != name:
        raise _damaged(name, "its SHA-256 is another one")
    return RawArchive(layout.raw_events_path(), stored[key].size, events, received, path, facts_digest)


def _checked(store: ObjectStore, key: str) -> tuple[str, int]:
    """Return the digest of a file of events, and its number of bytes before compression.

    Raises:
        CorruptBatch: it is damaged.
    """
    digest, received = hashlib.sha256(), 0
    decompressor = zstandard.ZstdDecompressor().decompressobj()
    with store.open_read(key) as file:
        try:
            while part := file.read(_COMPRESSED):
                digest.update(part)
                received += len(decompressor.decompress(part))
        except zstandard.ZstdError as error:
            raise _damaged(key, str(error)) from error
    if not decompressor.eof:
        raise _damaged(key, "it is not complete")
    return digest.hexdigest(), received


def _damaged(key: str, why: str) -> CorruptBatch:
    return CorruptBatch(
        f"the raw archive of a window cannot be read: {why}",
        hint="Restore the object from the store's versions, or read the window from the server: cdc batches replay without "
        "--from-archive.",
        key=key,
    )
