"""Which tables were defined again since plans looked at them: what a plan asks of a table costs nothing while it stays as it is."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from cdc_lib.model.observation import TablesObservation
from cdc_lib.model.table_name import TableName


@dataclass(frozen=True, slots=True)
class DefinedTables:
    """When the captured tables were last defined, beside what the last plans looked at.

    Args:
        last: what they looked at, on the same server; None if nothing is known.
        defined: when each table was last defined.
        clock: the server's time, read before.
    """

    last: TablesObservation | None
    defined: Mapping[TableName, datetime]
    clock: datetime

    @property
    def unchanged(self) -> frozenset[tuple[str, str]]:
        """The tables that were not defined again since."""
        last = self.last.defined if self.last is not None else {}
        return frozenset(name.pair for name, at in self.defined.items() if last.get(name) == at)

    def to_compare(self, tables: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
        """Return the tables whose definition may differ from the schema history."""
        same = self.unchanged if self.last is not None and self.last.compared else frozenset()
        return [one for one in tables if one not in same]

    def looked_at(
        self, tables: Iterable[tuple[str, str]], unfinished: Collection[tuple[str, str]]
    ) -> Mapping[str, datetime]:
        """Return what counts as looked at from now on.

        A table may be defined again within the second that its time names; then the time alone does not show it.

        Args:
            tables: that were looked at.
            unfinished: those of them that must be looked at once more.
        """
        second = self.clock.replace(microsecond=0)
        names = {TableName(*one) for one in tables} - {TableName(*one) for one in unfinished}
        return {str(name): at for name, at in self.defined.items() if at < second and name in names}
