"""``cdc get``: the row of a key in a lake table, read without Spark."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from cdc_lib.cli.archived import instant, show_archived, show_versions
from cdc_lib.cli.context import AsJson, KeyValues, SourceName, config_of, find
from cdc_lib.cli.lake.preview import cell
from cdc_lib.cli.lake.reader import lake_reader
from cdc_lib.cli.output import print_json, say, table
from cdc_lib.config import SourceConfig
from cdc_lib.errors import ConfigError
from cdc_lib.model.merge_plan import Cut
from cdc_lib.model.table_mode import ONE_VERSION_MODES
from cdc_lib.store.objects.open import open_store

Columns = Annotated[
    str, typer.Option("--columns", metavar="A,B", help="Only these columns. Default: those that do not begin with _.")
]
EveryColumn = Annotated[bool, typer.Option("--all", help="Also the columns that begin with _.")]
AsOf = Annotated[
    str,
    typer.Option(
        "--as-of",
        metavar="CUT",
        help="As of a cut: latest, a time such as 2026-01-31T12:00:00 (UTC without zone), a GTID, file:offset, or its id.",
    ),
]
WithDeleted = Annotated[
    bool, typer.Option("--deleted", help="In soft_delete tables, also rows that are marked as deleted.")
]
Fresh = Annotated[
    bool,
    typer.Option(
        "--fresh", help="Also the changes that are drained and not merged yet, as the next merge applies them."
    ),
]


def get(
    context: typer.Context,
    source: SourceName,
    table_name: Annotated[str, typer.Argument(metavar="TABLE", help="database.table at the source.")],
    key: KeyValues,
    columns: Columns = "",
    every_column: EveryColumn = False,
    versions: Annotated[
        bool,
        typer.Option(
            "--versions",
            help="All versions (scd2) or changes (append) of the row, newest first; in other modes those that stored batches have.",
        ),
    ] = False,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", min=1, help="With --versions: how many at most.")
    ] = None,
    since: Annotated[
        str,
        typer.Option(
            "--since",
            metavar="TIME",
            help="With --versions: those committed at this time or later; of mirror and soft_delete an error if batches do not reach back to it.",
        ),
    ] = "",
    until: Annotated[
        str, typer.Option("--until", metavar="TIME", help="With --versions: those committed before this time.")
    ] = "",
    deleted: WithDeleted = False,
    as_of: AsOf = "",
    fresh: Fresh = False,
    as_json: AsJson = False,
) -> None:
    """Show the row of a key in a lake table, or its versions.

    Exits with 1 when there is none.
    Bytes are hex digits, times are in UTC. Text is compared byte by byte, also if the source ignores case. Negative numbers follow
    a --.

    Example:
        cdc get shop shop.orders 42
        cdc get shop shop.order_lines 42 7 --columns state,amount --json
        cdc get shop shop.orders 42 --versions
        cdc get shop shop.orders 42 --versions --limit 5 --since 2026-01-31T12:00:00
        cdc get shop shop.orders 42 --fresh
    """
    if (limit or since or until) and not versions:
        raise ConfigError(
            "--limit, --since and --until are for --versions", hint="cdc scan reads rows of several keys."
        )
    first, stop = instant("--since", since), instant("--until", until)
    config = config_of(find(context, source))
    store = open_store(config.store) if fresh or versions else None
    with lake_reader("read.lake").Lake.open(config, store=store) as lake:
        reader = lake.table(table_name, cut=cut_at(config, as_of), fresh=fresh)
        parts = lake_reader("read.key_text").parse_parts(reader.schema, reader.key, key)
        names = chosen(reader, columns, every_column=every_column or versions)
        if versions and reader.mode in ONE_VERSION_MODES:
            shown_any = show_archived(
                reader.archived_versions(parts, limit, names, since=first, until=stop), as_json=as_json
            )
            raise typer.Exit(0 if shown_any else 1)
        if versions:
            rows = reader.versions(parts, limit, names, since=first, until=stop)
        else:
            found = reader.multi_get([parts], names, deleted=deleted)
            rows = found.filter(found["_found"]).drop_columns(["_found"])
    if not rows.num_rows:
        say(f"no row of {table_name} has the key {', '.join(key)}")
        raise typer.Exit(1)
    if versions:
        show_versions(rows, as_json=as_json)
    else:
        shown = lake_reader("lake.catalog").shown(rows)
        _show_row({name: values[0] for name, values in shown.items()}, as_json=as_json)


def _show_row(row: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(row)
    else:
        table(("column", "value"), ((name, cell(value)) for name, value in row.items()))


def chosen(reader: Any, columns: str, *, every_column: bool) -> list[str]:
    """Return the names of the columns to show.

    Args:
        reader: of the table.
        columns: what the option says; empty for the default.
        every_column: whether columns that begin with _ are shown too.
    """
    if columns:
        return [name.strip() for name in columns.split(",")]
    return [name for name in reader.schema.names if every_column or not name.startswith("_")]


def cut_at(config: SourceConfig, as_of: str) -> Cut | None:
    """Return the cut that --as-of names; None for an empty text.

    Raises:
        ConfigError: no such cut is stored.
    """
    if not as_of:
        return None
    cut: Cut = lake_reader("read.cuts").find_cut(open_store(config.store), config.source, as_of)
    return cut
