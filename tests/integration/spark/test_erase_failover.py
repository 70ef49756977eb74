"""Persons in many tables of all modes are erased around a failover, beside merges, backfills and maintenance, and through kills."""

from __future__ import annotations

import itertools
import json
import secrets
import time
from contextlib import contextmanager

import pytest

from cdc_lib.erase import erasing, stored
from cdc_lib.errors import MergeConflict
from spark_jobs import erase as erase_job
from tests.harness.servers.replication import KINDS, replicated
from tests.harness.shop.source import Shop

INTERVAL = 30
"""Seconds to go back: what is read again after a failover."""

MODES = ("append", "scd2", "mirror", "soft_delete")
FIRST = 4000
"""Least id of a person: other rows of the shop have smaller ones."""

ONE_IN = 20
"""One of so many persons is erased."""

KILLS = (
    (erase_job, "_committed"),
    (erase_job, "maintain"),
    (erase_job, "publish"),
    (erasing, "StoredRowsEraser"),
    (stored, "batch_writer"),
)


class Persons:
    """Tables of persons at a primary, which has a standby.

    Args:
        pair: the servers.
        shop: its source.
        tables: how many.
        count: how many persons.
    """

    def __init__(self, pair, shop, tables, count):
        self.pair, self.shop, self.began = pair, shop, time.monotonic()
        self.modes = {f"p{number}": mode for number, mode in zip(range(tables), itertools.cycle(MODES), strict=False)}
        self.ids = range(FIRST, FIRST + count)
        self.erased = self.ids[::ONE_IN]
        modes = [{"tables": f"*.{table}", "mode": mode} for table, mode in self.modes.items()]
        standby = {"host": pair.standby.host, "port": pair.standby.port}
        shop.write(
            raw_archive=True,
            modes=modes,
            standbys=[standby],
            failover={"attempts": 1, "fallback_interval": f"{INTERVAL}s"},
        )
        for table in self.modes:
            shop.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY, mail VARCHAR(40), n INT)")

    def insert(self, ids):
        for table in self.modes:
            rows = ", ".join(f"({person}, '{mail(table, person)}', 0)" for person in ids)
            self.shop.execute(f"INSERT INTO {table} VALUES {rows}")

    def everywhere(self, statement):
        for table in self.modes:
            self.shop.execute(statement.format(t=table))

    def delete(self, ids):
        self.everywhere(f"DELETE FROM {{t}} WHERE id IN ({', '.join(map(str, ids))})")

    def fail_over(self):
        self.pair.wait("seen.t")
        # A search by time needs an earlier transaction.
        time.sleep(max(0, self.began + INTERVAL + 2 - time.monotonic()))
        self.pair.promote()
        self.shop.server = self.pair.standby
        self.shop.runs(2)
        assert self.shop.cursor("drain")["epoch"] == 2

    def erase(self, table, ids, code=0):
        """Erase some persons: those of a table that forgets them by their keys, the others by a condition."""
        keys = self.shop.folder / "keys.csv"
        keys.write_text("\n".join(map(str, ids)))
        which = f"--keys {keys}" if self.modes[table] == "mirror" else f'--where "id IN ({", ".join(map(str, ids))})"'
        self.shop.cdc(f"cdc lake erase shop {self.shop.database}.{table} {which} --yes", code=code)

    def assert_nothing_is_left(self, table, ids):
        values = " ".join(f"--value {mail(table, person)}" for person in ids)
        found = json.loads(self.shop.cdc(f"cdc lake find shop {self.shop.database}.{table} {values} --json"))
        assert (found["found"], found["unread"]) == ([], [])

    def assert_others_are_as_at_the_source(self, table):
        """An append-only table has each of their versions."""
        columns, condition = CURRENT[self.modes[table]]
        name = self.shop.lake.name(f"{self.shop.database}.{table}")
        found = self.shop.lake.spark.sql(f"SELECT {columns} FROM {name} {condition}").collect()
        source = self.shop.execute(f"SELECT {columns} FROM {table}")
        assert sorted(map(tuple, found)) == sorted(map(tuple, source))


CURRENT = {
    "mirror": ("id, mail, n", ""),
    "soft_delete": ("id, mail, n", "WHERE NOT _is_deleted"),
    "scd2": ("id, mail, n", "WHERE _is_current"),
    "append": ("DISTINCT id, mail", f"WHERE id >= {FIRST}"),
}


def mail(table, person):
    return f"{table}.{person}@lind.example"


