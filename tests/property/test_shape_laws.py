"""Laws of columns, masks and routes: pure decisions over names and values."""

from __future__ import annotations

import datetime as dt
import hashlib
import hmac
import re
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_lib.binlog.ddl.redact import concealed
from cdc_lib.binlog.rows.masking import Masker
from cdc_lib.config import SourceConfig
from cdc_lib.config.patterns import captured, matches, matches_column
from cdc_lib.config.shape import targets_of
from cdc_lib.errors import ConfigError, IncompatibleSchema
from cdc_lib.lake.routing import lake_merges, lake_name
from cdc_lib.lake.union import union
from cdc_lib.model.lake_types import holds
from cdc_lib.model.mask import Mask
from cdc_lib.model.projection import project
from cdc_lib.model.route import SOURCE_KEYS, Target, routed_schema
from cdc_lib.model.schema import Column, SourceType, TableSchema

YEAR_1000 = dt.datetime(1000, 1, 1)  # noqa: DTZ001 - a DATETIME has no time zone
KEY = b"a key that is long enough"
NAMES = st.text(alphabet="abcXYZ_", min_size=1, max_size=3)
TEXT = SourceType("string", width=20, charset="utf8mb4")
TYPES = st.sampled_from(
    [SourceType("int", width=4), SourceType("int", width=8), TEXT, SourceType("decimal", precision=9, scale=2),
     SourceType("decimal", precision=12, scale=2), SourceType("float"), SourceType("double"), SourceType("date")]
)  # fmt: skip


@st.composite
def schemas(draw, name="d.t"):
    names = draw(st.lists(NAMES, min_size=1, max_size=6, unique_by=str.lower))
    key = names[: draw(st.integers(0, 2))]
    columns = tuple(Column(n, TEXT if n in key else draw(TYPES)) for n in names)
    return TableSchema(*name.split("."), columns, tuple(key))


@given(
    schemas(),
    st.sets(NAMES),
    st.dictionaries(NAMES, st.sampled_from([Mask("hash"), Mask("redact"), Mask("truncate", 2)])),
)
def test_a_projection_keeps_the_order_and_the_key_or_refuses(schema, left_out, masks):
    """Kept columns keep their order, a masked column has its mask's type, and no key column is lost or made ambiguous."""
    try:
        projection = project(schema, lambda name: name not in left_out, masks.get)
    except ConfigError:
        blurred = any(name in masks and masks[name].kind != "hash" for name in schema.primary_key)
        empty = all(column.name in left_out for column in schema.columns)
        assert left_out & set(schema.primary_key) or blurred or empty
        return
    assert projection.schema.primary_key == schema.primary_key
    assert list(projection.kept) == sorted(projection.kept)
    for index, before, after in zip(projection.kept, projection.source.columns, projection.schema.columns, strict=True):
        assert schema.columns[index] is before
        assert before.name == after.name
        assert (after.type == before.type) is (
            before.name not in masks or masks[before.name].masked_type(before.type) == before.type
        )
    assert {c.name for c in projection.schema.columns} == {c.name for c in schema.columns} - left_out


@given(st.lists(st.none() | st.text(max_size=12), max_size=20), st.integers(1, 6))
def test_shortening_shows_no_more_than_it_says(values, most):
    """Truncating keeps a beginning; keeping the last shows that many characters at most, and none of a short value."""
    masker, column = Masker(), pa.array(values, pa.string())
    first = masker.apply(column, Mask("truncate", most), TEXT).to_pylist()
    last = masker.apply(column, Mask("keep_last", most), TEXT).to_pylist()
    assert first == [None if value is None else value[:most] for value in values]
    for value, shown in zip(values, last, strict=True):
        assert shown == (
            None
            if value is None
            else "*" * len(value)
            if len(value) <= most
            else "*" * (len(value) - most) + value[-most:]
        )


@given(st.lists(st.none() | st.sampled_from(["-0", "0", "1.0", "-0.0"]) | st.text(max_size=12), max_size=30))
def test_a_hash_is_that_of_the_standard_and_follows_from_the_value_alone(values):
    """At any place in a row group; null stays null."""
    hashes = Masker(KEY).apply(pa.array(values, pa.string()), Mask("hash"), TEXT).to_pylist()
    assert hashes == [v if v is None else hmac.new(KEY, v.encode(), hashlib.sha256).hexdigest() for v in values]


@given(st.integers(-(2**31), 2**31 - 1))
def test_a_number_has_one_hash_in_every_type(number):
    """INT, BIGINT, DECIMAL, DOUBLE and the text of it; so a join over two hashed columns finds the same rows."""

    def hashed(array, kind):
        return Masker(KEY).apply(array, Mask("hash"), kind).to_pylist()[0]

    found = {
        hashed(pa.array([number], pa.int32()), SourceType("int", width=4)),
        hashed(pa.array([number], pa.int64()), SourceType("int", width=8)),
        hashed(pa.array([Decimal(number)], pa.decimal128(20, 4)), SourceType("decimal", precision=20, scale=4)),
        hashed(pa.array([float(number)], pa.float64()), SourceType("double")),
        hashed(pa.array([str(number)]), TEXT),
        hashed(pa.array([str(number).encode()]), SourceType("bytes")),
    }
    assert len(found) == 1


