"""Makes programs: what a statement may be depends on what the server took before."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace
from random import Random

from tests.fuzz.sql.alters import Alters
from tests.fuzz.sql.changes import Changes
from tests.fuzz.sql.names import Words
from tests.fuzz.sql.program import MAIN, SIDE, Part, Statement
from tests.fuzz.sql.run import Feed
from tests.fuzz.sql.tables import ODD_TABLES, TABLE_NAMES, Shapes, Table

Steps = Generator[Part | Statement, bool, bool]
"""Statements; the result is whether the last one was taken."""
MODES = (
    "''", "''", "''", "'NO_ZERO_DATE'", "'STRICT_ALL_TABLES'", "'ANSI_QUOTES'", "'NO_BACKSLASH_ESCAPES'", "'ANSI_QUOTES,ALLOW_INVALID_DATES'",
    "'NO_AUTO_VALUE_ON_ZERO,PAD_CHAR_TO_FULL_LENGTH'", "'ALLOW_INVALID_DATES'", "'ANSI'", "'PIPES_AS_CONCAT,IGNORE_SPACE'",
)  # fmt: skip
OTHER = "other"
"""A table that some programs have, and that no statement alters."""
FEATURES = (
    "dml",
    "alter",
    "remake",
    "rename",
    "truncate",
    "drop",
    "online",
    "settings",
    "transaction",
    "new",
    "noise",
    "sides",
    "partitions",
)


class Maker:
    """Makes one program.

    Args:
        random: from its seed.
        flavor: of the server.
        only: features and families of types to keep to; empty for all.
    """

    def __init__(self, random: Random, flavor: str, only: tuple[str, ...] = ()) -> None:
        self.random, self.flavor, self.only = random, flavor, only
        self.words = Words(random, flavor, database=MAIN, dots=0.4 if flavor == "mariadb" else 0.01)
        self.shapes = Shapes(random, flavor, only)
        self.changes = Changes(random, self.words)
        self.alters = Alters(random, self.words, self.shapes)
        self.tables: dict[tuple[str, str], Table] = {}
        actions: list[tuple[str, Callable[[], Steps], int]] = [
            ("dml", self._dml, 40), ("alter", self._alter, 22), ("remake", self._remake, 5), ("rename", self._rename, 4),
            ("truncate", self._truncate, 4), ("drop", self._drop, 2), ("online", self._online, 3), ("settings", self._settings, 4),
            ("transaction", self._transaction, 4), ("new", self._new, 6), ("noise", self._noise, 5), ("sides", self._sides, 2),
            ("partitions", self._partition, 3),
        ]  # fmt: skip
        wanted = {name for name in only if name in FEATURES}
        self._actions = [one for one in actions if not wanted or one[0] in wanted or one[0] == "dml"]

    def feed(self) -> Feed:
        """Yield the program."""
        random = self.random
        yield Part("snapshot")
        yield from self._settings(first=True)
        # Also without it a run that fails, or a cursor that stays, is seen.
        has_other = random.random() < 0.2
        if has_other:
            yield Statement(f"CREATE TABLE {OTHER} (id INT AUTO_INCREMENT PRIMARY KEY)")
        for _ in range(random.choice([1, 1, 2])):
            yield from self._new()
            yield from self._dml()
        for number in range(random.choice([1, 2, 2, 3])):
            yield Part(f"changes {number + 1}")
            for _ in range(random.choice([2, 3, 4, 6])):
                _, make, _ = random.choices(self._actions, [weight for *_, weight in self._actions])[0]
                yield from make()
            if has_other:
                yield Statement(f"INSERT INTO {OTHER} VALUES (NULL)")

    def _do(self, sql: str, session: str = "a", *, plain: bool = False) -> Steps:
        return (yield Statement(sql if plain else self.words.spaced(sql), session))

    def _any(self) -> Table | None:
        return self.random.choice(list(self.tables.values())) if self.tables else None

    def _name(self) -> tuple[str, str]:
        random = self.random
        database = SIDE if random.random() < 0.1 and any(one == SIDE for one, _ in self.tables) else MAIN
        free = [name for name in TABLE_NAMES if (database, name) not in self.tables]
        if not free or random.random() < 0.12:
            free = [name for name in ODD_TABLES if (database, name) not in self.tables]
        return database, random.choice(free)

    # --- tables

    def _new(self) -> Steps:
        table = self.shapes.table(*self._name())
        return (yield from self._create(table))

    def _create(self, table: Table) -> Steps:
        random, words = self.random, self.words
        head = "CREATE " + (words.maybe(0.12, "OR REPLACE") if self.flavor == "mariadb" else "") + "TABLE "
        if "REPLACE" not in head:
            head += words.maybe(0.15, "IF NOT EXISTS", "if not exists")
        sql = f"{head}{words.table(*table.pair)} ({table.body(words)}) {table.options} {table.partitions}".strip()
        other = self._any()
        if other is not None and random.random() < 0.08:
            like = random.choice([f"LIKE {words.table(*other.pair)}", f"(LIKE {words.table(*other.pair)})"])
            sql, table = (
                f"{head}{words.table(*table.pair)} {like}",
                replace(other, database=table.database, name=table.name),
            )
        elif other is not None and not other.partitions and random.random() < 0.06:
            sql = (
                f"{head}{words.table(*table.pair)} {random.choice(['AS ', ''])}SELECT * FROM {words.table(*other.pair)}"
            )
            table = replace(other, database=table.database, name=table.name, key=(), indexes=())
        taken = yield from self._do(sql)
        if taken:
            self.tables[table.pair] = table
            if random.random() < 0.7:
                yield from self._do(self.changes.insert(table))
        return taken

    def _drop(self) -> Steps:
        table = self._any()
        if table is None:
            return False
        words = self.words
        word = self.random.choice(["TABLE", "TABLE", "TABLE", "TABLES"])
        end = self.random.choice(["", "", "", " RESTRICT", " CASCADE"])
        ghost = f"{words.table(MAIN, 'never')}, " if self.random.random() < 0.1 else ""
        exists = "IF EXISTS " if ghost else words.maybe(0.3, "IF EXISTS")
        taken = yield from self._do(f"DROP {word} {exists}{ghost}{words.table(*table.pair)}{end}")
        if taken:
            del self.tables[table.pair]
        return taken

    def _remake(self) -> Steps:
        """The table is dropped and made again, as it was or otherwise."""
        table = self._any()
        if table is None:
            return False
        words = self.words
        how = self.random.random()
        made = replace(self.shapes.table(*table.pair)) if how < 0.6 else table
        if how >= 0.9 and table.key:
            made = replace(table, key=())
        if self.flavor == "mariadb" and self.random.random() < 0.3:
            taken = yield from self._do(f"CREATE OR REPLACE TABLE {words.table(*made.pair)} ({made.body(words)})")
            if taken:
                self.tables[made.pair] = made
            return taken
        if not (yield from self._do(f"DROP TABLE {words.maybe(0.4, 'IF EXISTS')}{words.table(*table.pair)}")):
            return False
        del self.tables[table.pair]
        return (yield from self._create(made))

    def _rename(self) -> Steps:
        table = self._any()
        if table is None:
            return False
        words, random = self.words, self.random
        other = random.choice(list(self.tables.values()))
        if other is not table and random.random() < 0.5:
            third = words.table(MAIN, "swap")
            steps = [(table, third), (other, words.table(*table.pair)), (third, words.table(*other.pair))]
            pairs = ", ".join(f"{one if isinstance(one, str) else words.table(*one.pair)} TO {to}" for one, to in steps)
            taken = yield from self._do(f"RENAME TABLE {pairs}")
            if taken:
                self.tables[table.pair] = replace(other, database=table.database, name=table.name)
                self.tables[other.pair] = replace(table, database=other.database, name=other.name)
            return taken
        name = self._name()
        if random.random() < 0.5:
            exists = words.maybe(0.1, "IF EXISTS") if self.flavor == "mariadb" else ""
            sql = f"RENAME {random.choice(['TABLE', 'TABLE', 'TABLES'])} {exists}{words.table(*table.pair)} TO {words.table(*name)}"
        else:
            sql = f"{self.alters.head(table)} RENAME {random.choice(['TO ', 'AS ', '', '= '])}{words.table(*name)}"
        taken = yield from self._do(sql)
        if taken:
            del self.tables[table.pair]
            self.tables[name] = replace(table, database=name[0], name=name[1])
        return taken

    def _alter(self) -> Steps:
        table = self._any()
        if table is None:
            return False
        made, sql = self.alters.alter(table)
        taken = yield from self._do(sql)
        if taken:
            self.tables[table.pair] = made
            if self.random.random() < 0.6:
                yield from self._do(self.changes.any(made))
        return taken

    def _truncate(self) -> Steps:
        table = self._any()
        if table is None:
            return False
        taken = yield from self._do(f"TRUNCATE {self.words.maybe(0.7, 'TABLE')}{self.words.table(*table.pair)}")
        if self.random.random() < 0.6:
            yield from self._do(self.changes.insert(table))
        return taken

    def _partition(self) -> Steps:
        table = next((one for one in self.tables.values() if one.partitions), None)
        if table is None:
            return (yield from self._dml())
        action = self.random.choice(
            [
                "TRUNCATE PARTITION p0",
                "DROP PARTITION p0",
                "REBUILD PARTITION ALL",
                "COALESCE PARTITION 1",
                "ADD PARTITION PARTITIONS 1",
                "TRUNCATE PARTITION ALL",
            ]
        )
        taken = yield from self._do(f"{self.alters.head(table)} {action}")
        yield from self._do(self.changes.any(table))
        return taken

    def _online(self) -> Steps:
        """What gh-ost and pt-online-schema-change send."""
        table = next((one for one in self.tables.values() if one.key and one.database == MAIN), None)
        if table is None or len(table.name) > 40:
            return False
        ghost = self.random.random() < 0.5
        shadow = replace(table, name=f"_{table.name}_gho" if ghost else f"_{table.name}_new")
        old = f"_{table.name}_del" if ghost else f"_{table.name}_old"
        new, name, before = (self._quoted(one) for one in (shadow.name, table.name, old))
        if not (yield from self._do(f"CREATE TABLE {MAIN}.{new} LIKE {MAIN}.{name}", plain=True)):
            return False
        made, sql = self.alters.alter(shadow, keeps_names=True)
        if (yield from self._do(sql)):
            shadow = made
        common = [one for one in shadow.written if any(one.name == other.name for other in table.written)]
        names = ", ".join(self._quoted(one.name) for one in common)
        copy = f"INTO {MAIN}.{new} ({names}) SELECT {names} FROM {MAIN}.{name}"
        yield from self._do(
            f"INSERT {self.random.choice(['LOW_PRIORITY IGNORE', 'IGNORE'])} {copy} LOCK IN SHARE MODE", plain=True
        )
        # The tools carry over what changes meanwhile, row by row: here the copy is made again.
        yield from self._do(self.changes.any(table))
        yield from self._do(f"DELETE FROM {MAIN}.{new}", plain=True)
        if not (yield from self._do(f"REPLACE {copy}", plain=True)):
            yield from self._do(f"DROP TABLE {MAIN}.{new}", plain=True)  # a tool without its rows does not swap
            return False
        taken = yield from self._do(
            f"RENAME {self.random.choice(['/* gh-ost */ TABLE', 'TABLE'])} {MAIN}.{name} TO {MAIN}.{before}, {MAIN}.{new} TO {MAIN}.{name}",
            plain=True,
        )
        if taken:
            self.tables[table.pair] = replace(shadow, name=table.name)
            yield from self._do(f"DROP TABLE IF EXISTS {MAIN}.{before}", plain=True)
            yield from self._do(self.changes.any(self.tables[table.pair]))
        return taken

    def _quoted(self, name: str) -> str:
        return "`" + name.replace("`", "``") + "`"

    # --- rows

    def _dml(self) -> Steps:
        taken = False
        for _ in range(self.random.choice([1, 2, 3])):
            table = self._any()
            if table is None:
                return False
            two = self._any()
            if two is not None and two is not table and self.random.random() < 0.06:
                taken = yield from self._do(self.changes.of_two(table, two))
            else:
                taken = yield from self._do(self.changes.any(table))
        return taken

    def _transaction(self) -> Steps:
        """One or two sessions, whose statements alternate."""
        sessions = ["a", "b"] if self.random.random() < 0.5 else ["a"]
        for session in sessions:
            yield from self._do(self.random.choice(["BEGIN", "START TRANSACTION", "begin work"]), session)
        saved = False
        for _ in range(self.random.randint(1, 4)):
            table = self._any()
            if table is not None:
                yield from self._do(self.changes.any(table), self.random.choice(sessions))
            if self.random.random() < 0.2:
                saved = yield from self._do("ROLLBACK TO SAVEPOINT s" if saved else "SAVEPOINT s", "a")
        for session in sessions:
            yield from self._do(self.random.choice(["COMMIT", "COMMIT", "COMMIT", "ROLLBACK"]), session)
        return True

    # --- what is around them

    def _settings(self, *, first: bool = False) -> Steps:
        random = self.random
        if first and random.random() < 0.4:
            return True
        choices = [f"SET SESSION sql_mode = {random.choice(MODES)}"] * (8 if first else 3)
        choices += [
            f"SET SESSION binlog_row_image = {random.choice(['MINIMAL', 'NOBLOB', 'FULL'])}",
            f"SET NAMES {random.choice(['utf8mb4', 'utf8mb3', 'utf8mb4 COLLATE utf8mb4_bin'])}",
            f"SET time_zone = '{random.choice(['+00:00', '+14:00', '-05:30'])}'",
            "FLUSH BINARY LOGS",
            "SET foreign_key_checks = 0",
            f"SET character_set_client = {random.choice(['utf8mb4', 'utf8mb3'])}",
        ]
        if self.flavor == "mysql":
            choices += [
                "SET binlog_transaction_compression = ON",
                "SET sql_generate_invisible_primary_key = ON",
                "SET binlog_rows_query_log_events = ON",
                "SET SESSION binlog_row_value_options = 'PARTIAL_JSON'",
            ]
        sql = random.choice(choices)
        taken = yield from self._do(sql, plain=True)
        if taken and "sql_mode" in sql:
            self.words.ansi = "ANSI" in sql
        return taken

    def _noise(self) -> Steps:
        """Statements that change no captured table, or no row of one."""
        random, words = self.random, self.words
        table = self._any()
        if table is None:
            return False
        name = words.table(*table.pair)
        column = random.choice(table.columns)
        part = (column.type.key or "{}").format(words.column(column.name))
        choices = [
            f"CREATE {words.maybe(0.3, 'OR REPLACE')}VIEW {words.table(MAIN, 'seen')} AS SELECT * FROM {name}",
            f"DROP VIEW IF EXISTS {words.table(MAIN, 'seen')}",
            f"CREATE {words.maybe(0.3, 'UNIQUE')}INDEX {words.column('ix')} ON {name} ({part})",
            f"DROP INDEX {words.column('ix')} ON {name}",
            f"ANALYZE TABLE {name}",
            f"OPTIMIZE {words.maybe(0.3, 'LOCAL')}TABLE {name}",
            f"CREATE TEMPORARY TABLE {words.table(MAIN, 'scratch')} (x INT)",
            f"DROP TEMPORARY TABLE IF EXISTS {words.table(MAIN, 'scratch')}",
            f"LOCK TABLES {name} WRITE",
            "UNLOCK TABLES",
            f"ALTER DATABASE {MAIN} CHARACTER SET {random.choice(['latin1', 'utf8mb4', 'gbk'])}",
            f"CREATE TRIGGER tr BEFORE INSERT ON {name} FOR EACH ROW SET @x = 1",
            "DROP TRIGGER IF EXISTS tr",
            "CREATE OR REPLACE PROCEDURE p() SELECT 1" if self.flavor == "mariadb" else "CREATE PROCEDURE p() SELECT 1",
            "FLUSH BINARY LOGS",
            f"CREATE TABLE IF NOT EXISTS {name} (zz INT)",
        ]
        sql = random.choice(choices)
        taken = yield from self._do(sql)
        if taken and sql.startswith("LOCK"):
            yield from self._do(self.changes.any(table))
            yield from self._do("UNLOCK TABLES")
        return taken

    def _sides(self) -> Steps:
        """A second captured database, which comes and goes."""
        words, random = self.words, self.random
        word = random.choice(["DATABASE", "SCHEMA"])
        if any(database == SIDE for database, _ in self.tables) and random.random() < 0.5:
            taken = yield from self._do(f"DROP {word} {words.maybe(0.3, 'IF EXISTS')}{SIDE}")
            if taken:
                self.tables = {pair: table for pair, table in self.tables.items() if pair[0] != SIDE}
            return taken
        yield from self._do(f"CREATE {word} {words.maybe(0.5, 'IF NOT EXISTS')}{SIDE}")
        return (yield from self._create(self.shapes.table(SIDE, random.choice(TABLE_NAMES))))
