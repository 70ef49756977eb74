"""A clock that is set by hand, and lake tables and cuts whose times follow it.

Iceberg gives a snapshot the time of Java's clock, and refuses one that is older than the snapshot before it. So the clock of a test runs
in the past: after a merge, what has a later time gets the clock's.
"""

from __future__ import annotations

import json
import os
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from cdc_lib.store import layout
from cdc_lib.store.objects.local import LocalStore
from tests.harness.lake.running import Lake


class PastClock:
    """The clock of a lake's merges.

    Args:
        lake: its merges use the clock from now on; its store is a folder.
        start: the first time (UTC); the clock must not reach the real time.
    """

    def __init__(self, lake: Lake, start: datetime) -> None:
        self._lake = lake
        self.time = start
        lake.now = lambda: self.time

    def forward(self, by: timedelta) -> None:
        """Set the clock forward."""
        self.time += by

    def backdate(self, *tables: str) -> None:
        """Give the clock's time to all that is younger: snapshots of tables, and cuts."""
        for table in tables:
            self._backdate_table(table)
        assert isinstance(self._lake.store, LocalStore)
        for path in (self._lake.store.root / layout.cuts_prefix(self._lake.config.source)).iterdir():
            if path.stat().st_mtime > self.time.timestamp():
                os.utime(path, (self.time.timestamp(), self.time.timestamp()))

    def _backdate_table(self, table: str) -> None:
        metadata = metadata_file(self._lake, table)
        content: dict[str, Any] = json.loads(metadata.read_text())
        latest = int(self.time.timestamp() * 1000)
        content["last-updated-ms"] = min(content["last-updated-ms"], latest)
        for part in ("snapshots", "snapshot-log", "metadata-log"):
            for one in content.get(part, []):
                one["timestamp-ms"] = min(one["timestamp-ms"], latest)
        metadata.write_text(json.dumps(content))
        # Hadoop's local files have checksums.
        metadata.with_name(f".{metadata.name}.crc").unlink(missing_ok=True)


def metadata_file(lake: Lake, table: str) -> Path:
    """Return the newest metadata file of a source table's lake table."""
    return local_path(lake.target(table)._java().operations().current().metadataFileLocation())


def local_path(location: str) -> Path:
    """Return the path of a file by its location in Iceberg's metadata."""
    return Path(unquote(urlsplit(str(location)).path))
