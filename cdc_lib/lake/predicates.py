"""Predicates of the source file, looked at without Spark: whether they can be read, and which columns they name.

Spark has the last word when it merges: what is not refused here may still be refused there, for a function that it does not
have or two types that do not compare.
"""

from __future__ import annotations

from collections.abc import Collection

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError


def fault_of(predicate: str, columns: Collection[str]) -> str:
    """Say what is wrong with a predicate; empty when nothing is.

    Args:
        predicate: Spark SQL.
        columns: of the lake table, however they are written: names compare without their case. Columns that begin with _
            are those of the order key, or of a route.
    """
    try:
        found = sqlglot.parse(f"SELECT 1 WHERE {predicate}", dialect="spark")
    except SqlglotError as error:
        return f"it is not one predicate of Spark SQL: {_reason(error)}"
    query = found[0] if len(found) == 1 else None
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
    said = str(first.get("description") or "it cannot be read").rstrip(".")
    if said.startswith("Required keyword"):  # names classes of the parser
        said = "an operand is missing"
    return f"{said}, at {near!r}" if near else said
