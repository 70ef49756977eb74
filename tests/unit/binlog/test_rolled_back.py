"""Rows that stand in the binlog and were rolled back: none of them is in the lake, however the stream comes in."""

from __future__ import annotations

import random

import pytest

from cdc_lib.binlog import reader
from cdc_lib.binlog.framing.receiver import Receiver
from cdc_lib.binlog.rows.rolled_back import RolledBackRows
from cdc_lib.binlog.rows.row_groups import ReadOptions
from cdc_lib.errors import DecodeError, RowsRolledBack
from tests.harness.binlog.streams import Binlog, read


def again(binlog, **options):
    """Read as the drain does: once more where rows were decoded that are taken back; how often, and what came of it."""
    rolled_back = RolledBackRows()
    for turn in range(1, 3):
        try:
            return turn, read(binlog, rolled_back=rolled_back, **options)
        except RowsRolledBack:
            continue
    raise AssertionError("nothing new was learnt")


@pytest.fixture(params=["whole", "in pieces"])
def readings(request, monkeypatch):
    """How often a window is read that takes rows back: twice where they were decoded before."""
    if request.param == "in pieces":
        monkeypatch.setattr(reader, "Receiver", lambda stream: Receiver(stream, 64, 3))
        return 2
    return 1


def one(binlog, number):
    return binlog.table_map().insert((number, b"x"))


@pytest.mark.parametrize("flavor", ["mysql", "mariadb"])
def test_a_transaction_that_ends_in_rollback_leaves_no_row(readings, flavor):
    """Those before and after it stay, and it counts as a transaction."""
    binlog = Binlog().transaction(1, (1, b"a"))
    begun = binlog.mariadb_gtid(2, 0) if flavor == "mariadb" else binlog.gtid(2)
    one(one(begun.query(b"BEGIN"), 2), 3).query(b"ROLLBACK").transaction(3, (4, b"d"))
    turns, (rows, summary) = again(binlog, flavor=flavor)
    assert [row["id"] for row in rows] == [1, 4]
    assert (turns, summary.transactions, summary.rows) == (readings, 3, 2)


def test_rows_after_a_savepoint_are_excluded_and_earlier_ones_stay(readings):
    """Names are those of any case; one that is set again counts from there, and going back forgets those after."""
    binlog = Binlog().gtid(1).query(b"BEGIN")
    one(binlog, 1).query(b"SAVEPOINT `s``1`")
    one(binlog, 2).query(b"SAVEPOINT t")
    one(binlog, 3).query(b"ROLLBACK TO `S``1`")
    one(binlog, 4).query(b"SAVEPOINT t")
    one(binlog, 5).query(b"RELEASE SAVEPOINT other").query(b"ROLLBACK WORK TO SAVEPOINT t /* generated */")
    one(binlog, 6).query(b"ROLLBACK TO t")
    one(binlog, 7).xid()
    turns, (rows, _) = again(binlog)
    assert [row["id"] for row in rows] == [1, 4, 7]
    assert turns == readings


def test_a_savepoint_of_another_transaction_is_unknown():
    """The window stops instead of guessing how far the statement goes back."""
    binlog = Binlog().gtid(1).query(b"BEGIN").query(b"SAVEPOINT s").xid().gtid(2).query(b"BEGIN")
    with pytest.raises(DecodeError, match="savepoint s, which its transaction did not set") as caught:
        read(one(binlog, 1).query(b"ROLLBACK TO s").xid())
    assert caught.value.context["offset"] == binlog.starts[-2]


def test_rows_are_rolled_back_inside_a_compressed_transaction():
    """Where all have one offset, by their places in it."""
    inner = Binlog(bare=True).query(b"BEGIN")
    one(inner, 1).query(b"SAVEPOINT s")
    one(inner, 2).query(b"ROLLBACK TO s")
    one(inner, 3).xid()
    binlog = Binlog().transaction(1, (0, b"a")).gtid(2).payload(bytes(inner.wire))
    gone = one(Binlog(bare=True).query(b"BEGIN"), 8).query(b"ROLLBACK")
    _, (rows, _) = again(binlog.gtid(3).payload(bytes(gone.wire)).transaction(4, (9, b"z")))
    assert [row["id"] for row in rows] == [0, 1, 3, 9]


@pytest.mark.parametrize("seed", range(20))
def test_row_groups_are_the_same_in_any_portions(monkeypatch, seed):
    """Random transactions with savepoints: what is left is what a list of rows has."""
    chosen = random.Random(seed)
    binlog, left, number = Binlog(), [], 0
    for transaction in range(1, 9):
        binlog.gtid(transaction).query(b"BEGIN")
        mine, savepoints = [], {}
        for _ in range(chosen.randrange(12)):
            match chosen.randrange(4):
                case 0:
                    name = chosen.choice("abc")
                    savepoints.pop(name, None)
                    savepoints[name] = len(mine)
                    binlog.query(b"SAVEPOINT " + name.encode())
                case 1 if savepoints:
                    name = chosen.choice(list(savepoints))
                    mine = mine[: savepoints[name]]
                    savepoints = dict(list(savepoints.items())[: list(savepoints).index(name) + 1])
                    binlog.query(b"ROLLBACK TO " + name.encode())
                case _:
                    number += 1
                    mine.append(number)
                    one(binlog, number)
        if chosen.random() < 0.3:
            binlog.query(b"ROLLBACK")
        else:
            left += mine
            binlog.xid()
    options = ReadOptions(group_rows=3)
    _, whole = again(binlog, options=options, group=(groups := []))
    assert [row["id"] for row in whole[0]] == left
    for size in (20, 99, 400):
        monkeypatch.setattr(reader, "Receiver", lambda stream, size=size: Receiver(stream, size, 3))
        _, pieces = again(binlog, options=options, group=(others := []))
        assert (pieces[0], others) == (whole[0], groups)
