"""The rows of a lake table are the same whether all are read, ranges of keys, or some keys."""

from __future__ import annotations

from itertools import pairwise

import pytest

from cdc_lib.config import load_source
from cdc_lib.errors import ConfigError
from cdc_lib.model.lake_table import LakeName
from cdc_lib.model.manifest import OP
from cdc_lib.model.position import Point
from cdc_lib.model.projection import whole
from cdc_lib.model.route import Target
from cdc_lib.model.schema import Column, SourceType, TableSchema
from cdc_lib.model.table_mode import IS_DELETED, RESET
from cdc_lib.model.table_name import TableName
from cdc_lib.model.value_policy import ValuePolicy
from cdc_lib.verify.comparability import subject_of
from cdc_lib.verify.lake import states_of
from cdc_lib.verify.lake_reader import LakeReader
from cdc_lib.verify.lake_tables import LakeTables
from tests.harness.lake.small_lake import SmallLake, row

TEXT = SourceType("string", width=40, charset="utf8mb4")
COLUMNS = (
    Column("country", TEXT, nullable=False),
    Column("id", SourceType("int", width=8), nullable=False),
    Column("name", TEXT),
    Column("raw", SourceType("bytes", width=9)),
)
SOURCE = """
server: {{host: 127.0.0.1, port: 1, user: cdc, password_env: UNUSED}}
tables: ["shop.*"]
store: {{url: "file://{folder}/store"}}
lake: {{type: jdbc, uri: "jdbc:sqlite:{folder}/cat.db?busy_timeout=30000", warehouse: "file://{folder}/lake"}}
"""
KEYS = [(country, number) for country in ("at", "de", "ø") for number in range(1, 8)]


@pytest.fixture
def lake(tmp_path):
    file = tmp_path / "shop.yaml"
    file.write_text(SOURCE.format(folder=tmp_path))
    (tmp_path / "cat.db").touch()
    lake = SmallLake(load_source(file))
    yield lake
    lake.catalog.close()


def opened(lake, *, constants=None, kept_before=None, key=("country", "id"), columns=COLUMNS):
    """A reader of the table, and its subject."""
    name = LakeName("lake", ("shop",), "t")
    table = LakeTables(lake.catalog, "shop").open(name, TableName("shop", "t"), None, routed=bool(constants))
    schema = TableSchema("shop", "t", tuple(one for one in columns if one.name not in (constants or {})), key)
    target = Target("shop", "t")
    subject = subject_of(schema, whole(schema), target, name, table.state, constants or {}, ValuePolicy())
    assert not isinstance(subject, str), subject
    if kept_before is not None:
        object.__setattr__(subject, "kept_before", kept_before)
    return table, subject


def made(lake, mode="mirror"):
    """Three files whose keys overlap, of which the last has the later rows."""
    rows = [row(country, number, f"{country}{number}", number) for country, number in KEYS]
    if mode == "soft_delete":
        rows = [{**one, IS_DELETED: one["id"] == 3} for one in rows]
    table = lake.make("t", rows[::3], mode)
    lake.add(table, rows[1::3])
    lake.add(table, rows[2::3])


