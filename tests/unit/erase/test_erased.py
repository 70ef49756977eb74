"""Which changes of erased rows are left out, by place, time and transactions; and which keys are the same."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc_lib.drain.erased import ErasedRows, erased_among, may_be_later
from cdc_lib.erase.reached import refuse_snapshot, refuse_unreached
from cdc_lib.errors import MergeConflict
from cdc_lib.model.cursor import Cursor
from cdc_lib.model.erasure import Erasure, TableErasures, digest_of
from cdc_lib.model.merge_plan import Cut, TableCut
from cdc_lib.model.position import Point, Position
from cdc_lib.model.schema import Column, SourceType, TableSchema
from cdc_lib.model.server_identity import ServerIdentity
from cdc_lib.model.table_name import TableName
from cdc_lib.model.window import SnapshotTask
from cdc_lib.store import documents
from cdc_lib.store.erasures import erasures, erasures_by_table, erasures_of, keep_erasure
from cdc_lib.store.objects.local import LocalStore

TABLE, SALT = TableName("shop", "people"), b"0123456789abcdef"
HERE = ServerIdentity("mysql", "3e11fa47-71ca-11e1-9e33-c80aa9429562", 1)
THERE = replace(HERE, server_uuid="4e11fa47-71ca-11e1-9e33-c80aa9429562", server_id=2)
MARIADB = ServerIdentity("mariadb", "", 1)
AT = datetime(2026, 11, 21, 12, tzinfo=UTC)
ERASURE = Erasure(
    id="00ff",
    source="shop",
    table=TABLE,
    salt=SALT.hex(),
    digests=(digest_of(SALT, [7]),),
    identity=HERE,
    epoch=2,
    position=Position("binlog.000005", 1000),
    gtid_set="",
    at=AT,
    asked_at=AT,
)
SCHEMA = TableSchema("shop", "people", (Column("id", SourceType("int")),), ("id",))


def changes(*rows, row=0):
    """Return changes, each as key, file, offset, seconds before the erasure, GTID."""
    keys, files, offsets, before, gtids = zip(*rows, strict=True)
    return pa.table(
        {
            "_binlog": pa.array(files, pa.int32()),
            "_offset": pa.array(offsets, pa.int64()),
            "_row": pa.array([row] * len(rows), pa.int64()),
            "_ts": pa.array(
                [None if one is None else AT - timedelta(seconds=one) for one in before], pa.timestamp("us", "UTC")
            ),
            "_gtid": pa.array(gtids, pa.string()),
            "id": pa.array(keys, pa.int32()),
        }
    )


def of(*erasures):
    """Return what returns the erasures of a table."""
    return lambda table: [one for one in erasures if one.table == table]


def left(erasure, epoch, identity, *rows):
    found = ErasedRows(of(erasure), epoch, identity).without(SCHEMA, changes(*rows))
    return list(zip(found["id"].to_pylist(), found["_offset"].to_pylist(), strict=True))


def test_changes_before_the_erasure_are_left_out_and_later_ones_and_other_keys_stay():
    """In its epoch by place alone: a clock may have been set back."""
    rows = [(7, 5, 999, -9, None), (7, 5, 1000, 9, None), (8, 5, 1, 9, None), (7, 4, 5000, 9, None), (7, 6, 4, 9, None)]
    assert left(ERASURE, 2, HERE, *rows) == [(7, 1000), (8, 1), (7, 4)]


def test_a_row_that_was_read_there_is_left_out():
    """A snapshot's rows have the end of the binlog before them, and nothing may have been written since."""
    read = changes((7, 5, 1000, 9, None), (7, 5, 1001, 9, None), row=-1)
    assert ErasedRows(of(ERASURE), 2, HERE).without(SCHEMA, read)["_offset"].to_pylist() == [1001]


def test_of_an_earlier_epoch_all_changes_are_left_out():
    assert left(ERASURE, 1, THERE, (7, 9, 9000, -9, None), (8, 9, 9000, -9, None)) == [(8, 9000)]


def test_in_a_later_epoch_only_what_is_earlier_by_place_and_by_time_is_left_out():
    """A reset server begins its files again: its new changes have early places."""
    rows = [(7, 5, 10, 9, None), (7, 1, 4, -9, None), (7, 5, 1000, 9, None)]
    assert left(ERASURE, 3, HERE, *rows) == [(7, 4), (7, 1000)]


