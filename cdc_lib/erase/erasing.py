"""An erasure from its request to its proof."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from cdc_lib.config import StoreKeys
from cdc_lib.erase.asked import asked, ended, refuse_unmerged
from cdc_lib.erase.needles import Needles
from cdc_lib.erase.places import LOST_FILE
from cdc_lib.erase.search import RowSearch, Searched
from cdc_lib.erase.stored import StoredRowsEraser
from cdc_lib.erase.wanted import wanted
from cdc_lib.model.erasure import Erasure, digest_of
from cdc_lib.model.pace import counted
from cdc_lib.model.table_name import TableName
from cdc_lib.source import Source
from cdc_lib.store.erasures import erasures_of


@dataclass(frozen=True, slots=True)
class ErasureResult:
    """What an erasure left.

    Args:
        left: what the search at its end found.
        rewritten: batches and comparisons that were written again or removed.
    """

    left: Searched
    rewritten: int

    @property
    def remedy(self) -> str:
        """What removes what is left, before the erasure is run again."""
        if all(one.kind == LOST_FILE for one in self.left.found):
            return "maintenance removes the files that stopped jobs left after maintenance.keep_orphans_for"
        return "let a run merge"


class Erasing:
    """Rows of one table that somebody wants to erase.

    Between :meth:`begin` and :meth:`finish`, the job ``erase`` removes them from the lake.

    Args:
        source: with its log-in.
        table: ``database.table`` at the source.
        needles: the rows.
        keys: of the store's S3 account; those of the environment without.
    """

    def __init__(self, source: Source, table: TableName, needles: Needles, keys: StoreKeys | None = None) -> None:
        self._source, self._table = source, table
        self._search = RowSearch(source, table, needles, keys)

    @classmethod
    def of(
        cls,
        source: Source,
        table: TableName,
        rows: Sequence[Sequence[str]],
        where: str,
        values: Sequence[str],
        keys: StoreKeys | None = None,
    ) -> Self:
        """Find the rows; arguments and errors of :func:`cdc_lib.erase.wanted.wanted`.

        An erasure that removed the rows from the lake, and was stopped then, is continued with those that other files have.
        """

        def begun(names: tuple[str, ...]) -> list[tuple[Any, ...]]:
            search = RowSearch(source, table, Needles(names, ()), keys)
            stopped = [one for one in erasures_of(source.store, source.name, table) if one.ended_at is None]
            return next(filter(None, map(search.keys_of, stopped)), [])

        return cls(source, table, wanted(source.config, table, rows, where, values, keys, begun), keys)

    @property
    def question(self) -> str:
        """What a person decides."""
        rows = counted(len(self._search.source_keys), "row")
        return f"Erase {rows} of {self._table}? Earlier snapshots and cuts of its lake table are lost."

    def digests(self, salt: str) -> list[str]:
        """Return the digests of the rows' keys with a salt, sorted: equal for the same rows."""
        return sorted(digest_of(bytes.fromhex(salt), key) for key in self._search.source_keys)

    def begin(self, columns: Sequence[str], *, by: str, lake_only: bool) -> Erasure:
        """Remember the erasure; from now on, changes of the rows from before now stay away.

        Args:
            columns: at the end, the values that the rows have in these columns now are looked for too.
            by: who asks.
            lake_only: whether the source may still have the rows.

        Raises:
            ConfigError: the source has one of the rows, or cannot tell.
            MergeConflict: the lake waits, or a snapshot of the table.
            SourceError: the server cannot be reached.
        """
        erasure = asked(self._source, self._table, self._search.source_keys, by=by, lake_only=lake_only)
        refuse_unmerged(self._source, erasure)
        if columns:
            self._search.look_for_values(columns)
        return erasure

    def finish(self, erasure: Erasure) -> ErasureResult:
        """Remove the rows from what the store has, search for what is left, and remember how it ended."""
        result = self._search.run()
        rewritten = StoredRowsEraser(self._source, erasure).remove(result.found)
        if rewritten:
            result = self._search.run()
        if result.found or not result.unread:
            ended(self._source, erasure, is_clean=not result.found)
        return ErasureResult(result, rewritten)
