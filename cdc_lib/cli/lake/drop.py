"""``cdc lake drop``: remove a lake table from its catalog."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import typer

from cdc_lib.cli.context import SourceName, config_of, find
from cdc_lib.cli.lake.reader import lake_reader
from cdc_lib.cli.output import agreed, say
from cdc_lib.lake.routing import lake_merges
from cdc_lib.model.merge_plan import TableCut
from cdc_lib.model.table_mode import Mode
from cdc_lib.store.cuts import last_cut
from cdc_lib.store.objects.open import open_store

_LOST: dict[Mode | None, str] = {
    "mirror": "its rows, which a new snapshot reads again from the source",
    "soft_delete": "its rows, and for ever those that the source deleted",
    "scd2": "its current versions, and for ever all earlier ones",
    "append": "its list of changes, for ever: a new snapshot begins another one",
}


def drop(
    context: typer.Context,
    source: SourceName,
    table: Annotated[str, typer.Argument(metavar="TABLE", help="database.table at the source.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Remove the lake table of a source table from its catalog, also if its files are lost. What is left of its files stays.

    Example:
        cdc lake drop shop shop.orders
    """
    config = config_of(find(context, source))
    catalog = lake_reader("lake.catalog")
    cut = last_cut(open_store(config.store), config.source)
    for lake in lake_merges(config, [table]):
        name = str(lake.name)
        cuts = [one for one in cut.tables if one.lake_table == name] if cut is not None else []
        say(f"{name} would be lost: {lost_with(cuts, table)}")
        if not agreed(f"Drop {name}?", yes=yes):
            return
        catalog.drop_table(config, lake.name)
        say(f"{name} is no longer in the catalog; its files stay, and may be removed")
    if not any(one.table == table and one.dropped is not None for one in (cut.tables if cut is not None else ())):
        say(f"cdc snapshot {source} {table} makes the table again, with the rows that the source has")


def lost_with(cuts: Iterable[TableCut], table: str) -> str:
    """Return what is lost with a lake table, for people.

    Args:
        cuts: its entries in the last cut.
        table: the source table that was named.
    """
    cuts = list(cuts)
    modes = {one.mode for one in cuts}
    what = _LOST.get(next(iter(modes)), "its rows") if len(modes) == 1 else "its rows"
    others = sorted({str(one.table) for one in cuts} - {table})
    shared = f"; the rows of {', '.join(others)} too, which need new snapshots as well" if others else ""
    return f"{what}; reads of earlier cuts{shared}"
