"""One window of a consumer's batch."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from cdc_lib.consumers.filter import wants
from cdc_lib.model.manifest import Manifest
from cdc_lib.model.position import Point, Position
from cdc_lib.model.subscription import Interest
from cdc_lib.model.window import Window
from cdc_lib.model.xa_settlement import XaCommit


@dataclass(frozen=True, slots=True)
class BatchSlice:
    """One window of a batch.

    Args:
        key: key of the manifest.
        manifest: manifest of the window.
        floor: rows before this point belong to an earlier batch; None to read all rows.
        commits: XA transactions that the window commits, each with key and manifest of the batch that has its rows.
    """

    key: str
    manifest: Manifest
    floor: Point | None = None
    commits: tuple[tuple[XaCommit, str, Manifest], ...] = ()

    @property
    def window(self) -> Window:
        """Its bounds."""
        if self.manifest.window is None:
            raise AssertionError(self.key)
        return self.manifest.window

    @property
    def stop(self) -> Position:
        """Where the window ends."""
        return self.window.stop

    def without(self, tables: Collection[str]) -> BatchSlice:
        """Return the window without the rows of some tables."""
        if not tables:
            return self
        files = tuple(file for file in self.manifest.files if file.table not in tables)
        commits = tuple((commit, key, _without_prepared(held, tables)) for commit, key, held in self.commits)
        return replace(self, manifest=replace(self.manifest, files=files), commits=commits)

    def most_rows(self, interest: Interest) -> int:
        """Return the maximum number of rows for a consumer, without opening a file."""
        files = [file.rows for file in self.manifest.files if wants(interest, file.table)]
        apart = {
            (key, f.path): f.rows for _, key, m in self.commits for f in m.prepared_files if wants(interest, f.table)
        }
        return sum(files) + sum(apart.values())


def _without_prepared(held: Manifest, tables: Collection[str]) -> Manifest:
    return replace(held, prepared_files=tuple(file for file in held.prepared_files if file.table not in tables))
