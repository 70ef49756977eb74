from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

from cdc_lib.config.modes import ModeRule
from cdc_lib.errors import MergeError
from cdc_lib.model.schema import SourceType
from tests.harness.lake.batches import BIGINT, INT, TEXT, Row, table
from tests.harness.lake.reading import opened

UTC = dt.UTC
TYPES = {
    "id": SourceType("int", width=8, unsigned=True),
    "small": SourceType("int", width=1),
    "wide": INT,
    "money": SourceType("decimal", precision=10, scale=2),
    "huge": SourceType("decimal", precision=60, scale=2),
    "f": SourceType("float"),
    "d": SourceType("double"),
    "text": TEXT,
    "raw": SourceType("bytes", width=10),
    "day": SourceType("date"),
    "clock": SourceType("time", scale=6),
    "local": SourceType("datetime", scale=6),
    "instant": SourceType("timestamp", scale=6),
    "bits": SourceType("bit", width=64),
    "doc": SourceType("json"),
}
VALUES = {
    "id": Decimal(2**64 - 1),
    "small": -128,
    "wide": 2**31 - 1,
    "money": Decimal("-12345678.90"),
    "huge": "1" * 58 + ".25",
    "f": 0.5,
    "d": 0.1,
    "text": "O'Brien \\ \n 🛒 ",
    "raw": bytearray(b"\x00\xff'\\"),
    "day": dt.date(1000, 1, 1),
    "clock": "-838:59:59.000000",
    "local": dt.datetime.fromisoformat("1582-10-10 01:02:03.999999"),
    "instant": dt.datetime(2026, 3, 29, 1, 30, 0, 1, tzinfo=UTC),
    "bits": Decimal(2**64 - 1),
    "doc": '{"a": [1, null]}',
}


def test_every_type_comes_through_exactly(lake):
    """Values at the ends of their ranges, first into an empty table and then over an old row."""
    schema = table(f"{lake.database}.kinds", TYPES)
    first = {**dict.fromkeys(TYPES), "id": VALUES["id"]}
    lake.merge(lake.batches.plan(100, lake.batches.window(4, 100, {schema: [Row("c", 10, first)]})))
    second = lake.batches.window(100, 200, {schema: [Row("u", 110, VALUES)]})
    lake.merge(lake.batches.plan(200, second))
    # Python would turn an instant into this machine's time zone: its microseconds are compared instead.
    columns = [f"unix_micros({n})" if n == "instant" else f"`{n}`" for n in TYPES]
    [row] = lake.spark.sql(f"SELECT {', '.join(columns)} FROM {lake.name(schema.name)}").collect()
    micros = (VALUES["instant"] - dt.datetime(1970, 1, 1, tzinfo=UTC)) // dt.timedelta(microseconds=1)
    assert tuple(row) == tuple({**VALUES, "instant": micros}.values())


KEYS = {
    "string": (TEXT, ["", "a", "A", "ä", "'; DROP TABLE x; --", "\\", "\u0000", "🛒", "a" * 40]),
    "binary": (SourceType("bytes", width=16), [b"", b"\x00", b"\xff" * 16, b"'"]),
    "decimal": (
        SourceType("decimal", precision=20, scale=4),
        [Decimal("-1.5000"), Decimal("0.0000"), Decimal("9.9999")],
    ),
    "unsigned": (SourceType("int", width=8, unsigned=True), [Decimal(0), Decimal(2**64 - 1)]),
    "date": (SourceType("date"), [dt.date(1, 1, 1), dt.date(2026, 2, 28), dt.date(9999, 12, 31)]),
    "datetime": (
        SourceType("datetime", scale=6),
        [dt.datetime.fromisoformat(t) for t in ("1000-01-01", "2026-03-29 02:30:00.000001")],
    ),
    "timestamp": (
        SourceType("timestamp", scale=6),
        [dt.datetime(2026, 3, 29, 1, 30, tzinfo=UTC), dt.datetime(2026, 10, 25, 0, 30, 0, 1, tzinfo=UTC)],
    ),
    "double": (SourceType("double"), [0.1, -2.5e-300, 1e300]),
    "float": (SourceType("float"), [0.5, -1.5, 2.0**127]),
}