def test_at_another_server_time_decides_if_there_are_no_gtids():
    assert left(ERASURE, 3, THERE, (7, 90, 10, 9, None), (7, 1, 11, -1, None), (7, 1, 12, 0, None)) == [
        (7, 11),
        (7, 12),
    ]


@pytest.mark.parametrize(
    ("identity", "executed", "before", "after"),
    [
        (HERE, f"{HERE.server_uuid}:1-10", f"{HERE.server_uuid}:10", f"{HERE.server_uuid}:11"),
        (HERE, f"{HERE.server_uuid}:1-10", f"{HERE.server_uuid}:3", f"{THERE.server_uuid}:3"),
        (MARIADB, "0-1-10", "0-1-10", "0-2-11"),
    ],
)
def test_at_another_server_transactions_decide_beside_time(identity, executed, before, after):
    """The clock of the other server is slow: a change of its own looks early. MariaDB counts through all servers of a domain."""
    erasure = replace(ERASURE, identity=identity, gtid_set=executed)
    rows = [(7, 90, 10, 9, before), (7, 1, 11, 9, after), (7, 1, 12, -9, before), (7, 1, 13, 9, None)]
    other = replace(identity, server_id=9, server_uuid=THERE.server_uuid if identity.server_uuid else "")
    assert left(erasure, 3, other, *rows) == [(7, 11), (7, 12)]


@pytest.mark.parametrize(
    ("identity", "executed", "own", "of_another", "later"),
    [
        (HERE, f"{HERE.server_uuid}:1-10,{THERE.server_uuid}:1-5", f"{HERE.server_uuid}:10", f"{THERE.server_uuid}:5", f"{THERE.server_uuid}:6"),
        (MARIADB, "0-1-10,0-2-5", "0-1-10", "0-2-5", "0-2-11"),
        (MARIADB, "0-1-10", "0-1-10", "0-3-9", "0-3-11"),
    ],
)  # fmt: skip
def test_the_time_of_another_server_than_the_one_that_was_asked_says_nothing(
    identity, executed, own, of_another, later
):
    """Its clock was ahead: its changes from before the erasure would come back, and the deletion that followed would not."""
    erasure = replace(ERASURE, identity=identity, gtid_set=executed)
    rows = [(7, 1, 10, -700, of_another), (7, 1, 11, 9, own), (7, 1, 12, 9, later), (7, 1, 13, -9, own)]
    assert left(erasure, 3, identity, *rows) == [(7, 12), (7, 13)]
    years = timedelta(days=400).total_seconds()
    assert left(erasure, 3, identity, (7, 1, 10, -years, of_another)) == [(7, 10)]  # the GTIDs began again


@pytest.mark.parametrize(
    ("first", "hours", "expected"),
    [
        (Point(1, 9, 9000), 99, True),
        (Point(2, 5, 1000), 99, True),
        (Point(2, 5, 1001), -99, False),
        (Point(3, 1, 4), 1, True),
        (Point(3, 1, 4), 25, False),
        (Point(3, 1, 4), None, True),
    ],
)
def test_changes_from_after_an_erasure_are_known_without_a_look_at_them(first, hours, expected):
    """In its epoch by place, else by times, unless the clocks of two servers may explain them."""
    assert may_be_later(ERASURE, first, None if hours is None else AT + timedelta(hours=hours)) == expected


def test_rows_of_other_tables_and_of_tables_without_a_key_stay():
    rows = changes((7, 1, 1, 9, None))
    for schema in (replace(SCHEMA, table="others"), replace(SCHEMA, primary_key=())):
        assert ErasedRows(of(ERASURE), 2, HERE).without(schema, rows) is rows


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (7, Decimal(7)),
        (Decimal("1.50"), Decimal("1.5000")),
        (Decimal("-0.00"), Decimal(0)),
        (Decimal("1E+3"), 1000),
        (True, 1),
        (-0.0, 0.0),
        (datetime(2026, 1, 2, 3, tzinfo=UTC), datetime(2026, 1, 2, 3)),  # noqa: DTZ001 - columns without a zone
    ],
)
def test_a_key_is_the_same_in_a_wider_type(one, other):
    assert digest_of(SALT, [one, "x"]) == digest_of(SALT, [other, "x"])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (["ab", "c"], ["a", "bc"]),
        (["a"], ["A"]),
        (["a"], [b"a"]),
        ([100], [1]),
        ([Decimal(100)], [Decimal(1)]),
        ([date(2026, 1, 1)], [date(2026, 1, 2)]),
        ([None], ["None", ""]),
    ],
)
def test_other_keys_have_other_digests(one, other):
    assert digest_of(SALT, one) != digest_of(SALT, other)
    assert digest_of(SALT, one) != digest_of(SALT[::-1], one)