@given(st.datetimes(YEAR_1000))
def test_a_time_has_one_hash_with_any_trailing_zeros(moment):
    """DATETIME and TIMESTAMP, of three digits and of six."""
    moment = moment.replace(microsecond=moment.microsecond // 1000 * 1000)
    naive, zoned = pa.array([moment], pa.timestamp("us")), pa.array([moment], pa.timestamp("us", tz="UTC"))
    columns = [(naive, "datetime", 3), (naive, "datetime", 6), (zoned, "timestamp", 3), (zoned, "timestamp", 6)]
    assert len({Masker(KEY).apply(c, Mask("hash"), SourceType(k, scale=s)).to_pylist()[0] for c, k, s in columns}) == 1


@given(schemas(), st.sets(st.sampled_from(list(SOURCE_KEYS))))
def test_a_route_adds_its_keys_in_front_and_changes_nothing_else(schema, keys):
    """In one order, however the file lists them."""
    routed = routed_schema(schema, Target("d", "t", True, tuple(keys)))
    added = [column for key, column in SOURCE_KEYS.items() if key in keys]
    assert routed.columns[: len(schema.columns)] == schema.columns
    assert [column.name for column in routed.columns[len(schema.columns) :]] == added
    assert routed.primary_key == ((*added, *schema.primary_key) if schema.primary_key else ())


@given(
    st.sets(st.sampled_from(["a.x", "a.y", "b.x", "b.y", "c.z"]), min_size=1),
    st.lists(
        st.tuples(st.sampled_from(["*.x", "a.*", "/y$/", "c.z"]), st.sampled_from(["all.x", "a.x", "{database}.t"])),
        max_size=4,
    ),
)
def test_every_lake_table_is_merged_once_with_all_of_its_tables(tables, routes):
    """Each source table goes into each of its lake tables once, and no lake table has two writers."""
    config = SourceConfig(
        source="s", server={"host": "h", "user": "u", "password_env": "P"}, tables={"include": ["*.*"]},
        store={"url": "file:///s"}, lake={"type": "jdbc", "uri": "jdbc:sqlite:/c", "warehouse": "file:///l"},
        routes=[{"tables": pattern, "into": into} for pattern, into in routes],
    )  # fmt: skip
    merges = lake_merges(config, tables)
    assert len({merge.name for merge in merges}) == len(merges)
    found = [(share.table, share.target.name) for merge in merges for share in merge.routed_tables]
    wanted = {(t, target.name) for t in tables for target in targets_of(config, *t.split("."))}
    assert len(found) == len(set(found))
    assert set(found) == wanted
    for merge in merges:
        assert {lake_name(config, share.target) for share in merge.routed_tables} == {merge.name}
        assert list(merge.tables) == sorted(merge.tables)


@given(st.lists(schemas(), min_size=1, max_size=4))
def test_a_union_holds_every_shard_or_names_two_of_them(shards):
    """No column of any shard is lost or too narrow."""
    named = [(f"d.t{n}", schema) for n, schema in enumerate(shards)]
    try:
        table = union("d.t", named)
    except IncompatibleSchema as error:
        said = error.message
    else:
        said = ""
    if said:
        assert len(set(re.findall(r"d\.t\d", said))) == 2
        return
    types = {column.name.lower(): column.type for column in table.columns}
    for _, schema in named:
        assert tuple(name.lower() for name in schema.primary_key) == tuple(name.lower() for name in table.primary_key)
        assert all(holds(types[column.name.lower()], column.type.lake_type) for column in schema.columns)


@given(st.text(alphabet="ab_.", min_size=1, max_size=5), st.text(alphabet="ab_.", min_size=1, max_size=5))
def test_a_regular_expression_held_at_both_ends_is_an_exact_name(database, table):
    """And a column of that name is found without its case."""
    shown = (f"`{name}`" if "." in name else name for name in (database, table))
    pattern = f"/^{'[.]'.join(map(re.escape, shown))}$/"
    assert matches(pattern, database, table)
    assert not matches(pattern, database, table + "x")
    assert captured([pattern], [], database, table)
    assert matches_column(f"/^{re.escape(table)}$/", table.upper())


@given(st.lists(st.text(min_size=1, max_size=8).filter(lambda t: "\\" not in t), min_size=1, max_size=4))
def test_no_quoted_text_of_a_statement_is_left(texts):
    """Whatever is in it: quotes, comments, words of SQL."""
    quoted = ", ".join("'" + text.replace("'", "''") + "'" for text in texts)
    assert (
        concealed(f"ALTER TABLE t ADD c SET({quoted})")
        == f"ALTER TABLE t ADD c SET({', '.join(chr(39) + '?' + chr(39) for _ in texts)})"
    )


@pytest.mark.parametrize("kind", ["hash", "truncate", "keep_last"])
def test_a_column_of_nulls_stays_one(kind):
    """Also before the first value of a row group."""
    masked = Masker(KEY).apply(
        pa.nulls(3, pa.int32()), Mask(kind, 2 if kind != "hash" else 0), SourceType("int", width=4)
    )
    assert masked.to_pylist() == [None] * 3
    assert masked.type == pa.string()
