"""ALTER TABLE and its relatives: each with the table that it leaves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

from tests.fuzz.sql.names import Words
from tests.fuzz.sql.tables import Column, Shapes, Table

Altered = tuple[Table, str]


class Alters:
    """Makes the actions of ALTER TABLE.

    Args:
        random: of the program.
        words: spells names.
        shapes: makes columns.
    """

    def __init__(self, random: Random, words: Words, shapes: Shapes) -> None:
        self.random, self.words, self.shapes = random, words, shapes
        self._actions: list[tuple[Callable[[Table], Altered], int]] = [
            (self._add, 7), (self._add_many, 1), (self._drop, 4), (self._modify, 4), (self._change, 3), (self._rename, 4),
            (self._again, 2), (self._default, 2), (self._primary, 2), (self._index, 2), (self._move, 1), (self._noise, 3),
            (self._visible, 1), (self._charset, 1),
        ]  # fmt: skip

    def alter(self, table: Table, *, keeps_names: bool = False) -> Altered:
        """Return one statement of one to three actions; ``keeps_names`` gives no column another name or key."""
        random = self.random
        actions: list[str] = []
        able = [
            one
            for one in self._actions
            if not keeps_names or one[0] in (self._add, self._drop, self._index, self._noise, self._move)
        ]
        for _ in range(random.choice([1, 1, 1, 2, 3])):
            make = random.choices([one for one, _ in able], [weight for _, weight in able])[0]
            changed, action = make(table)
            if action:
                table = changed
                actions.append(action)
        if not actions:
            actions = ["FORCE"]
        return table, f"{self.head(table)} {', '.join(actions)}{self._tail()}"

    def head(self, table: Table) -> str:
        """Return the statement's beginning, up to the table's name."""
        words = self.words
        maria = self.words.flavor == "mariadb"
        kind = words.maybe(0.1, "ONLINE", "IGNORE") if maria else ""
        exists = words.maybe(0.12, "IF EXISTS") if maria else ""
        wait = self.random.choice([" NOWAIT", " WAIT 3"]) if maria and self.random.random() < 0.06 else ""
        return f"ALTER {kind}TABLE {exists}{words.table(*table.pair)}{wait}"

    def _tail(self) -> str:
        return self.random.choice(
            [*[""] * 9, ", ALGORITHM=COPY", ", LOCK=DEFAULT", ", ALGORITHM = DEFAULT, LOCK = SHARED"]
        )

    def _add(self, table: Table) -> Altered:
        column = self.shapes.column([one.name for one in table.columns], table.columns)
        at, where = self._place(table)
        exists = self.words.maybe(0.15, "IF NOT EXISTS") if self.words.flavor == "mariadb" else ""
        word = self.words.maybe(0.6, "COLUMN")
        definition = f"{self.words.column(column.name)} {column.sql}"
        if not exists and self.random.random() < 0.08:
            return replace(table, columns=(*table.columns, column)), f"ADD {word}({definition})"
        columns = (*table.columns[:at], column, *table.columns[at:])
        return replace(table, columns=columns), f"ADD {word}{exists}{definition}{where}"

    def _add_many(self, table: Table) -> Altered:
        first = self.shapes.column([one.name for one in table.columns], table.columns)
        second = self.shapes.column([*(one.name for one in table.columns), first.name])
        body = ", ".join(f"{self.words.column(one.name)} {one.sql}" for one in (first, second))
        return replace(table, columns=(*table.columns, first, second)), f"ADD {self.words.maybe(0.5, 'COLUMN')}({body})"

    def _place(self, table: Table) -> tuple[int, str]:
        at = self.random.choice([len(table.columns), len(table.columns), *range(len(table.columns) + 1)])
        if at == len(table.columns) and self.random.random() < 0.7:
            return at, ""
        return at, f" AFTER {self.words.column(table.columns[at - 1].name)}" if at else " FIRST"

    def _free(self, table: Table) -> list[Column]:
        return [one for one in table.columns if one.name not in table.key and not one.generated]

    def _drop(self, table: Table) -> Altered:
        free = [one for one in table.columns if one.name not in table.key]
        if not free or len(table.columns) < 2:
            return table, ""
        column = self.random.choice(free)
        exists = self.words.maybe(0.15, "IF EXISTS") if self.words.flavor == "mariadb" else ""
        columns = tuple(one for one in table.columns if one != column)
        return replace(
            table, columns=columns
        ), f"DROP {self.words.maybe(0.7, 'COLUMN')}{exists}{self.words.column(column.name)}"

    def _again(self, table: Table) -> Altered:
        """A column is dropped, and one of its name added, in one statement."""
        free = self._free(table)
        if not free or len(table.columns) < 2:
            return table, ""
        column = self.random.choice(free)
        made = replace(self.shapes.column([one.name for one in table.columns]), name=column.name)
        columns = tuple(one for one in table.columns if one != column)
        sql = f"DROP {self.words.maybe(0.7, 'COLUMN')}{self.words.column(column.name)}, ADD COLUMN {self.words.column(column.name)} {made.sql}"
        return replace(table, columns=(*columns, made)), sql

    def _other_type(self, column: Column) -> Column:
        family = column.type.family if self.random.random() < 0.75 else ""
        kind = self.shapes.type(family=family if any(one.family == family for one in self.shapes.types) else "")
        return replace(column, type=kind, default="", extra="")

    def _modify(self, table: Table) -> Altered:
        if not (free := self._free(table) if self.random.random() < 0.85 else list(table.written)):
            return table, ""
        column = self.random.choice(free)
        made = self._other_type(column)
        exists = self.words.maybe(0.15, "IF EXISTS") if self.words.flavor == "mariadb" else ""
        columns = tuple(made if one == column else one for one in table.columns)
        _, where = self._place(table) if self.random.random() < 0.2 else (0, "")
        return replace(
            table, columns=columns
        ), f"MODIFY {self.words.maybe(0.6, 'COLUMN')}{exists}{self.words.column(column.name)} {made.sql}{where}"

    def _change(self, table: Table) -> Altered:
        column = self.random.choice(table.columns)
        if column.generated:
            return table, ""
        name = (
            self.shapes.column_name([one.name for one in table.columns]) if self.random.random() < 0.8 else column.name
        )
        made = replace(column if self.random.random() < 0.6 else self._other_type(column), name=name)
        sql = f"CHANGE {self.words.maybe(0.6, 'COLUMN')}{self.words.column(column.name)} {self.words.column(name)} {made.sql}"
        return self._renamed(table, column, made), sql

    def _rename(self, table: Table) -> Altered:
        column = self.random.choice(table.columns)
        made = replace(column, name=self.shapes.column_name([one.name for one in table.columns]))
        return self._renamed(
            table, column, made
        ), f"RENAME COLUMN {self.words.column(column.name)} TO {self.words.column(made.name)}"

    def _renamed(self, table: Table, column: Column, made: Column) -> Table:
        columns = tuple(made if one == column else one for one in table.columns)
        key = tuple(made.name if name == column.name else name for name in table.key)
        indexes = tuple(made.name if name == column.name else name for name in table.indexes)
        return replace(table, columns=columns, key=key, indexes=indexes)

    def _default(self, table: Table) -> Altered:
        able = [one for one in table.written if one.type.default]
        if not able:
            return table, ""
        column = self.random.choice(able)
        if column.default and self.random.random() < 0.5:
            made, end = replace(column, default=""), "DROP DEFAULT"
        else:
            value = self.random.choice(column.type.values)
            made, end = replace(column, default=value), f"SET DEFAULT {value}"
        columns = tuple(made if one == column else one for one in table.columns)
        return replace(
            table, columns=columns
        ), f"ALTER {self.words.maybe(0.5, 'COLUMN')}{self.words.column(column.name)} {end}"

    def _primary(self, table: Table) -> Altered:
        able = [one for one in table.columns if one.type.key and not one.generated]
        if not able:
            return table, ""
        if table.key and self.random.random() < 0.3:
            return replace(table, key=()), "DROP PRIMARY KEY"
        chosen = tuple(one.name for one in self.random.sample(able, min(len(able), self.random.choice([1, 1, 2]))))
        made = replace(
            table,
            key=chosen,
            columns=tuple(replace(one, nullable=False) if one.name in chosen else one for one in table.columns),
        )
        drop = "DROP PRIMARY KEY, " if table.key else ""
        name = self.words.maybe(0.1, "CONSTRAINT pk", "CONSTRAINT")
        return made, f"{drop}ADD {name}PRIMARY KEY ({made.key_columns(self.words)})"

    def _index(self, table: Table) -> Altered:
        able = [one for one in table.columns if one.type.key]
        if table.indexes and self.random.random() < 0.4:
            name = self.random.choice(table.indexes)
            return replace(
                table, indexes=tuple(one for one in table.indexes if one != name)
            ), f"DROP {self.random.choice(['KEY', 'INDEX'])} {self.words.column(name)}"
        if not able:
            return table, ""
        column = self.random.choice(able)
        part = column.type.key.format(self.words.column(column.name))
        return table, f"ADD {self.random.choice(['INDEX', 'KEY', 'UNIQUE', 'UNIQUE KEY'])} ({part})"

    def _move(self, table: Table) -> Altered:
        column = self.random.choice(table.columns)
        _, where = self._place(table)
        if column.generated or not where or self.words.column(column.name) in where:
            return table, ""
        return table, f"MODIFY {self.words.column(column.name)} {column.sql}{where}"

    def _visible(self, table: Table) -> Altered:
        column = self.random.choice(table.columns)
        if self.words.flavor == "mysql":
            return (
                table,
                f"ALTER COLUMN {self.words.column(column.name)} SET {self.random.choice(['INVISIBLE', 'VISIBLE'])}",
            )
        return (
            (table, "")
            if column.generated
            else (table, f"MODIFY {self.words.column(column.name)} {column.sql} INVISIBLE")
        )

    def _charset(self, table: Table) -> Altered:
        charset = self.random.choice(["utf8mb4", "latin1", "utf8mb3", "gbk", "utf8mb4 COLLATE utf8mb4_bin"])
        return table, self.random.choice(
            [f"CONVERT TO CHARACTER SET {charset}", f"DEFAULT CHARACTER SET {charset}", f"CHARSET={charset}"]
        )

    def _noise(self, table: Table) -> Altered:
        choices = [
            "COMMENT = 'x'",
            "ENGINE=InnoDB",
            "FORCE",
            "ROW_FORMAT=DYNAMIC",
            "AUTO_INCREMENT = 100",
            "STATS_PERSISTENT=1",
            "ENABLE KEYS",
        ]
        choices.append(f"ORDER BY {self.words.column(table.columns[0].name)}")
        if table.partitions:
            choices += ["REMOVE PARTITIONING", "REBUILD PARTITION ALL"]
        return table, self.random.choice(choices)