def test_an_erasure_holds_no_key_and_is_read_as_it_was_written():
    data = documents.dump(table(replace(ERASURE, digests=(digest_of(SALT, ["ann@lind.example"]),))))
    assert b"ann" not in data
    assert documents.load(TableErasures, documents.dump(table(ERASURE)), "x") == table(ERASURE)


def table(*erasures):
    return TableErasures(erasures)


@settings(deadline=None)
@given(st.data())
def test_of_many_erasures_those_that_are_not_looked_at_erase_nothing(data):
    """Those from before the first change, by place and by time."""
    times, places = st.integers(-3, 3), st.tuples(st.integers(4, 6), st.integers(999, 1001))
    rows = [
        (data.draw(st.integers(6, 8)), *data.draw(places), data.draw(times | st.just(None)), None)
        for _ in range(data.draw(st.integers(1, 5)))
    ]
    known = [
        replace(
            ERASURE,
            id=str(number),
            epoch=data.draw(st.integers(1, 3)),
            position=Position(f"binlog.{(place := data.draw(places))[0]:06d}", place[1]),
            at=AT + timedelta(seconds=data.draw(times)),
            digests=(digest_of(SALT, [data.draw(st.integers(6, 8))]),),
        )
        for number in range(data.draw(st.integers(1, 4)))
    ]
    identity, read = data.draw(st.sampled_from([HERE, THERE])), changes(*rows, row=data.draw(st.sampled_from([-1, 0])))
    one_by_one = read
    for one in known:
        erased = ErasedRows(of(one), 2, identity)
        chosen = erased_among(one, one_by_one, ("id",), erased._is_before(one, one_by_one))
        one_by_one = one_by_one.filter(pa.array(~chosen))
    assert ErasedRows(of(*known), 2, identity).without(SCHEMA, read).equals(one_by_one)


def test_a_document_has_the_erasures_of_a_table_and_only_those_of_changed_tables_are_read(tmp_path, monkeypatch):
    store, other = LocalStore(tmp_path), replace(ERASURE, table=TableName("shop", "others"), id="3")
    for one in (ERASURE, replace(ERASURE, id="2"), other, replace(ERASURE, ended_at=AT)):
        keep_erasure(store, one)
    assert erasures_of(store, "shop", TABLE) == (replace(ERASURE, id="2"), replace(ERASURE, ended_at=AT))
    assert len(erasures(store, "shop")) == 3
    known, read, get = erasures_by_table(store, "shop"), [], store.get
    monkeypatch.setattr(store, "get", lambda key: read.append(key) or get(key))
    assert [len(known(name)) for name in (TABLE, TableName("shop", "orders"), TABLE)] == [2, 0, 2]
    assert read == ["shop/erasures/shop.people.json"]


def cut(position, **more):
    table = TableCut(TABLE, "lake.shop.people", 1, 0, **more)
    return Cut("shop", "m", 2, position, None, AT, (table,))


def test_rows_are_erased_once_the_lake_has_all_before_it():
    early, late = Position("binlog.000005", 999), Position("binlog.000005", 1000)
    refuse_unreached(None, ERASURE)
    refuse_unreached(cut(late), ERASURE)
    for waiting in (cut(early), cut(late, as_of=early)):
        with pytest.raises(MergeConflict, match=r"not merged up to binlog\.000005:1000 yet") as error:
            refuse_unreached(waiting, ERASURE)
        assert "cdc run shop" in error.value.hint


def test_rows_are_not_erased_while_a_snapshot_may_bring_them():
    drain = Cursor("shop", "drain", 1, 1, HERE, Position("binlog.000001", 4))
    refuse_snapshot(drain, ERASURE)
    task = SnapshotTask("shop", 1, "s1", *TABLE.pair)
    with pytest.raises(MergeConflict, match="a snapshot of the table is being read"):
        refuse_snapshot(replace(drain, snapshots=(task,)), ERASURE)
