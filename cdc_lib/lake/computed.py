"""Columns that a merge computes from the other columns of a row: which there are, and whether they can be computed. Pure."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from cdc_lib.config.source import SourceConfig
from cdc_lib.errors import ConfigError, IncompatibleSchema
from cdc_lib.lake.evolution import AddColumn, ColumnChange, WidenColumn
from cdc_lib.lake.routing import LakeMerge
from cdc_lib.model.lake_table import MODE_COLUMNS, LakeTable
from cdc_lib.model.lake_types import holds, widens

_CHANGING = frozenset(
    {
        "rand", "random", "randn", "randstr", "uniform", "uuid", "shuffle", "now", "current_timestamp", "localtimestamp",
        "current_date", "curdate", "current_time", "current_user", "user", "session_user", "current_catalog", "current_database",
        "current_schema", "current_timezone", "version", "input_file_name", "input_file_block_start", "input_file_block_length",
        "monotonically_increasing_id", "spark_partition_id", "unix_timestamp", "reflect", "java_method", "try_reflect",
    }
)  # fmt: skip
"""Functions whose result does not follow from their arguments, or may not; Spark itself counts some of them as deterministic."""


def computed_of(config: SourceConfig, lake: LakeMerge) -> dict[str, str]:
    """Return the computed columns of a lake table in the source file, and their expressions.

    Raises:
        ConfigError: source tables that share the lake table have different ones.
    """
    found: dict[str, dict[str, str]] = {}
    for routed in lake.routed_tables:
        columns: dict[str, tuple[str, str]] = {}
        for rule in config.computed:
            if rule.covers(routed.database, routed.name):
                for name, expression in rule.columns.items():
                    columns.setdefault(name.lower(), (name, expression))
        found[routed.table] = dict(columns.values())
    if len({json.dumps(one) for one in found.values()}) > 1:
        raise ConfigError(
            f"tables that share a lake table have different computed columns: {', '.join(found)}",
            hint="Cover them by one rule under computed in the source file, or give each a lake table of its own.",
            lake_table=str(lake.name),
        )
    return next(iter(found.values()), {})


def fault_of(expression: str, columns: Collection[str]) -> str:
    """Return what is wrong with an expression; empty if nothing is known to be.

    Args:
        expression: Spark SQL.
        columns: of the source, as in the lake; names compare without case.
    """
    try:
        parsed = sqlglot.parse(f"SELECT {expression}\n", dialect="spark")
    except (SqlglotError, RecursionError) as error:
        return f"it is not an expression of Spark SQL: {str(error).splitlines()[0]}"
    query = parsed[0] if len(parsed) == 1 else None
    if not isinstance(query, exp.Select) or {name for name, value in query.args.items() if value} != {"expressions"}:
        return "it is more than one expression"
    [found, *others] = query.expressions
    if others or isinstance(found, exp.Alias) or found.find(exp.Star):
        return "it is more than one expression"
    return _fault_of_parsed(found, columns)


def _fault_of_parsed(found: exp.Expression, columns: Collection[str]) -> str:
    if found.find(exp.Query, exp.AggFunc, exp.Window):
        return "it needs other rows: its value must follow from the row alone"
    if changing := sorted(set(_functions(found)) & _CHANGING):
        return f"{changing[0]} gives another value each time: a repeated merge must give the same row"
    bound = {one.name.lower() for each in found.find_all(exp.Lambda) for one in each.expressions}
    known = {name.lower() for name in columns if not name.startswith("_")} | bound
    unknown = [one.name for one in found.find_all(exp.Column) if one.table == "" and one.name.lower() not in known]
    if unknown:
        there = ", ".join(name for name in columns if not name.startswith("_"))
        return f"the source table has no column {', '.join(dict.fromkeys(unknown))}; there are {there}"
    return ""


def _functions(found: exp.Expression) -> Iterable[str]:
    for one in found.find_all(exp.Func):
        yield one.name.lower() if isinstance(one, exp.Anonymous) else one.sql_name().lower()
        yield from (name.lower() for name in type(one).sql_names())
    yield from (one.name.lower() for one in found.find_all(exp.Column) if one.name.lower() in _WITHOUT_BRACKETS)


_WITHOUT_BRACKETS = frozenset({"current_user", "user", "session_user", "current_catalog", "current_database"})


def columns_in(expression: str) -> frozenset[str]:
    """Return the columns that a valid expression uses, in lower case."""
    parsed = sqlglot.parse_one(expression, dialect="spark")
    bound = {one.name.lower() for each in parsed.find_all(exp.Lambda) for one in each.expressions}
    return frozenset(one.name.lower() for one in parsed.find_all(exp.Column)) - bound


def renamed(computed: Mapping[str, str], names: Mapping[str, str]) -> dict[str, str]:
    """Return computed columns after columns of the lake table were renamed, all at once."""
    new = {old.lower(): name for old, name in names.items()}
    return {new.get(name.lower(), name): _renamed(expression, new) for name, expression in computed.items()}


def _renamed(expression: str, new: Mapping[str, str]) -> str:
    if not columns_in(expression) & new.keys():
        return expression
    parsed = sqlglot.parse_one(expression, dialect="spark")
    for one in parsed.find_all(exp.Column):
        if one.name.lower() in new:
            one.set("this", exp.to_identifier(new[one.name.lower()], quoted=True))
    return parsed.sql(dialect="spark")


def _plain(expression: str) -> str:
    """Return an expression without what does not matter: spaces, comments, and the case of names."""
    parsed = sqlglot.parse_one(expression, dialect="spark")
    for one in parsed.find_all(exp.Column):
        one.set("this", exp.to_identifier(one.name.lower(), quoted=True))
    return parsed.sql(dialect="spark", comments=False)


def refuse_invalid(computed: Mapping[str, str], columns: Collection[str], lake_table: str) -> None:
    """Refuse expressions that cannot be computed from the columns of a source table.

    Raises:
        ConfigError: names the column, its expression and the fault.
    """
    for name, expression in computed.items():
        if name.lower() in {column.lower() for column in columns}:
            fault = "the source table has a column of this name"
        else:
            fault = fault_of(expression, columns)
        if fault:
            raise ConfigError(
                f"the computed column {name} ({expression!r}) cannot be used: {fault}",
                hint="Correct it under computed in the source file. If the source dropped or renamed a column, see the guide on "
                "column mapping.",
                lake_table=lake_table,
                column=name,
            )


def refuse_other(state: LakeTable, computed: Mapping[str, str], lake_table: str) -> None:
    """Refuse other computed columns than those that the rows of a lake table have.

    Raises:
        IncompatibleSchema: they differ, and older rows would keep the old values.
    """
    old, new = ({name.lower(): text for name, text in each.items()} for each in (state.computed, computed))
    plain_old, plain_new = ({name: _plain(text) for name, text in each.items()} for each in (old, new))
    other = [name for name in {*old, *new} if plain_old.get(name) != plain_new.get(name)]
    if not other:
        return
    name = min(other)
    replaced = "Take a new snapshot of this table (cdc snapshot)" if state.mode == "mirror" else _DROP
    raise IncompatibleSchema(
        f"the computed column {name} is {_shown(old.get(name))} in the lake and {_shown(new.get(name))} in the source file: rows "
        "that are merged already would keep the old values",
        hint=f"Undo the change under computed in the source file; after a rename at the source, write the new name there. To "
        f"compute all rows again: {replaced}.",
        lake_table=lake_table,
        column=name,
    )


_DROP = "drop the lake table and take a new snapshot of this table"


def _shown(expression: str | None) -> str:
    return "not there" if expression is None else repr(expression)


def computed_changes(table: LakeTable, types: Mapping[str, str], source_table: str) -> list[ColumnChange]:
    """Return the columns to add or widen before computed values are written.

    Args:
        table: the lake table.
        types: of the computed columns.
        source_table: for messages.

    Raises:
        IncompatibleSchema: the table has a column of the name whose type cannot hold the values.
    """
    have = {column.name.lower(): column for column in table.columns}
    of_mode = set(MODE_COLUMNS[table.mode])
    last = [column.name for column in table.columns if column.name not in of_mode][-1]
    changes: list[ColumnChange] = []
    for name, kind in types.items():
        old = have.get(name.lower())
        if old is None:
            changes.append(AddColumn(name, kind, last))
            last = name
        elif not holds(old.type, kind):
            if not widens(old.type, kind):
                raise IncompatibleSchema(
                    f"the computed column {name} is {old.type} in the lake and would be {kind}",
                    hint=f"Write CAST(... AS {old.type}) under computed in the source file, or drop the lake table and take a new "
                    "snapshot of this table.",
                    table=source_table,
                    column=name,
                )
            changes.append(WidenColumn(old.name, kind))
    return changes
