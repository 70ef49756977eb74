"""Where statements took the rows of a table, by the manifests of a run of windows: pure.

CREATE TABLE IF NOT EXISTS stands in the binlog also where it did nothing. Whether it made the table depends on what came
before it, perhaps long ago: so it is decided here, where windows come in order, and the table's marker remembers a DROP.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from cdc_lib.model.batch import Manifest
from cdc_lib.model.lake import Point
from cdc_lib.model.table_statement import TableStatement


@dataclass(frozen=True, slots=True)
class Emptied:
    """What became of a table.

    Args:
        before: rows of before this point are gone; None when none are.
        dropped: where the table was dropped, if it was not created since.
    """

    before: Point | None
    dropped: Point | None


def emptied(table: str, manifests: Iterable[Manifest], since: Point | None, dropped: Point | None) -> Emptied:
    """Follow the statements on a table.

    Args:
        table: ``database.table``.
        manifests: of windows, in the stream's order.
        since: statements before this point are done; None for none.
        dropped: where the table stood dropped before these windows.
    """
    before: Point | None = None
    for manifest in manifests:
        for statement in manifest.statements:
            at = Point.at(manifest.epoch, statement.position)
            if statement.table != table or (since is not None and at < since):
                continue
            if statement.kind == "drop":
                dropped = at
            elif statement.kind in ("truncate", "create") or (statement.kind == "create_if_missing" and dropped):
                before = at
                dropped = dropped if statement.kind == "truncate" else None
    return Emptied(before, dropped)


def is_of_database(statement: TableStatement) -> bool:
    """Whether a statement is about all tables of a database."""
    return statement.table.endswith(".*")


def spread(manifest: Manifest, known: Collection[str]) -> Manifest:
    """Return a manifest with a statement for each table where it has one for a whole database.

    Args:
        manifest: of a window.
        known: ``database.table`` of every table that the lake may have.
    """
    found: list[TableStatement] = []
    for one in manifest.statements:
        tables = [name for name in sorted(known) if name.startswith(one.table[:-1])]
        found += [replace(one, table=table) for table in tables] if is_of_database(one) else [one]
    return replace(manifest, statements=tuple(found))