@pytest.mark.parametrize("kind", KEYS)
def test_keys_of_any_type_find_their_rows(lake, kind):
    """The conditions that leave out files must let every key through."""
    kind_type, keys = KEYS[kind]
    schema = table(f"{lake.database}.t", {"id": kind_type, "n": INT})
    first = [Row("c", 10 + i, {"id": key, "n": i}) for i, key in enumerate(keys)]
    lake.merge(lake.batches.plan(100, lake.batches.window(4, 100, {schema: first})))
    assert [n for (n,) in lake.rows(schema.name, "n")] == list(range(len(keys)))
    second = [Row("d" if i == 0 else "u", 110 + i, {"id": key, "n": 10 + i}) for i, key in enumerate(keys)]
    lake.merge(lake.batches.plan(200, lake.batches.window(100, 200, {schema: second})))
    assert [n for (n,) in lake.rows(schema.name, "n")] == [10 + i for i in range(1, len(keys))]


@pytest.mark.parametrize("kind", ["double", "float"])
def test_minus_zero_is_the_key_zero(lake, kind):
    """As at the source, in one window and over a row of the lake."""
    schema = table(f"{lake.database}.t", {"id": SourceType(kind), "n": INT})
    for start, keys in ((4, (0.0, 1.5)), (100, (-0.0, 0.0)), (200, (-0.0,))):
        rows = [
            Row("u" if start > 4 else "c", start + 10 + number, {"id": key, "n": start + number})
            for number, key in enumerate(keys)
        ]
        lake.merge(lake.batches.plan(start + 100, lake.batches.window(start, start + 100, {schema: rows})))
    assert lake.rows(schema.name, "id", "n") == [(-0.0, 200), (1.5, 5)]
    lake.merge(lake.batches.plan(400, lake.batches.window(300, 400, {schema: [Row("d", 310, {"id": 0.0, "n": 200})]})))
    assert lake.rows(schema.name, "id", "n") == [(1.5, 5)]


def test_a_change_without_a_key_stops_the_table(lake):
    """No row could be distinguished from others by it: earlier releases had dates of the year 0 as nulls."""
    schema = table(f"{lake.database}.t", {"id": SourceType("date"), "n": INT})
    rows = [Row("c", 10, {"id": None, "n": 1})]
    with pytest.raises(MergeError, match="no value of column id, which is in the key"):
        lake.merge(lake.batches.plan(100, lake.batches.window(4, 100, {schema: rows})))


def test_keys_of_several_columns_are_distinguished(lake):
    """Each column has conditions of its own; a row that meets them by chance is not another's."""
    schema = table(f"{lake.database}.t", {"a": INT, "b": TEXT, "v": INT}, key=("b", "a"))
    rows = [Row("c", 10, {"a": a, "b": b, "v": 0}) for a in (1, 2) for b in ("x", "y")]
    lake.merge(lake.batches.plan(100, lake.batches.window(4, 100, {schema: rows})))
    rows = [Row("d", 110, {"a": 1, "b": "x", "v": 0}), Row("u", 120, {"a": 2, "b": "y", "v": 9})]
    lake.merge(lake.batches.plan(200, lake.batches.window(100, 200, {schema: rows})))
    assert lake.rows(schema.name, "a", "b", "v") == [(1, "y", 0), (2, "x", 0), (2, "y", 9)]


def test_many_keys_are_merged_as_few_are(lake):
    """Beyond two hundred they are no longer named one by one."""
    schema = table(f"{lake.database}.t", {"id": BIGINT, "v": INT})
    rows = [Row("c", 10, {"id": i, "v": 0}, i) for i in range(1000)]
    lake.merge(lake.batches.plan(100, lake.batches.window(4, 100, {schema: rows})))
    rows = [Row("d" if i % 3 == 0 else "u", 110, {"id": i, "v": 1}, i) for i in range(100, 700)]
    lake.merge(lake.batches.plan(200, lake.batches.window(100, 200, {schema: rows})))
    expected = [(i, int(100 <= i < 700)) for i in range(1000) if not (100 <= i < 700 and i % 3 == 0)]
    assert sorted(lake.rows(schema.name, "id", "v")) == expected


