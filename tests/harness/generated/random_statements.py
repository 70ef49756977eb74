"""Random statements over random tables, as data that can be printed, run again, and made smaller."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import strategies as st

from tests.harness.generated.random_tables import TYPES, Column, Table, tables

COMPRESSION = "binlog_transaction_compression"
"""Session variable of MySQL; MariaDB refuses it."""


@dataclass(frozen=True)
class Script:
    """The statements of a few tables.

    Args:
        tables: as they are at the end, with the columns that were added.
        statements: from the first CREATE TABLE on; a server may refuse one (a duplicate key, say), which changes nothing.
    """

    tables: tuple[Table, ...]
    statements: tuple[str, ...]

    @property
    def compressed(self) -> bool:
        """Whether a server that supports it writes compressed transactions."""
        return any(COMPRESSION in statement for statement in self.statements)

    def columns(self, table: str) -> dict[str, str]:
        """Return the declared types of the columns that a table has at the end."""
        (final,) = (each for each in self.tables if each.name == table)
        return {column.name: column.type.declared for column in final.columns}

    def _repr_pretty_(self, printer, _cycle) -> None:
        """Let hypothesis print statements that can be pasted into a client."""
        printer.text(";\n".join(["", *self.statements, ""]))


@st.composite
def scripts(draw: st.DrawFn, *, most_tables: int = 3, most_statements: int = 25) -> Script:
    """Draw tables, and statements that change them."""
    now = [draw(tables(f"t{i}")) for i in range(draw(st.integers(1, most_tables)))]
    statements = [f"SET SESSION {COMPRESSION} = ON"] if draw(st.integers(0, 3)) == 0 else []
    statements += [table.sql for table in now]
    statements += [_insert(draw, table) for table in now]
    for _ in range(draw(st.integers(1, most_statements))):
        i = draw(st.integers(0, len(now) - 1))
        kind = draw(st.sampled_from([*_DML, "alter", "transaction", "many", "none"]))
        if kind == "alter":
            now[i], sql = _altered(draw, now[i], f"c{100 + len(statements)}")
            statements.append(sql)
        elif kind == "transaction":
            statements += _transaction(draw, now)
        elif kind == "many":
            statements.append(_several_tables(draw, now))
        elif kind != "none":
            statements.append(_DML[kind](draw, now[i]))
    return Script(tuple(now), tuple(statements))


def _row(draw: st.DrawFn, table: Table) -> str:
    return f"({', '.join(draw(column.values) for column in table.columns)})"


def _names(table: Table) -> str:
    return ", ".join(column.name for column in table.columns)


def _insert(draw: st.DrawFn, table: Table, verb: str = "INSERT IGNORE") -> str:
    """IGNORE skips the rows whose keys exist already, not the statement."""
    rows = ", ".join(_row(draw, table) for _ in range(draw(st.integers(1, 5))))
    return f"{verb} INTO {table.name} ({_names(table)}) VALUES {rows}"


def _plain_insert(draw: st.DrawFn, table: Table) -> str:
    return _insert(draw, table, "INSERT")


def _replace(draw: st.DrawFn, table: Table) -> str:
    return _insert(draw, table, "REPLACE")


def _upsert(draw: st.DrawFn, table: Table) -> str:
    return f"{_insert(draw, table, 'INSERT')} ON DUPLICATE KEY UPDATE {_assignments(draw, table)}"


def _assignments(draw: st.DrawFn, table: Table, prefix: str = "") -> str:
    chosen = draw(st.lists(st.sampled_from(table.columns), min_size=1, max_size=3, unique=True))
    return ", ".join(f"{prefix}{column.name} = {draw(column.values)}" for column in chosen)


def _some(draw: st.DrawFn, table: Table) -> str:
    column = draw(st.sampled_from(table.columns))
    return f"ORDER BY {column.name} LIMIT {draw(st.integers(1, 4))}"


def _update(draw: st.DrawFn, table: Table) -> str:
    return f"UPDATE IGNORE {table.name} SET {_assignments(draw, table)} {_some(draw, table)}"


def _update_all(draw: st.DrawFn, table: Table) -> str:
    return f"UPDATE IGNORE {table.name} SET {_assignments(draw, table)}"


def _delete(draw: st.DrawFn, table: Table) -> str:
    return f"DELETE FROM {table.name} {_some(draw, table)}"


_DML = {
    "insert": _insert,
    "plain insert": _plain_insert,
    "replace": _replace,
    "upsert": _upsert,
    "update": _update,
    "update all": _update_all,
    "delete": _delete,
}


def _altered(draw: st.DrawFn, table: Table, name: str) -> tuple[Table, str]:
    """Add a column with a new name at a random place, or drop one that is not in the key."""
    free = [column for column in table.columns if column not in table.key]
    if len(free) > 1 and draw(st.integers(0, 3)) == 0:
        dropped = draw(st.sampled_from(free))
        columns = tuple(column for column in table.columns if column != dropped)
        return replace(table, columns=columns), f"ALTER TABLE {table.name} DROP COLUMN {dropped.name}"
    column = Column(name, draw(st.sampled_from(TYPES)))
    at = draw(st.integers(0, len(table.columns)))
    where = f" AFTER {table.columns[at - 1].name}" if at else " FIRST"
    columns = (*table.columns[:at], column, *table.columns[at:])
    return replace(table, columns=columns), f"ALTER TABLE {table.name} ADD COLUMN {column.sql}{where}"


def _transaction(draw: st.DrawFn, now: list[Table]) -> list[str]:
    """Statements on any tables, some rolled back to a savepoint."""

    def some() -> list[str]:
        chosen = draw(st.lists(st.tuples(st.sampled_from(sorted(_DML)), st.sampled_from(now)), max_size=4))
        return [_DML[kind](draw, table) for kind, table in chosen]

    middle = ["SAVEPOINT s", *some(), *(["ROLLBACK TO SAVEPOINT s"] if draw(st.booleans()) else []), *some()]
    return [
        "BEGIN",
        *some(),
        *(middle if draw(st.booleans()) else []),
        draw(st.sampled_from(["COMMIT"] * 3 + ["ROLLBACK"])),
    ]


def _several_tables(draw: st.DrawFn, now: list[Table]) -> str:
    """One statement that changes rows of two tables, or of one through a join with itself."""
    first, second = draw(st.sampled_from(now)), draw(st.sampled_from(now))
    if first == second:
        return _update_all(draw, first)
    if draw(st.booleans()):
        return f"DELETE {first.name}, {second.name} FROM {first.name} JOIN {second.name} ON RAND() < 0.2"
    sets = f"{_assignments(draw, first, f'{first.name}.')}, {_assignments(draw, second, f'{second.name}.')}"
    return f"UPDATE IGNORE {first.name}, {second.name} SET {sets}"
