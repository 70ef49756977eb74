"""How lake tables keep rows, as the doctor shows it: what the source file asks for, and what becomes of tables that stand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cdc_lib.config import SourceConfig
from cdc_lib.config.patterns import matches
from cdc_lib.errors import ConfigError
from cdc_lib.lake.modes import mode_change
from cdc_lib.lake.routing import LakeMerge, lake_merges
from cdc_lib.model.finding import Finding
from cdc_lib.model.merge_plan import Cut
from cdc_lib.model.table_mode import Mode
from cdc_lib.model.table_name import TableName
from cdc_lib.ports import SchemaReader


def mode_findings(
    config: SourceConfig, reader: SchemaReader, tables: Sequence[tuple[str, str]], cut: Cut | None
) -> Iterator[Finding]:
    """Yield what the modes of the source file do.

    Args:
        config: the source.
        reader: the source's tables.
        tables: database and name of each captured table.
        cut: the last one, which says how lake tables stand; None before the first.
    """
    for rule in config.modes:
        if not any(rule.covers(*table) for table in tables):
            yield Finding(
                "warning",
                f"{rule.tables} under modes names no captured table",
                "Correct the pattern, or leave it for a table that is still to come.",
            )
    stand = {one.lake_table: one.mode for one in cut.tables} if cut is not None else {}
    asked = [TableName(*t) for t in tables if config.modes or _is_routed(config, *t) or _state(cut, TableName(*t))]
    for lake in lake_merges(config, asked):
        yield from _of(config.source, lake, reader, stand.get(str(lake.name)))


def _is_routed(config: SourceConfig, database: str, table: str) -> bool:
    return any(rule.mode is not None and matches(rule.tables, database, table) for rule in config.routes)


def _state(cut: Cut | None, table: str) -> bool:
    return cut is not None and any(one.table == table and one.mode not in (None, "append") for one in cut.tables)


def _of(source: str, lake: LakeMerge, reader: SchemaReader, state: Mode | None) -> Iterator[Finding]:
    """Yield what is to be said of one lake table."""
    try:
        wanted = lake.mode or "mirror"
    except ConfigError as error:
        yield Finding("error", error.message, error.hint)
        return
    if wanted == "mirror" and state in (None, "mirror"):
        return
    if bare := _without_key(lake, reader):
        if wanted not in ("mirror", "append"):
            what = f"{', '.join(bare)}: without a primary key the list of changes is kept (append), not {wanted}"
            yield Finding("warning", what, "Add a primary key at the source, or leave the table out of the rule.")
        return
    if state is None or state == wanted:
        yield Finding("ok", f"{', '.join(lake.tables)} → {lake.name}: {wanted}")
        return
    yield from _changed(source, lake, state, wanted)


def _without_key(lake: LakeMerge, reader: SchemaReader) -> list[str]:
    schemas = (reader.schema(share.database, share.name) for share in lake.shares)
    return [schema.name for schema in schemas if schema is not None and not schema.primary_key]


def _changed(source: str, lake: LakeMerge, state: Mode, wanted: Mode) -> Iterator[Finding]:
    change = mode_change(state, wanted)
    told = f"{lake.name} has the mode {state}, and the source file says {wanted}: {change.description}"
    if change.how == "in_place":
        yield Finding("warning", told, f"Nothing to do; the next merge of {', '.join(lake.tables)} changes it.")
        return
    hint = f"cdc snapshot {source} {' '.join(table.in_shell for table in lake.tables)}"
    yield Finding("error", told, f"Give it the mode {state} again; or drop the lake table and take it again: {hint}")
