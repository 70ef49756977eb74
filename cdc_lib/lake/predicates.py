"""Checks predicates of the source file without Spark: their syntax and their columns.

The merge may still refuse a predicate, for a function that Spark does not have or two types that it cannot compare.
"""

from __future__ import annotations

from collections.abc import Collection

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

_NAMES = {"spark": "Spark SQL", "duckdb": "DuckDB's SQL"}


def fault_of(predicate: str, columns: Collection[str], dialect: str = "spark") -> str:
    """Return what is wrong with a predicate; empty if it is valid.

    Args:
        predicate: SQL.
        columns: of the lake table; names compare without case. Columns that begin with _ belong to the order key or a
            route.
        dialect: ``spark``, or another one that the parser knows.
    """
    try:
        parsed = sqlglot.parse(f"SELECT 1 WHERE {predicate}", dialect=dialect)
    except SqlglotError as error:
        return f"it is not one predicate of {_NAMES[dialect]}: {_reason(error)}"
    except RecursionError:
        return f"it is not one predicate of {_NAMES[dialect]}: its brackets are nested too deeply"
    query = parsed[0] if len(parsed) == 1 else None
    if not isinstance(query, exp.Select) or set(_parts(query)) != {"expressions", "where"}:
        return "it is more than one predicate"
    if any(True for one in query.find_all(exp.Query) if one is not query):
        return "it asks another table: its outcome must follow from the row alone"
    known = {name.lower() for name in columns}
    bound = {name.lower() for one in query.find_all(exp.Lambda) for name in (i.name for i in one.expressions)}
    named = [one.name for one in query.find_all(exp.Column) if not one.table]
    unknown = [name for name in named if name.lower() not in known | bound and not name.startswith("_")]
    if unknown:
        return f"there is no column {', '.join(dict.fromkeys(unknown))}; there are {', '.join(columns)}"
    return ""


def _parts(query: exp.Select) -> list[str]:
    return [name for name, value in query.args.items() if value]


def _reason(error: SqlglotError) -> str:
    first = next(iter(getattr(error, "errors", ())), None)
    if not first:
        return str(error).splitlines()[0]
    near = f"{first.get('highlight') or ''}"
    reason = str(first.get("description") or "it cannot be read").rstrip(".")
    if reason.startswith("Required keyword"):  # names classes of the parser
        reason = "an operand is missing"
    return f"{reason}, at {near!r}" if near else reason
