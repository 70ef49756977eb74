"""The statements that look rows up."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from cdc_lib.model.schema import SourceType
from cdc_lib.snapshot.by_key import converts_exactly, select_by_keys
from tests.harness.lake.batches import BIGINT, TEXT, table


def where(schema, keys, **settings):
    [(sql, _)] = select_by_keys(schema, pa.table(keys), **settings)
    return sql.partition(" WHERE ")[2]


def test_texts_go_as_hex_digits():
    """No character in them means anything to the server."""
    found = where(table("db.t", {"id": TEXT}), {"id": ["a'b", "", "é"]})
    assert found == "`id` IN (_utf8mb4 X'612762', _utf8mb4 X'', _utf8mb4 X'c3a9')"


def test_a_slice_of_texts_is_that_slice():
    """Arrow's slices share the buffers of what they are cut from."""
    schema = table("db.t", {"id": TEXT})
    keys = pa.table({"id": pa.array(["xx", "a", "bc", "yy"]).slice(1, 2)})
    assert where(schema, keys.to_pydict()) == "`id` IN (_utf8mb4 X'61', _utf8mb4 X'6263')"
    [(sql, _)] = select_by_keys(schema, keys)
    assert sql.endswith("IN (_utf8mb4 X'61', _utf8mb4 X'6263')")


def test_keys_of_several_columns_are_tuples():
    """In the order of the key, which both servers look up by their index."""
    schema = table("db.t", {"a": BIGINT, "b`": TEXT}, ["b`", "a"])
    found = where(schema, {"b`": ["x", "y"], "a": [1, 2]})
    assert found == "(`b```, `a`) IN ((_utf8mb4 X'78', 1), (_utf8mb4 X'79', 2))"


def test_keys_of_several_columns_in_other_character_sets_are_spelled_out():
    """A server may take a tuple's text for bytes of the column's character set."""
    latin = SourceType("string", charset="latin1")
    schema = table("db.t", {"a": BIGINT, "b": latin}, ["b", "a"])
    found = where(schema, {"b": ["x", "y"], "a": [1, 2]})
    assert found == "(`b` = _utf8mb4 X'78' AND `a` = 1) OR (`b` = _utf8mb4 X'79' AND `a` = 2)"


def test_small_decimals_are_no_doubles():
    """A literal with an exponent would be one, and might be another number."""
    schema = table("db.t", {"id": SourceType("decimal", precision=20, scale=12)})
    found = where(schema, {"id": pa.array([Decimal("0.000000000001")], pa.decimal128(20, 12))})
    assert found == "`id` IN (CAST('1E-12' AS DECIMAL(20,12)))"


def test_a_long_list_becomes_several_statements():
    """Each key is in exactly one of them; long keys make short lists."""
    schema = table("db.t", {"id": BIGINT})
    keys = pa.table({"id": list(range(10_000))})
    pieces = list(select_by_keys(schema, keys))
    assert len(pieces) == 3
    assert pa.concat_tables([part for _, part in pieces]).equals(keys)
    long = pa.table({"id": ["x" * 3000] * 400})
    assert all(len(sql) < 1_100_000 for sql, _ in select_by_keys(table("db.t", {"id": TEXT}), long))


@pytest.mark.parametrize(
    ("charset", "exactly"), [("utf8mb4", True), ("latin1", True), ("cp932", False), ("gbk", False)]
)
def test_texts_of_character_sets_with_twins_are_looked_up_in_unicode_as_well(charset, exactly):
    """Two byte sequences of one character go to Unicode and come back as one of them."""
    schema = table("db.t", {"id": SourceType("string", charset=charset), "n": BIGINT}, ["id", "n"])
    assert converts_exactly(schema) is exactly
    found = where(schema, {"id": ["x"], "n": [1]}, converted=True)
    assert found == "(CONVERT(`id` USING utf8mb4) COLLATE utf8mb4_bin, `n`) IN ((_utf8mb4 X'78', 1))"