@pytest.mark.parametrize(
    ("mode", "kept_before", "exist"),
    [
        ("mirror", None, lambda _: True),
        ("soft_delete", None, lambda number: number != 3),
        ("mirror", Point(1, 1, 5), lambda number: number >= 5),
        ("soft_delete", Point(1, 1, 2), lambda number: number not in (1, 3)),
    ],
)
@pytest.mark.parametrize("is_routed", [False, True])
def test_all_rows_the_rows_of_ranges_and_the_rows_of_keys_are_the_same(lake, mode, kept_before, exist, is_routed):
    """Those that the source must have, with equal texts, hashes and order keys; ranges tile the table."""
    made(lake, mode)
    constants, key = ({"country": "de"}, ("id",)) if is_routed else ({}, ("country", "id"))
    table, subject = opened(lake, constants=constants, kept_before=kept_before, key=key)
    own = [(str(n),) if is_routed else (c, str(n)) for c, n in KEYS if not is_routed or c == "de"]
    expected = {key for key in own if exist(int(key[-1]))}
    reader = LakeReader(table.snapshot, subject, order_keys=True)
    everything = list(reader.all())
    listed = {one.key: one for batch in everything for one in batch.listed()}
    assert set(listed) == expected
    states = states_of(subject, (one for batch in everything for one in batch.states()))
    assert {state.shown[subject.cells.index(subject.keys[-1])] for state in states.values()} == {
        k[-1] for k in expected
    }
    assert table.rows(subject, own) == states
    assert {name: state.written for name, state in table.rows(subject, own).items()} == {
        listed[key].name: Point(1, 1, int(key[-1])) for key in expected
    }
    bounds = [None, *own[2::4], None]
    parts = [list(reader.between(after, end)) for after, end in pairwise(bounds)]
    ranged = [one for part in parts for batch in part for one in batch.listed()]
    assert sorted(ranged, key=lambda one: one.key) == sorted(listed.values(), key=lambda one: one.key)
    whole_sum = [sum(figures) for figures in zip(*(batch.sum for batch in everything), strict=True)]
    assert whole_sum == [sum(f) for f in zip(*(b.sum for part in parts for b in part), strict=True)]
    for (after, end), part in zip(pairwise(bounds), parts, strict=True):
        within = {
            k
            for k in expected
            if (after is None or own.index(k) > own.index(after)) and (end is None or own.index(k) <= own.index(end))
        }
        assert {one.key for batch in part for one in batch.listed()} == within


def test_files_beyond_a_range_are_not_read_and_a_range_of_an_integer_is_none_of_a_text(lake):
    """An integer at the source whose lake column became a text is there in another order."""
    table = lake.make("t", [row("at", n, "x") for n in (1, 2)])
    lake.add(table, [row("at", n, "x") for n in (5, 100)])
    shown, subject = opened(lake, constants={"country": "at"}, key=("id",))
    reader = LakeReader(shown.snapshot, subject)
    found = [len(list(reader.groups(*bounds))) for bounds in ((None, None), (3, None), (None, 4), (6, 7), (101, None))]
    assert found == [2, 1, 1, 1, 0]
    texts = lake.make("u", [row(str(n), n, "x") for n in (5, 40, 300)], key=("country",))
    assert texts
    name = LakeName("lake", ("shop",), "u")
    opened_texts = LakeTables(lake.catalog, "shop").open(name, TableName("shop", "u"), None, routed=False)
    schema = TableSchema("shop", "u", (Column("country", SourceType("int", width=4), nullable=False),), ("country",))
    subject = subject_of(schema, whole(schema), Target("shop", "u"), name, opened_texts.state, {}, ValuePolicy())
    listed = [
        one.key for batch in LakeReader(opened_texts.snapshot, subject, (6, 50)).all(7, 50) for one in batch.listed()
    ]
    assert ("40",) in listed


def test_a_key_that_the_lake_cannot_have_is_an_error_that_says_what_compares_the_table(lake):
    """As a bound, and as a key that is looked up."""
    made(lake)
    table, subject = opened(lake)
    wrong = ("at", str(2**70))
    for read in (
        lambda: list(LakeReader(table.snapshot, subject).between(None, wrong)),
        lambda: table.rows(subject, [wrong]),
    ):
        with pytest.raises(ConfigError, match="a key has a value that the lake table cannot hold") as caught:
            read()
        assert caught.value.hint == "cdc verify compares the table as a whole."


def test_without_a_key_a_delete_cancels_an_insert_after_the_last_reset(lake):
    """The table holds changes; a row that all copies of are deleted is none."""
    changes = [
        ("c", "old", 1),
        (RESET, "", 2),
        ("c", "a", 3),
        ("c", "a", 4),
        ("c", "b", 5),
        ("d", "b", 6),
        ("d", "a", 7),
    ]
    table = lake.make("t", [], "append", key=())
    lake.add(table, [{**row("at", 1, name, offset), OP: op} for op, name, offset in changes])
    shown, subject = opened(lake, key=(), columns=COLUMNS)
    batches = LakeReader(shown.snapshot, subject, order_keys=True).all()
    states = states_of(subject, (one for batch in batches for one in batch.states()))
    assert [(one.shown[2], one.copies, one.written) for one in states.values()] == [("a", 1, Point(1, 1, 7))]
