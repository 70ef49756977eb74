"""Law: what the source file masks is stored in clear under no name, after any RENAME, copy, swap and ALTER of its table."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from cdc_lib.binlog.ddl.ddl import meaning
from cdc_lib.binlog.ddl.masked_rows import MaskedRows
from cdc_lib.binlog.ddl.statement import Statement
from cdc_lib.config import SourceConfig
from cdc_lib.drain.exclusions import hiding_of
from cdc_lib.errors import MaskLost
from cdc_lib.model.table_name import TableName

TABLES = ["customers", "staff", "bak", "customers_2026", "_customers_old", "_customers_gho", "_staff_new"]
COLUMNS = ["mail", "card", "m", "mail_2"]
PATTERNS = ["shop.customers", "shop.staff", "shop.bak", "shop.customers*", "shop.*", "/^shop[.]_?(staff|customers)/"]
COLUMN_PATTERNS = ["mail", "card", "mail*", "*", "/^m/", "m"]


@st.composite
def configs(draw):
    masks = [
        {"tables": tables, "columns": list(columns), "mask": "redact"}
        for tables, columns in draw(
            st.lists(
                st.tuples(st.sampled_from(PATTERNS), st.sets(st.sampled_from(COLUMN_PATTERNS), min_size=1)), max_size=3
            )
        )
    ]
    lists = st.fixed_dictionaries(
        {"tables": st.sampled_from(PATTERNS)},
        optional={"exclude": st.sampled_from([["mail"], ["card", "mail*"]]), "include": st.just(["id", "mail_2"])},
    )
    return SourceConfig(
        source="s", server={"host": "h", "user": "u", "password_env": "P"},
        tables={"include": ["shop.*"], "online_schema_change": draw(st.booleans())},
        store={"url": "file:///s"}, lake={"type": "jdbc", "uri": "jdbc:sqlite:/c", "warehouse": "file:///l"},
        masks=masks, columns=draw(st.lists(lists, max_size=2)),
    )  # fmt: skip


@dataclass
class World:
    """The tables of a server: which of their columns hold values that the file hid when they were written.

    Args:
        hides: whether the file hides a column of a table.
        elsewhere: those of the columns that a rule of the file hides by name.
        tables: by name, columns and whether they hold such values.
    """

    hides: object
    elsewhere: object
    tables: dict[str, dict[str, bool]] = field(default_factory=dict)

    def settle(self):
        for name, columns in self.tables.items():
            for column in columns:
                columns[column] |= self.hides(("shop", name), column)

    def random(self, draw):
        """Make one change; returns the statement that the server logs for it."""
        there, free = sorted(self.tables), [name for name in TABLES if name not in self.tables]
        kinds = [*(["create"] if free else []), *(["drop", "column", "exchange"] if there else []),
                 *(["rename", "like", "select", "both"] if there and free else [])]  # fmt: skip
        return getattr(self, f"_{draw(st.sampled_from(kinds))}")(draw, there, free)

    def _create(self, draw, _there, free):
        name, columns = draw(st.sampled_from(free)), draw(st.sets(st.sampled_from(COLUMNS[:2]), min_size=1))
        self.tables[name] = dict.fromkeys(sorted(columns), False)
        return f"CREATE TABLE {name} (id INT PRIMARY KEY, {', '.join(f'{one} INT' for one in sorted(columns))})"

    def _drop(self, draw, there, _free):
        name = draw(st.sampled_from(there))
        del self.tables[name]
        return f"DROP TABLE `{name}`"

    def _rename(self, draw, _there, _free):
        pairs = []
        for _ in range(draw(st.integers(1, 3))):
            old = draw(st.sampled_from(sorted(self.tables)))
            new = draw(st.sampled_from([name for name in TABLES if name not in self.tables]))
            self.tables[new] = self.tables.pop(old)
            pairs.append(f"{old} TO shop.{new}")
        return f"RENAME TABLE {', '.join(pairs)}"

    def _like(self, draw, there, free):
        old, new = draw(st.sampled_from(there)), draw(st.sampled_from(free))
        self.tables[new] = dict(self.tables[old])  # its rows follow by INSERT … SELECT
        return draw(
            st.sampled_from(["CREATE TABLE {} LIKE {}", "CREATE TABLE IF NOT EXISTS {} (LIKE shop.{})"])
        ).format(new, old)

    def _select(self, draw, there, free):
        old, new = draw(st.sampled_from(there)), draw(st.sampled_from(free))
        # The log does not say of which table: a column is known by its name alone, where a rule names it.
        shown = {c: bad for c, bad in self.tables[old].items() if not bad or self.elsewhere([c])}
        self.tables[new] = shown
        columns = "".join(f", `{one}` int DEFAULT NULL" for one in shown)
        return f"CREATE TABLE `{new}` (\n  `id` int NOT NULL{columns},\n  PRIMARY KEY (`id`)\n) START TRANSACTION"

    def _column(self, draw, there, _free):
        name = draw(st.sampled_from(there))
        return f"ALTER TABLE {name} {self._renamed(draw, name)}"

    def _both(self, draw, there, free):
        old, new = draw(st.sampled_from(there)), draw(st.sampled_from(free))
        clause = self._renamed(draw, old)
        self.tables[new] = self.tables.pop(old)
        return f"ALTER TABLE {old} {clause}, RENAME TO {new}"

    def _renamed(self, draw, name):
        columns = self.tables[name]
        free = [one for one in COLUMNS if one not in columns]
        if not columns or not free:
            return "ADD x INT"
        old, new = draw(st.sampled_from(sorted(columns))), draw(st.sampled_from(free))
        columns[new] = columns.pop(old)
        return draw(st.sampled_from(["CHANGE {} {} BIGINT", "RENAME COLUMN {} TO {}"])).format(old, new)

    def _exchange(self, draw, there, _free):
        one, other = draw(st.sampled_from(there)), draw(st.sampled_from(there))
        if one == other or self.tables[one].keys() != self.tables[other].keys():
            return f"ALTER TABLE {one} ADD x INT"
        self.tables[one], self.tables[other] = self.tables[other], self.tables[one]
        return f"ALTER TABLE {one} EXCHANGE PARTITION p WITH TABLE {other}"


@settings(max_examples=400, deadline=None)
@given(configs(), st.data())
def test_a_column_that_the_file_masks_is_shown_under_no_name(config, data):
    """Each captured table that holds such values hides them, or is quarantined; in one window, or over many."""
    hiding = hiding_of(config)
    if hiding is None:
        return
    world, lost = World(hiding.hides, hiding.elsewhere), {}
    masked = MaskedRows(hiding)
    for _ in range(data.draw(st.integers(1, 12))):
        world.settle()
        text = world.random(data.draw)
        if config.tables.captures("shop", "_customers_old") and data.draw(st.booleans()):
            masked = MaskedRows(hiding)  # another window knows the quarantined tables alone
            for table, rows_of in lost.items():
                masked.lost(table, rows_of)
        statement = Statement(text, "shop", mariadb=False)
        while True:
            try:
                masked.take(meaning(text, "shop"), statement, {})
            except MaskLost as error:
                table = TableName.parse(error.context["table"]).pair
                assert table not in masked.known
                lost[table] = [one.pair for one in TableName.listed(error.context.get("rows_of", ""))]
                masked.lost(table, lost[table])
            else:
                break
        for table, rows_of in lost.items():
            rows_of += [one.pair for one in masked.rows_of(table)]
        for name, columns in world.tables.items():
            if config.tables.captures("shop", name) and ("shop", name) not in lost:
                shown = [one for one, bad in columns.items() if bad and not hiding.hides(("shop", name), one)]
                assert not shown, (text, name, shown)
