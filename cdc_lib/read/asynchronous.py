"""Reads of a lake table for programs with an event loop: each waits in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa

from cdc_lib.read.archive.versions import ArchivedVersions
from cdc_lib.read.table import TableReader


class AsyncTableReader:
    """The reads of a :class:`TableReader` as coroutines, with the same arguments, results and errors.

    Args:
        reader: of the table.
    """

    def __init__(self, reader: TableReader) -> None:
        self.reader = reader

    async def refresh(self) -> None:
        """See :meth:`TableReader.refresh`."""
        await asyncio.to_thread(self.reader.refresh)

    async def get(
        self, key: Any, columns: Iterable[str] | None = None, *, deleted: bool = False
    ) -> dict[str, Any] | None:
        """See :meth:`TableReader.get`."""
        return await asyncio.to_thread(self.reader.get, key, columns, deleted=deleted)

    async def exists(self, key: Any, *, deleted: bool = False) -> bool:
        """See :meth:`TableReader.exists`."""
        return await asyncio.to_thread(self.reader.exists, key, deleted=deleted)

    async def multi_get(
        self, keys: Sequence[Any], columns: Iterable[str] | None = None, *, deleted: bool = False
    ) -> pa.Table:
        """See :meth:`TableReader.multi_get`."""
        return await asyncio.to_thread(self.reader.multi_get, keys, columns, deleted=deleted)

    async def versions(
        self,
        key: Any,
        limit: int | None = None,
        columns: Iterable[str] | None = None,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> pa.Table:
        """See :meth:`TableReader.versions`."""
        return await asyncio.to_thread(self.reader.versions, key, limit, columns, since=since, until=until)

    async def archived_versions(
        self,
        key: Any,
        limit: int | None = None,
        columns: Iterable[str] | None = None,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> ArchivedVersions:
        """See :meth:`TableReader.archived_versions`."""
        return await asyncio.to_thread(self.reader.archived_versions, key, limit, columns, since=since, until=until)

    async def scan(
        self, start: Any = None, stop: Any = None, columns: Iterable[str] | None = None, **options: Any
    ) -> AsyncIterator[pa.RecordBatch]:
        """Yield the batches of :meth:`TableReader.scan`, each read when it is asked for."""
        batches = iter(await asyncio.to_thread(lambda: self.reader.scan(start, stop, columns, **options)))
        while (batch := await asyncio.to_thread(next, batches, None)) is not None:
            yield batch
