"""What a program knows of its tables, and their definitions as statements."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from random import Random

from tests.fuzz.sql.names import Words
from tests.fuzz.sql.types import TYPES, Type

PLAIN_COLUMNS = ("id", "a", "b", "c", "d", "v", "n", "created", "name")
ODD_COLUMNS = (
    "select", "key", "a b", "a.b", "x`y", "é", "order", "Id", "日本", "1a", "`", "a,b", "(", "--", "/*", "a;b", "'", '"', "$", "#",
)  # fmt: skip
"""Names that are words or signs of SQL."""
RESERVED_COLUMNS = (
    "_op",
    "_ts",
    "_row",
    "_is_deleted",
    "_valid_from",
    "_gtid",
    "_absent",
    "_epoch",
    "_OP",
    "_file",
    "_pos",
    "_partition",
)
"""Names of the lake's own columns, and of Iceberg's metadata columns."""
TWINS = (
    ("σ", "ς"), ("σ", "ς"), ("σ", "ς"), ("s", "ſ"), ("k", "\u212a"), ("µ", "μ"), ("ß", "ẞ"), ("ı", "i"), ("é", "e\u0301"), ("ǆ", "ǅ"), ("θ", "ϑ"), ("ﬀ", "ff"),
    ("a", "а"), ("İ", "i\u0307"),
)  # fmt: skip
"""Names that some programs take for one, and others do not."""
TABLE_NAMES = ("t", "u", "w", "orders", "t2")
ODD_TABLES = (
    "select", "a.b", "a b", "x`y", "é", "日本", "T", "Orders", "_t", "1t", "t-1", "$t", "a/b", "a%b", "%", "table", "add", "if", "only", "ignore",
    "t#", "σ", "ς", ".", "..", "a'b", 'a"b', "a;b", "t_new", "t_old", "_t_gho", "t_del", "*", "?",
)  # fmt: skip


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    name: str
    type: Type
    nullable: bool = True
    generated: str = ""
    default: str = ""
    extra: str = ""
    unique: bool = False

    @property
    def sql(self) -> str:
        """Its definition after its name."""
        declared = self.type.name
        if not self.nullable:
            declared = declared.removesuffix(" NULL DEFAULT NULL")
        parts = [declared]
        if self.generated:
            return " ".join([declared.removesuffix(" NULL DEFAULT NULL"), self.generated, self.extra]).strip()
        if not self.nullable:
            parts.append("NOT NULL")
        if self.default:
            parts.append(f"DEFAULT {self.default}")
        if self.extra:
            parts.append(self.extra)
        return " ".join(parts)


@dataclass(frozen=True)
class Table:
    """A table as the program believes it to be."""

    database: str
    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()
    options: str = ""
    partitions: str = ""
    indexes: tuple[str, ...] = ()

    @property
    def pair(self) -> tuple[str, str]:
        """Database and name."""
        return self.database, self.name

    def column(self, name: str) -> Column:
        """Return a column."""
        return next(one for one in self.columns if one.name == name)

    @property
    def written(self) -> list[Column]:
        """Columns that statements may give values."""
        return [one for one in self.columns if not one.generated]

    def body(self, words: Words) -> str:
        """What stands between the parentheses of CREATE TABLE."""
        parts = [f"{words.column(one.name)} {one.sql}" for one in self.columns]
        if len(self.key) == 1 and self.column(self.key[0]).type.key == "{}" and words.random.random() < 0.5:
            at = [one.name for one in self.columns].index(self.key[0])
            parts[at] += words.random.choice([" PRIMARY KEY", " KEY", " primary key"])
        elif self.key:
            parts.append(f"PRIMARY KEY ({self.key_columns(words)})")
        parts += [f"KEY {words.column(name)} ({self._part(name, words)})" for name in self.indexes]
        parts += [f"UNIQUE ({self._part(one.name, words)})" for one in self.columns if one.unique]
        return ", ".join(parts)

    def key_columns(self, words: Words) -> str:
        """The columns of the primary key, as a key names them."""
        return ", ".join(self._part(name, words) for name in self.key)

    def _part(self, name: str, words: Words) -> str:
        return (self.column(name).type.key or "{}").format(words.column(name))


@dataclass
class Shapes:
    """Makes columns and tables.

    Args:
        random: of the program.
        flavor: of the server.
        only: features to which the program keeps; empty for all.
    """

    random: Random
    flavor: str
    only: tuple[str, ...] = ()
    types: list[Type] = field(default_factory=list)

    def __post_init__(self) -> None:
        families = [name for name in self.only if any(one.family == name for one in TYPES)]
        self.types = [one for one in TYPES if self.flavor in one.flavors and (not families or one.family in families)]

    def type(self, *, keyed: bool = False, family: str = "") -> Type:
        """Return any type, that a key may have, or of a family."""
        found = [one for one in self.types if (not keyed or one.key) and (not family or one.family == family)]
        return self.random.choices(found, [one.weight for one in found])[0]

    def column_name(self, taken: list[str]) -> str:
        """Return a name that the table does not have."""
        random = self.random
        while True:
            twins = [name for pair in TWINS if set(pair) & set(taken) for name in pair if name not in taken]
            pools = (
                PLAIN_COLUMNS,
                tuple(f"c{i}" for i in range(20)),
                ODD_COLUMNS,
                RESERVED_COLUMNS,
                tuple(itertools.chain(*TWINS)),
                twins,
            )
            name = random.choice(random.choices(pools, (54, 32, 4, 1, 4, 60 if twins else 0))[0])
            if name not in taken:
                return name

    def column(self, taken: list[str], others: tuple[Column, ...] = ()) -> Column:
        """Return a new column, sometimes generated from others."""
        random, name = self.random, self.column_name(taken)
        kind = self.type()
        nullable = random.random() < 0.7
        integers = [one for one in others if one.type.family == "integer" and not one.generated]
        if integers and random.random() < 0.12:
            base = "`" + random.choice(integers).name.replace("`", "``") + "`"
            how = random.choice(
                ["VIRTUAL", "STORED", "", "VIRTUAL", "PERSISTENT" if self.flavor == "mariadb" else "STORED"]
            )
            expression = random.choice([f"{base} + 1", f"CONCAT('x', {base})", f"COALESCE({base}, 0) * 2"])
            made = Type("VARCHAR(30)" if "CONCAT" in expression else "BIGINT", (), "generated", key="")
            return Column(
                name, made, generated=f"{random.choice(['GENERATED ALWAYS ', ''])}AS ({expression}) {how}".strip()
            )
        default = ""
        if kind.default and random.random() < 0.35:
            default = random.choice(kind.values)
        elif (
            kind.family in ("date", "stamp") and kind.name != "DATE" and "(" not in kind.name and random.random() < 0.1
        ):
            default = "CURRENT_TIMESTAMP"
        extra = ""
        if random.random() < 0.05:
            extra = "COMMENT 'a, b; (c) -- d'"
        elif random.random() < 0.06 and (nullable or default):
            extra = "INVISIBLE"
        return Column(name, kind, nullable, default=default, extra=extra)

    def table(self, database: str, name: str) -> Table:
        """Return a table with a key of any columns, or without one."""
        random = self.random
        columns: tuple[Column, ...] = ()
        for _ in range(random.choice([1, 2, 2, 3, 3, 4])):
            columns += (self.column([one.name for one in columns], columns),)
        key: tuple[str, ...] = ()
        if random.random() < 0.8:
            kind = next((one for one in self.types if one.name == "INT"), None)
            names = []
            if kind is not None and random.random() < 0.5:
                names = [self.column_name([one.name for one in columns])]
                columns = (Column(names[0], kind, nullable=False), *columns)
            able = [one for one in columns if one.type.key and not one.generated and one.name not in names]
            if able and (not names or random.random() < 0.35):
                names += [one.name for one in random.sample(able, min(len(able), random.choice([1, 1, 2])))]
            random.shuffle(names)
            key = tuple(names)
            columns = tuple(
                replace(one, nullable=False, extra="", default="" if one.default == "NULL" else one.default)
                if one.name in key
                else one
                for one in columns
            )
        made = Table(database, name, columns, key, self._options())
        if random.random() < 0.12:
            made = replace(made, partitions=self._partitions(made))
        return made

    def _options(self) -> str:
        random = self.random
        found = []
        for chance, choices in (
            (0.15, ["ENGINE=InnoDB", "ENGINE InnoDB", "engine = innodb"]),
            (0.12, ["ROW_FORMAT=DYNAMIC", "ROW_FORMAT=COMPACT", "ROW_FORMAT=REDUNDANT", "ROW_FORMAT=COMPRESSED"]),
            (
                0.2,
                [
                    "DEFAULT CHARSET=latin1",
                    "CHARACTER SET utf8mb4",
                    "COLLATE utf8mb4_bin",
                    "CHARSET=utf8mb3",
                    "DEFAULT CHARACTER SET = gbk",
                ],
            ),
            (0.08, ["COMMENT='t; (x'", "COMMENT ''", "AUTO_INCREMENT=5", "STATS_PERSISTENT=0"]),
        ):
            if random.random() < chance:
                found.append(random.choice(choices))
        return random.choice([" ", ", "]).join(found)

    def _partitions(self, table: Table) -> str:
        first = table.column(table.key[0]) if table.key else table.columns[0]
        name = "`" + first.name.replace("`", "``") + "`"
        if first.type.family == "integer" and not first.generated and len(table.key) < 2:
            return self.random.choice(
                [
                    f"PARTITION BY HASH ({name}) PARTITIONS 2",
                    f"PARTITION BY RANGE ({name}) (PARTITION p0 VALUES LESS THAN (2), PARTITION p1 VALUES LESS THAN MAXVALUE)",
                ]
            )
        return "PARTITION BY KEY () PARTITIONS 2" if table.key else ""