@contextmanager
def servers(kind, skews=(0, 0)):
    with replicated(kind, skews=skews) as pair:
        pair.primary.execute("CREATE DATABASE seen")
        pair.primary.execute("CREATE TABLE seen.t (id INT PRIMARY KEY, v INT)")
        yield pair


@pytest.fixture(params=KINDS)
def pair(request):
    with servers(request.param) as pair:
        yield pair


def killed(*_, **__):
    raise MergeConflict("killed", hint="")


LARGE = pytest.param(30, 1000, 2, marks=[pytest.mark.slow, pytest.mark.timeout(2 * 3600)])


@pytest.mark.parametrize(("tables", "count", "kills"), [(2, 80, 1), LARGE])
def test_erased_persons_do_not_come_back_and_the_others_stay(pair, tables, count, kills, tmp_path, lake, monkeypatch):
    """The standby's binlog has their changes too, and is read from half a minute before the failover on."""
    database = f"people_{secrets.token_hex(4)}"
    pair.primary.execute(f"CREATE DATABASE {database}")
    shop = Shop.on_running_spark(pair.primary, database, tmp_path, lake, monkeypatch)
    persons = Persons(pair, shop, tables, count)
    first, later = persons.erased[::2], persons.erased[1::2]
    persons.insert(persons.ids[::2])
    shop.runs(2)
    persons.insert(persons.ids[1::2])
    persons.everywhere("UPDATE {t} SET n = n + 1")
    shop.runs(1)
    persons.delete(persons.erased)
    shop.drain()
    persons.everywhere("UPDATE {t} SET n = n + 1")
    shop.runs(1)

    begun = list(zip(KILLS * kills, itertools.cycle(persons.modes), strict=False))
    for number, ((place, name), table) in enumerate(begun):
        with monkeypatch.context() as patched:
            patched.setattr(place, name, killed)
            persons.erase(table, first[:1], code=1)
        shop.change(number)
        shop.runs(1)
    shop.cdc("cdc lake maintain shop")
    for table in dict.fromkeys(table for _, table in begun):
        persons.erase(table, first[:1])
    for table in persons.modes:
        persons.erase(table, first)
    last = [FIRST - 1]
    persons.insert(last)
    shop.runs(1)
    persons.delete(last)
    shop.runs(1)
    persons.erase("p0", last)
    persons.fail_over()
    persons.assert_nothing_is_left("p0", last)
    for table in persons.modes:
        persons.assert_nothing_is_left(table, first)

    for number, table in enumerate(persons.modes, 30):
        persons.erase(table, later)
        if number % 3 == 0:
            shop.change(number)
            shop.runs(1)
    shop.cdc("cdc backfill shop")
    shop.cdc("cdc lake maintain shop")
    for table in persons.modes:
        persons.assert_nothing_is_left(table, persons.erased)
        persons.assert_others_are_as_at_the_source(table)
    persons.insert(persons.erased[:1])
    shop.runs(1)
    for table in persons.modes:
        persons.assert_others_are_as_at_the_source(table)
    shop.assert_equal()


@pytest.fixture(params=[kind for kind in KINDS if "without" not in kind])
def ahead(request):
    """Servers of which the first primary has a clock that is five minutes ahead."""
    with servers(request.param, skews=(300, 0)) as pair:
        yield pair


def test_changes_of_a_server_whose_clock_was_ahead_do_not_come_back(ahead, tmp_path, lake, monkeypatch):
    """The standby, which was asked whether it has the rows, has them in its binlog with later times than the erasure."""
    database = f"people_{secrets.token_hex(4)}"
    ahead.primary.execute(f"CREATE DATABASE {database}")
    shop = Shop.on_running_spark(ahead.primary, database, tmp_path, lake, monkeypatch)
    persons = Persons(ahead, shop, len(MODES), 40)
    persons.insert(persons.ids)
    persons.everywhere("UPDATE {t} SET n = n + 1")
    shop.runs(2)
    persons.fail_over()
    persons.delete(persons.erased)
    shop.runs(1)
    for table in persons.modes:
        persons.erase(table, persons.erased)
        persons.assert_nothing_is_left(table, persons.erased)
    start = shop.execute("SHOW BINARY LOGS")[0][0]
    shop.cdc(f"cdc cursor rewind shop --position {start}:4 --why x")
    shop.runs(1)
    assert shop.cursor("drain")["epoch"] == 3
    for table in persons.modes:
        persons.assert_others_are_as_at_the_source(table)
        persons.assert_nothing_is_left(table, persons.erased)
