"""Merges beside an erasure, at each of its points; and an erasure at the commit of a merge."""

from __future__ import annotations

import itertools
import json

import pytest

from cdc_lib.erase import stored
from cdc_lib.errors import MergeConflict
from cdc_lib.store import documents
from spark_jobs import erase as erase_job
from spark_jobs.iceberg.lake_table import IcebergTable
from tests.harness.shop.source import Shop

MODES = ("mirror", "soft_delete", "scd2", "append")
PERSONS = range(4000, 4040)
ERASED = range(4000, 4010)


def mail(person):
    return f"p{person}@lind.ee"


@pytest.fixture
def shop(mysql_server, mysql_database, tmp_path, lake, monkeypatch):
    return Shop.on_running_spark(mysql_server, mysql_database, tmp_path, lake, monkeypatch)


@pytest.fixture(params=MODES)
def persons(request, shop):
    """Persons in a table and in its history; some of them are deleted, and their delete is merged."""
    shop.write(raw_archive=True, modes=[{"tables": "*.orders", "mode": request.param}])
    rows = [f"({person}, '{mail(person)}', 0)" for person in PERSONS]
    shop.execute(f"INSERT INTO orders VALUES {', '.join(rows[::2])}")
    shop.runs(2)
    shop.execute(f"INSERT INTO orders VALUES {', '.join(rows[1::2])}")
    shop.execute(f"UPDATE orders SET n = n + 1 WHERE id >= {PERSONS[0]}")
    shop.runs(1)
    shop.execute(f"DELETE FROM orders WHERE id BETWEEN {ERASED[0]} AND {ERASED[-1]}")
    shop.runs(1)
    return shop


def erase(shop, person):
    """Erase one of them, and of every trace nothing may be left."""
    command = f"cdc lake erase shop shop.orders {person} --value {mail(person)} --json"
    done = json.loads(shop.cdc(command).splitlines()[-1])
    assert (done["found"], done["unread"]) == ([], [])


def assert_erased(shop, persons):
    """None of these is found anywhere; the others are in the lake."""
    for person in persons:
        assert (
            json.loads(shop.cdc(f"cdc lake find shop shop.orders {person} --value {mail(person)} --json"))["found"]
            == []
        )
    found = {row.id for row in shop.sql("SELECT id FROM {t}")}
    assert found >= {row[0] for row in shop.source_rows("orders")}
    assert not found & set(persons)


def before_call(function, call, what, happened):
    """Return a function that does something else once, before its call of a number; ``happened`` then has that number."""
    calls = itertools.count(1)

    def work(*arguments, **named):
        if not happened and next(calls) == call:
            happened.append(call)
            what()
        return function(*arguments, **named)

    return work


POINTS = (
    [(IcebergTable, "_publish", 1), (erase_job, "_publish", 1), (stored, "batch_writer", 1)],
    [(erase_job, "maintain", 1), (erase_job, "maintain", 2)],
    [(IcebergTable, "_publish", 2), (erase_job, "publish", 1)],
    [(documents, "changed", 2)],
)
"""Those at which a merge comes into one erasure; the merge itself passes the first and the last one."""


@pytest.mark.turns(12)  # four erasures with seven merges take minutes
def test_merges_at_each_point_of_an_erasure_lose_nothing_and_bring_nothing_back(persons, monkeypatch):
    """Other rows change, and are merged, while one erasure after the other is at work."""
    shop = persons
    merges = itertools.count(1)

    def merged():
        shop.change(next(merges))
        shop.runs(1)

    for person, points in zip(ERASED, POINTS, strict=False):
        with monkeypatch.context() as patched:
            happened = []
            for place, name, call in points:
                happened.append([])
                patched.setattr(place, name, before_call(getattr(place, name), call, merged, happened[-1]))
            erase(shop, person)
        assert all(happened), points
    shop.runs(1)
    assert_erased(shop, ERASED[: len(POINTS)])
    if shop.settings["modes"][0]["mode"] == "mirror":
        shop.assert_equal()


@pytest.mark.parametrize("call", [1, 2])
def test_an_erasure_before_the_commit_of_a_merge_stays(persons, monkeypatch, call):
    """The merge has read the table with the row that is erased then: it begins again. An erasure is asked for, and killed, before."""
    shop = persons
    with monkeypatch.context() as patched:
        patched.setattr(erase_job, "_committed", killed)
        shop.cdc(f"cdc lake erase shop shop.orders {ERASED[0]} --yes", code=1)
    shop.change(1)
    happened = []
    with monkeypatch.context() as patched:
        erased = before_call(IcebergTable._publish, call, lambda: erase(shop, ERASED[0]), happened)
        patched.setattr(IcebergTable, "_publish", erased)
        shop.runs(1)
    assert happened
    shop.runs(1)
    assert_erased(shop, ERASED[:1])
    if shop.settings["modes"][0]["mode"] == "mirror":
        shop.assert_equal()


def killed(*_, **__):
    raise MergeConflict("killed", hint="")
