"""Server checks in addition to preflight: grants, table names, keys, predicates, and the start position, and the standbys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime

from cdc_lib.config import Credentials, ServerConfig, SourceConfig, TablesConfig
from cdc_lib.config.patterns import database_of, exact_table
from cdc_lib.config.rules import TableRule
from cdc_lib.config.shape import projection_of, targets_of
from cdc_lib.config.start import StartAt
from cdc_lib.doctor.tables_check import ROWS_ELSEWHERE, engine_findings, key_findings, pattern_findings
from cdc_lib.errors import CdcError, SourceError
from cdc_lib.lake.computed import computed_of, refuse_invalid
from cdc_lib.lake.evolution import lake_columns
from cdc_lib.lake.layout import first_layout
from cdc_lib.lake.predicates import fault_of
from cdc_lib.lake.reader_faults import reader_warnings
from cdc_lib.lake.routing import lake_merges
from cdc_lib.model.cursor import DRAIN
from cdc_lib.model.finding import Finding
from cdc_lib.model.pace import counted
from cdc_lib.model.readers import unread
from cdc_lib.model.route import routed_schema
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.table_name import TableName
from cdc_lib.mysql.clock import clock_of, judge_clock
from cdc_lib.mysql.connection import connect, protection_of
from cdc_lib.mysql.grants import judge_grants
from cdc_lib.mysql.information_schema import InformationSchema
from cdc_lib.mysql.preflight import judge
from cdc_lib.mysql.server_facts import read_facts, read_variables
from cdc_lib.plan.start import Starter
from cdc_lib.source import Source

MOST_LOOKED_AT = 200
"""Maximum tables without a primary key whose unique keys are read."""


def check_grants(server: ServerConfig, tables: TablesConfig, credentials: Credentials) -> Iterator[Finding]:
    """Yield the missing GRANT statements; needs no privilege, so it runs before the other server checks.

    Raises:
        SourceError: the server cannot be reached.
    """
    with closing(connect(server, credentials)) as connection:
        flavor = "mariadb" if "mariadb" in read_variables(connection)["version"].lower() else "mysql"
        seen = tables.select(InformationSchema(connection).tables())
        yield from judge_grants(connection, flavor, [*_named(tables.include), *seen])


def check_line(server: ServerConfig, credentials: Credentials) -> Iterator[Finding]:
    """Yield whether others can read the session, or answer in the server's place; needs no privilege.

    Raises:
        SourceError: the server cannot be reached.
    """
    with closing(connect(server, credentials)) as connection:
        protection = protection_of(connection)
    encrypted = f"sessions are encrypted by {protection.tls}" if protection.tls else "sessions are not encrypted"
    if protection.is_checked:
        yield Finding("ok", f"{encrypted}, and the server's certificate is checked")
    elif protection.is_private:
        yield Finding("ok", f"{encrypted}; they stay on this machine, or are in an SSH connection")
    else:
        what = f"{encrypted}, and the server's certificate is not checked: who is on the way can read them and answer instead"
        yield Finding("warning", what, "Name the file with the certificate of its authority in server.tls.ca.")


def check_server(server: ServerConfig, tables: TablesConfig, credentials: Credentials) -> Iterator[Finding]:
    """Yield the server's settings that a capture needs, and patterns that name no table.

    Raises:
        SourceError: the server cannot be reached.
    """
    with closing(connect(server, credentials)) as connection:
        yield from judge(read_facts(connection, server))
        found = InformationSchema(connection).tables()
        yield from pattern_findings(tables, found)
        yield Finding("ok", f"{counted(len(tables.select(found)), 'table')} captured by tables.include")


def _named(include: Iterable[str]) -> Iterator[tuple[str, str | None]]:
    """Yield databases and tables that patterns name exactly: tables without SELECT privilege cannot be listed."""
    for pattern in include:
        one, database = exact_table(pattern), database_of(pattern)
        if database is not None:
            yield database, one.table if one is not None else None


def check_tables(source: Source) -> Iterator[Finding]:
    """Yield findings for patterns without tables, tables without a key or rows of their own, and invalid predicates.

    Raises:
        SourceError: the server cannot be reached.
    """
    config = source.config
    with closing(source.connect()) as connection:
        reader = InformationSchema(connection)
        found = reader.tables()
        yield from pattern_findings(config.tables, found)
        tables = [table for table in found if config.tables.captures(*table)]
        keyless = sorted(set(tables) - set(reader.with_primary_key()))[:MOST_LOOKED_AT]
        without = [table for table in keyless if (one := reader.schema(*table)) is not None and not one.primary_key]
        appended = [table for table in without if all(t.mode == "append" for t in targets_of(config, *table))]
        yield from key_findings([TableName(*table) for table in without], [TableName(*table) for table in appended])
        elsewhere = reader.of_engines(ROWS_ELSEWHERE)
        yield from engine_findings({TableName(*one): elsewhere[one] for one in tables if one in elsewhere})
        yield from _predicates(config, reader, tables)
        yield from _computed(config, reader, tables)
        yield from _layouts(config, reader, tables)


def _predicates(
    config: SourceConfig, reader: InformationSchema, tables: Sequence[tuple[str, str]]
) -> Iterator[Finding]:
    for database, table in tables:
        targets = [target for target in targets_of(config, database, table) if target.where]
        schema = reader.schema(database, table) if targets else None
        if schema is None:
            continue
        try:
            stored = projection_of(config, schema).schema
        except CdcError:  # preflight reports problems of its columns and masks
            continue
        for target in targets:
            columns = [column.name for column in routed_schema(stored, target).columns]
            for predicate in target.where:
                if fault := fault_of(predicate, columns):
                    what = f"{schema.name}: the predicate {predicate!r} cannot be used: {fault}"
                    yield Finding("error", what, "Correct it under filters or routes in the source file.")


def _covered(
    reader: InformationSchema, tables: Sequence[tuple[str, str]], rules: Sequence[TableRule]
) -> Iterator[TableSchema]:
    """Yield the tables that a rule covers."""
    for database, table in tables:
        covered = any(rule.covers(database, table) for rule in rules)
        if covered and (schema := reader.schema(database, table)) is not None:
            yield schema


def _computed(config: SourceConfig, reader: InformationSchema, tables: Sequence[tuple[str, str]]) -> Iterator[Finding]:
    for schema in _covered(reader, tables, config.computed):
        try:
            stored = projection_of(config, schema).schema
            for lake in lake_merges(config, [schema.name]):
                columns = routed_schema(stored, lake.routed_tables[0].target).columns
                refuse_invalid(computed_of(config, lake), [column.name for column in columns], str(lake.name))
        except CdcError as error:
            yield Finding("error", f"{schema.name}: {error.message}", error.hint)


def _layouts(config: SourceConfig, reader: InformationSchema, tables: Sequence[tuple[str, str]]) -> Iterator[Finding]:
    for schema in _covered(reader, tables, config.layouts):
        try:
            stored = projection_of(config, schema).schema
            for lake in lake_merges(config, [schema.name]):
                columns = lake_columns(routed_schema(stored, lake.routed_tables[0].target), lake.mode)
                layout = first_layout(config, lake, columns)
                for what in unread(layout, config.lake.readers):
                    yield Finding("error", f"{schema.name}: {what}", _OTHER_LAYOUT)
                for what in reader_warnings(layout, columns):
                    yield Finding("warning", f"{schema.name}: {what}", _OTHER_PARTITIONS)
        except CdcError as error:
            yield Finding("error", f"{schema.name}: {error.message}", error.hint)


def check_start(source: Source) -> Iterator[Finding]:
    """Yield a finding about the position at which the source begins or continues.

    Raises:
        SourceError: the server cannot be reached.
    """
    config, cursor, starter = source.config, source.cursor(DRAIN), Starter.of(source)
    if cursor is not None:
        if (refused := starter.refusal(cursor)) is not None:
            yield Finding("error", refused.message, refused.hint)
        return
    if not isinstance(config.start, StartAt):
        return
    try:
        checkpoint = starter.find(config.start)
    except CdcError as error:
        yield Finding("error", f"the source cannot begin at {config.start}: {error.message}", error.hint or _BEGIN)
        return
    yield Finding("ok", f"the source begins at {checkpoint.position}")


def check_standby(server: ServerConfig, credentials: Credentials) -> Iterator[Finding]:
    """Yield a finding about the clock of a standby, or that it cannot be reached."""
    name = f"the standby {server.host}:{server.port}"
    try:
        yield judge_clock(clock_of(server, credentials), datetime.now(UTC), name)
    except SourceError as error:
        hint = error.hint or "Start it, or remove it from standbys in the source file."
        yield Finding("warning", f"{name} could not take over now: {error.message}", hint)


_OTHER_LAYOUT = "Leave format_version and write_mode out of layouts, or take the reader from lake.readers."
_OTHER_PARTITIONS = (
    "Read it with an engine that docs/reference/readers.md lists as right, or partition by another transform."
)
_BEGIN = "Write start: snapshot, or a position that SHOW BINARY LOGS still has."
