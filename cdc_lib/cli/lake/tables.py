"""``cdc lake tables``: the lake tables of a source, as the catalog describes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import typer

from cdc_lib.cli.context import AsJson, SourceName, config_of, find
from cdc_lib.cli.lake.reader import lake_reader
from cdc_lib.cli.output import plain, print_json, say, table
from cdc_lib.model.verification import TableVerification
from cdc_lib.store.cuts import last_cut
from cdc_lib.store.objects.open import open_store
from cdc_lib.store.verification import verifications


def tables(context: typer.Context, source: SourceName, as_json: AsJson = False) -> None:
    """List the lake tables of a source, with mode, key, number of rows and files, and what waits for maintenance.

    The last column says where cdc verify found the table equal to the source, and when.

    The tables are those of the last cut. The number of rows comes from the metadata of the table; it is ? where these do not
    have it.

    Example:
        cdc lake tables shop
    """
    config = config_of(find(context, source))
    store = open_store(config.store)
    cut = last_cut(store, source)
    if cut is None:
        if as_json:
            print_json([])
        else:
            say(f"{source} has no lake tables yet; its first merge makes them")
        return
    found = lake_reader("lake.metadata").described(config, [one.table for one in cut.tables])
    known: dict[str, list[TableVerification]] = {}
    for one in chain.from_iterable(verifications(store, cut)[0].values()):
        known.setdefault(one.lake_table, []).append(one)
    if as_json:
        print_json([{**plain(one), "verified": known.get(one.lake_table, [])} for one in found])
        return
    rows = (
        (
            one.lake_table,
            ", ".join(one.tables),
            one.mode,
            ", ".join(one.key) or "none",
            _count(one.rows),
            f"{one.files:,}",
            one.waits_for,
            _verified(one, known),
        )
        for one in found
    )
    table(
        ("lake table", "source tables", "mode", "key", "rows", "files", "waits for maintenance", "equal to the source"),
        rows,
    )


def _verified(one: Any, known: Mapping[str, Sequence[TableVerification]]) -> str:
    """Return what is known of a lake table; where several source tables go into it, of each."""
    said = known.get(one.lake_table, ())
    return "; ".join(each.text if len(said) == 1 else f"{each.table}: {each.text}" for each in said)


def _count(rows: int | None) -> str:
    return "?" if rows is None else f"{rows:,}"
