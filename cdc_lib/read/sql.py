"""SQL over lake tables, in this process: DuckDB computes, and the reader streams the rows. Without Spark.

Every table is read as of one snapshot, and as of one transaction where they come from a cut. A query can change nothing, and
reads no files of this machine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import duckdb
import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from cdc_lib.apply.engine import connect, quoted
from cdc_lib.errors import ConfigError
from cdc_lib.model.table_name import TableName
from cdc_lib.read.table import TableReader

_DIALECT = "duckdb"

_PLAIN = (
    exp.Select, exp.Subquery, exp.From, exp.Table, exp.TableAlias, exp.With, exp.CTE, exp.Where, exp.Group, exp.Having,
    exp.Order, exp.Ordered, exp.Limit, exp.Offset, exp.Distinct, exp.Alias, exp.Column, exp.Identifier, exp.Literal,
    exp.Boolean, exp.Null, exp.Paren, exp.Predicate, exp.Connector, exp.Not, exp.Binary, exp.Neg, exp.In, exp.Between,
    exp.Case, exp.If, exp.Cast, exp.DataType, exp.AggFunc, exp.Count, exp.Filter, exp.Window, exp.Coalesce,
)  # fmt: skip
"""What a query may have, so that the columns that it names are all that it uses."""


def query(sql: str, tables: Iterable[str], open_table: Callable[[str], TableReader]) -> pa.RecordBatchReader:
    """Run a query; the rows are read while the result is.

    Args:
        sql: one SELECT in DuckDB's dialect; tables are written ``database.table``.
        tables: the names that it may use.
        open_table: opens one of them.

    Returns:
        The result as a stream of Arrow batches.

    Raises:
        ConfigError: it is not one query, names another table, or DuckDB refuses it.
        StoreError: a table cannot be read.
    """
    known = {TableName.parse(name).pair: name for name in tables}
    parsed = _parsed(sql)
    sources = [_QueriedTable(pair, known[pair], count) for pair, count in _named(parsed, known).items()]
    readers = {source.pair: open_table(source.table) for source in sources}
    columns = _columns_used(parsed, {pair: reader.schema for pair, reader in readers.items()})
    connection = connect()
    for source in sources:
        source.make_view(connection, readers[source.pair], columns[source.pair])
    connection.execute("SET lock_configuration = true")
    try:
        relation = connection.sql(sql)
        if relation is None:
            raise ConfigError("the statement is not a query", hint="Write one SELECT.")
        return relation.to_arrow_reader()
    except duckdb.Error as error:
        raise ConfigError(f"the query was refused: {_first_line(error)}", hint="It is in DuckDB's SQL.") from error


@dataclass(frozen=True, slots=True)
class _QueriedTable:
    """A lake table of a query.

    Args:
        pair: database and table.
        table: the name as it was given.
        count: how often the query names it.
    """

    pair: tuple[str, str]
    table: str
    count: int

    def make_view(self, connection: duckdb.DuckDBPyConnection, reader: TableReader, columns: Sequence[str]) -> None:
        """Make the table known to DuckDB; one that is named once is streamed, others are held in memory."""
        rows = reader.rows(columns)
        name = ".".join(self.pair)
        connection.register(name, rows if self.count == 1 else rows.read_all())
        database, table = map(quoted, self.pair)
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {database}")
        connection.execute(f"CREATE VIEW {database}.{table} AS SELECT * FROM {quoted(name)}")


def _parsed(sql: str) -> exp.Query:
    try:
        statements = sqlglot.parse(sql, dialect=_DIALECT)
    except SqlglotError as error:
        raise ConfigError(f"the query cannot be parsed: {_first_line(error)}", hint="It is in DuckDB's SQL.") from error
    except RecursionError as error:
        raise ConfigError(
            "the query cannot be parsed: its brackets are nested too deeply", hint="Take out some of them."
        ) from error
    if len(statements) != 1 or not isinstance(statements[0], exp.Query):
        raise ConfigError("the text is not one query", hint="Write one SELECT without a semicolon and more after it.")
    return statements[0]


def _named(parsed: exp.Query, known: Collection[tuple[str, str]]) -> Counter[tuple[str, str]]:
    """Count how often each known table is named.

    Raises:
        ConfigError: another table is named, or one whose name differs from another one's in case alone.
    """
    ours: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for database, table in known:
        ours.setdefault((database.lower(), table.lower()), []).append((database, table))
    local = {one.alias_or_name.lower() for one in parsed.find_all(exp.CTE)}
    found: Counter[tuple[str, str]] = Counter()
    for named in parsed.find_all(exp.Table):
        pairs = [] if named.catalog else ours.get((named.db.lower(), named.name.lower()), [])
        if len(pairs) > 1:
            raise ConfigError(
                f"{named.sql(dialect=_DIALECT)} can be {' or '.join(map('.'.join, sorted(pairs)))}: names here ignore case",
                hint="Read it with cdc scan.",
            )
        if pairs:
            found[pairs[0]] += 1
        elif named.db or named.name.lower() not in local:
            shown = ", ".join(sorted(".".join(pair) for pair in known)[:20])
            raise ConfigError(
                f"the lake has no table {named.sql(dialect=_DIALECT)}",
                hint=f"Write database.table. The tables are {shown or 'none'}.",
            )
    return found


def _columns_used(parsed: exp.Query, schemas: Mapping[tuple[str, str], pa.Schema]) -> dict[tuple[str, str], list[str]]:
    """Return the columns of each table that a query can use: all, unless it is certain that fewer give the same result.

    ``*``, a table's alias as a value, a natural join and the like depend on columns that the query does not name. So columns are
    left out only of queries that have nothing but plain expressions.
    """
    named = {column.name.lower() for column in parsed.find_all(exp.Column)}
    known = {name.lower() for schema in schemas.values() for name in schema.names}
    known |= {alias.alias.lower() for alias in parsed.find_all(exp.Alias)}
    if not all(map(_is_plain, parsed.walk())) or not named <= known:
        return {pair: schema.names for pair, schema in schemas.items()}
    return {
        pair: [name for name in schema.names if name.lower() in named] or schema.names[:1]
        for pair, schema in schemas.items()
    }


def _is_plain(node: exp.Expr) -> bool:
    if isinstance(node, exp.Star):
        return isinstance(node.parent, exp.Count)
    if isinstance(node, exp.Join):
        return node.args.get("method") is None and node.args.get("using") is None
    return isinstance(node, _PLAIN)


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), "without a reason")[:300]
