"""The doctor's findings about modes: those of the source file, and changes of mode of existing lake tables."""

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
    """Yield findings about the modes of the source file.

    Args:
        config: the source.
        reader: the source's tables.
        tables: database and name of each captured table.
        cut: the last cut, with the current modes; None before the first.
    """
    for rule in config.modes:
        if not any(rule.covers(*table) for table in tables):
            yield Finding(
                "warning",
                f"{rule.tables} under modes names no captured table",
                "Correct the pattern, or leave it for a table that is still to come.",
            )
    current = {one.lake_table: one.mode for one in cut.tables} if cut is not None else {}
    asked = [TableName(*t) for t in tables if config.modes or _is_routed(config, *t) or _state(cut, TableName(*t))]
    for lake in lake_merges(config, asked):
        yield from _of(config.source, lake, reader, current.get(str(lake.name)))


def _is_routed(config: SourceConfig, database: str, table: str) -> bool:
    return any(rule.mode is not None and matches(rule.tables, database, table) for rule in config.routes)


def _state(cut: Cut | None, table: str) -> bool:
    return cut is not None and any(one.table == table and one.mode not in (None, "append") for one in cut.tables)


def _of(source: str, lake: LakeMerge, reader: SchemaReader, current: Mode | None) -> Iterator[Finding]:
    """Yield the findings about one lake table."""
    try:
        configured = lake.mode or "mirror"
    except ConfigError as error:
        yield Finding("error", error.message, error.hint)
        return
    if configured == "mirror" and current in (None, "mirror"):
        return
    if keyless := _without_key(lake, reader):
        if configured not in ("mirror", "append"):
            names = ", ".join(keyless)
            what = f"{names}: without a primary key the list of changes is kept (append), not {configured}"
            yield Finding("warning", what, "Add a primary key at the source, or leave the table out of the rule.")
        return
    if current is None or current == configured:
        yield Finding("ok", f"{', '.join(lake.tables)} → {lake.name}: {configured}")
        return
    yield from _changed(source, lake, current, configured)


def _without_key(lake: LakeMerge, reader: SchemaReader) -> list[str]:
    schemas = (reader.schema(routed.database, routed.name) for routed in lake.routed_tables)
    return [schema.name for schema in schemas if schema is not None and not schema.primary_key]


def _changed(source: str, lake: LakeMerge, current: Mode, configured: Mode) -> Iterator[Finding]:
    change = mode_change(current, configured)
    what = f"{lake.name} has the mode {current}, and the source file says {configured}: {change.description}"
    if change.how == "in_place":
        yield Finding("warning", what, f"Nothing to do; the next merge of {', '.join(lake.tables)} changes it.")
        return
    hint = f"cdc snapshot {source} {' '.join(table.in_shell for table in lake.tables)}"
    yield Finding("error", what, f"Give it the mode {current} again; or drop the lake table and take it again: {hint}")