@pytest.mark.parametrize("mode", ["mirror", "soft_delete", "scd2"])
def test_columns_of_a_key_may_be_named_as_relations_of_statements(lake, mode):
    """Few and many changes."""
    lake.config = lake.config.model_copy(update={"modes": (ModeRule(tables="*.*", mode=mode),)})
    names = table(f"{lake.database}.names", {"t": BIGINT, "s": BIGINT, "v": TEXT}, key=("t", "s"))
    for number, (op, keys) in enumerate((("c", 400), ("u", 300), ("d", 5))):
        rows = [Row(op, 1000 * number + 10 + n, {"t": n, "s": -n, "v": op}) for n in range(keys)]
        window = lake.batches.window(1000 * number + 4, 1000 * number + 1004, {names: rows})
        lake.merge(lake.batches.plan(1000 * number + 1004, window))
    live = {"mirror": "true", "soft_delete": "NOT _is_deleted", "scd2": "_is_current"}[mode]
    found = lake.spark.sql(f"SELECT v, count(*) FROM {lake.name(names.name)} WHERE {live} GROUP BY v").collect()
    assert {tuple(row) for row in found} == {("u", 295), ("c", 100)}


def test_names_of_any_kind_work(lake):
    """Upper case, blanks, quotes, dots, words of SQL, letters of other alphabets."""
    columns = {"Id": BIGINT, "order by": TEXT, "a.b": INT, "back`tick": INT, "select": INT, "Größe": INT, "it's": INT}
    schema = table(f"{lake.database}.`Order Items-2.0`", columns, key=("Id", "it's"))
    values = dict.fromkeys(columns, 1) | {"order by": "x"}
    lake.merge(lake.batches.plan(100, lake.batches.window(4, 100, {schema: [Row("c", 10, values)]})))
    again = [Row("u", 110, {**values, "a.b": 2, "back`tick": 3})]
    lake.merge(lake.batches.plan(200, lake.batches.window(100, 200, {schema: again})))
    assert lake.rows(schema.name, *columns) == [(1, "x", 2, 3, 1, 1, 1)]


@pytest.mark.parametrize("mode", ["mirror", "soft_delete", "append"])
def test_a_column_may_have_a_name_that_only_another_mode_reserves(lake, mode):
    """``_valid_from`` is a metadata column of scd2 alone; ``_VALID_TO`` too, however it is written."""
    lake.config = lake.config.model_copy(update={"modes": (ModeRule(tables="*.named", mode=mode),)})
    named = table(f"{lake.database}.named", {"id": BIGINT, "_valid_from": INT, "_VALID_TO": TEXT})
    rows = [Row("c", 5, {"id": 1, "_valid_from": 7, "_VALID_TO": "never"})]
    lake.merge(lake.batches.plan(100, lake.batches.window(4, 100, {named: rows})))
    assert lake.rows(named.name, "id", "_valid_from", "_VALID_TO") == [(1, 7, "never")]
    with opened(lake) as reader:
        assert reader.table(named.name).rows().read_all().select(["_valid_from"]).to_pylist() == [{"_valid_from": 7}]


def test_two_tables_whose_names_differ_in_case_alone_are_two(lake):
    """On a MySQL server of Linux they are."""
    upper, lower = (table(f"{lake.database}.{name}", {"id": BIGINT}) for name in ("Orders", "orders"))
    rows = {upper: [Row("c", 10, {"id": 1})], lower: [Row("c", 20, {"id": 2})]}
    lake.merge(lake.batches.plan(100, lake.batches.window(4, 100, rows)))
    assert (lake.rows(upper.name, "id"), lake.rows(lower.name, "id")) == ([(1,)], [(2,)])


@pytest.fixture
def views(lake):
    return table(f"{lake.database}.views", {"page": TEXT, "n": INT}, key=())


