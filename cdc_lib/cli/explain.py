"""``cdc explain``: where each version of a row comes from."""

from __future__ import annotations

from typing import Annotated

import typer

from cdc_lib.cli.archived import said_since
from cdc_lib.cli.context import AsJson, KeyValues, SourceName, config_of, find
from cdc_lib.cli.lake.reader import lake_reader
from cdc_lib.cli.output import print_json, say
from cdc_lib.model.verification import VersionCheck
from cdc_lib.store.objects.open import open_store


def explain(
    context: typer.Context,
    source: SourceName,
    table_name: Annotated[str, typer.Argument(metavar="TABLE", help="database.table at the source.")],
    key: KeyValues,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many versions at most, the newest.")] = 10,
    as_json: AsJson = False,
) -> None:
    """Show what made each version of a row.

    That is an event, a window, a merge and a snapshot. Exits with 1 when there is no version.
    Versions are those of cdc get --versions, of mirror and soft_delete tables. A row that a snapshot read has the id of its chunk instead
    of a window. The merge is the first stored cut that has the
    version. Comparisons with the source that covered the version follow: of cdc verify, and of the rows that its merge changed.

    Example:
        cdc explain shop shop.orders 42
        cdc explain shop shop.order_lines 42 7 --limit 3 --json
    """
    config = config_of(find(context, source))
    store = open_store(config.store)
    with lake_reader("read.lake").Lake.open(config, store=store) as lake:
        reader = lake.table(table_name)
        parts = lake_reader("read.key_text").parse_parts(reader.schema, reader.key, key)
        found = reader.archived_versions(parts, limit, reader.key)
    origins = lake_reader("read.archive.origin").origins(
        found, table_name, config, store, [str(part) for part in parts]
    )
    versions = [
        {
            "op": row["_op"],
            "committed": row["_ts"],
            "changed": row["_changed"],
            "epoch": one.epoch,
            "position": str(one.position),
            "gtid": row["_gtid"],
            "window": one.window,
            "chunk": one.chunk,
            "merge": one.merge,
            "merged_at": one.merged_at,
            "lake_snapshot": one.lake_snapshot,
            "checks": one.checks,
        }
        for row, one in zip(found.rows.to_pylist(), origins, strict=True)
    ]
    if as_json:
        print_json({"versions": versions, "complete_since": found.complete_since, "why": found.why})
    elif versions:
        for number, version in enumerate(versions):
            say("" if number else f"{table_name} {', '.join(key)}", "bold")
            for name, value in version.items():
                if name != "checks" and value not in (None, ""):
                    say(f"  {name:<14}{', '.join(value) if isinstance(value, list) else value}")
            for check in version["checks"]:
                say(f"  {'checked':<14}{_said(check)}")
            if not version["checks"]:
                say(f"  {'checked':<14}by no comparison that is stored")
    else:
        say("no version is known")
    if not as_json:
        say(said_since(found))
    if not versions:
        raise typer.Exit(1)


_BY = {
    "verify": "equal: the whole table was compared",
    "after_merge": "equal: all rows that its merge changed were compared",
    "sample": "a random sample of the rows that its merge changed was equal",
    "wrong": "wrong",
}


def _said(check: VersionCheck) -> str:
    note = f" ({check.note})" if check.note else ""
    return f"{_BY[check.by]}{note}, at {check.position}, {check.at:%Y-%m-%d %H:%M:%S} UTC"