def test_a_table_without_a_key_keeps_every_change_once(lake, views):
    """Also when its batch is merged again, or comes again within a longer window after a rewind."""
    one = [Row("c", 10, {"page": "a", "n": 1}), Row("c", 10, {"page": "a", "n": 1}, 1)]
    first = lake.batches.plan(100, lake.batches.window(4, 100, {views: one}))
    lake.merge(first)
    two = [Row("d", 110, {"page": "a", "n": 1}), Row("u", 110, {"page": "a", "n": 2})]
    lake.merge(lake.batches.plan(150, lake.batches.window(100, 150, {views: two})))
    lake.merge(lake.batches.again(first))
    longer = lake.batches.window(50, 200, {views: [*two, Row("c", 180, {"page": "b", "n": 1})]})
    lake.merge(lake.batches.plan(200, longer))
    changes = [("c", "a", 1), ("c", "a", 1), ("c", "b", 1), ("d", "a", 1), ("u", "a", 2)]
    assert lake.rows(views.name, "_op", "page", "n") == changes


def test_changes_that_a_snapshot_of_a_table_without_a_key_holds_are_left_out(lake, views):
    """Before the chunk in the same merge, and in a later one."""
    chunk = lake.batches.chunk(views, 150, [{"page": "a", "n": 1}, {"page": "a", "n": 1}])
    window = lake.batches.window(100, 120, {views: [Row("c", 110, {"page": "a", "n": 1})]})
    lake.merge(lake.batches.plan(120, chunk, window))
    rows = [Row("c", 130, {"page": "a", "n": 1}), Row("c", 160, {"page": "b", "n": 1})]
    lake.merge(lake.batches.plan(200, lake.batches.window(120, 200, {views: rows})))
    assert lake.rows(views.name, "_op", "page") == [("c", "b"), ("r", "a"), ("r", "a")]


def test_a_late_snapshot_of_a_table_without_a_key_replaces_the_changes_that_it_includes(lake, views):
    """Those after its low watermark stay."""
    rows = [Row("c", 110, {"page": "a", "n": 1}), Row("c", 160, {"page": "b", "n": 1})]
    lake.merge(lake.batches.plan(200, lake.batches.window(100, 200, {views: rows})))
    chunk = lake.batches.chunk(views, 150, [{"page": "a", "n": 1}])
    plan = lake.batches.plan(200, chunk)
    lake.merge(plan)
    lake.merge(lake.batches.again(plan))
    assert lake.rows(views.name, "_op", "page") == [("c", "b"), ("r", "a")]


def test_an_empty_table_is_made_by_its_snapshot(lake):
    """With its columns and no rows."""
    schema = table(f"{lake.database}.empty", {"id": BIGINT, "v": TEXT})
    cut = lake.merge(lake.batches.plan(4, lake.batches.chunk(schema, 100, [])))
    assert lake.rows(schema.name, "id", "v") == []
    assert [t.table for t in cut.tables] == [schema.name]


def test_many_tables_are_merged_in_parallel(lake):
    """Each by its own commit; the error of several names them all."""
    good = [table(f"{lake.database}.t{i}", {"id": BIGINT}) for i in range(6)]
    bad = [table(f"{lake.database}.bad{i}", {"id": BIGINT, "_op": TEXT}) for i in range(2)]
    rows = {schema: [Row("c", 10, {"id": i})] for i, schema in enumerate(good)}
    # The change columns of a batch bear these names already, so that its file is made without the table's own.
    rows |= {table(schema.name, {"id": BIGINT, "_pos": INT}): [Row("c", 20, {"id": 1})] for schema in bad}
    with pytest.raises(MergeError) as caught:
        lake.merge(lake.batches.plan(100, lake.batches.window(4, 100, rows)))
    assert caught.value.context["tables"] == f"{bad[0].name}, {bad[1].name}"
    assert "2 of 8" in str(caught.value)
    assert [lake.rows(schema.name, "id") for schema in good] == [[(i,)] for i in range(6)]
