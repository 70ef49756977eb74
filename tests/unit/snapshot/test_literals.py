"""A value of a key in SQL, for every kind: in conditions of chunks, where keys are looked up, and on its own."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from cdc_lib.model.column_types import FAMILIES
from cdc_lib.model.schema import Column, SourceType, TableSchema
from cdc_lib.snapshot.bounds import bound
from cdc_lib.snapshot.by_key import literals
from cdc_lib.snapshot.chunks import at_key, key_text, key_text_sql
from cdc_lib.snapshot.probes import between

LATIN = {"charset": "latin1", "width": 9}
NOON = datetime(2026, 1, 2, 12, 30, 5, 250_000)  # noqa: DTZ001 - as Arrow gives a time without a zone

KEYS = {
    "int": (SourceType("int", width=4), b"-7", "-7", "-7"),
    "decimal": (SourceType("decimal", precision=9, scale=2), b"-1.50", "-1.50", "-1.50"),
    "double": (SourceType("double"), b"1.5e20", "1.5e20", "1.5e20"),
    "string": (SourceType("string", **LATIN), "é'".encode("latin1"), "e927", "_latin1 X'e927'"),
    "bytes": (SourceType("bytes", charset="binary", width=9), b"\x00'", "0027", "X'0027'"),
    "date": (SourceType("date"), b"2026-01-02", "2026-01-02", "'2026-01-02'"),
    "time": (SourceType("time", scale=1), b"-12:00:00.5", "-12:00:00.5", "'-12:00:00.5'"),
    "datetime": (SourceType("datetime"), b"2026-01-02 12:30:05", "2026-01-02 12:30:05", "'2026-01-02 12:30:05'"),
    "timestamp": (SourceType("timestamp"), b"2026-01-02 12:30:05", "2026-01-02 12:30:05", "'2026-01-02 12:30:05'"),
    "year": (SourceType("year"), b"2026", "2026", "2026"),
}
"""By kind: a column's type, a value as the server sends it, its text in documents, and its literal."""

SMALL = Decimal("0.0000001")
MOMENT = "2026-01-02 12:30:05.250000"
LAKE = [
    (SourceType("int", width=4), pa.array([-7]), "-7", ""),
    (
        SourceType("int", width=8, unsigned=True),
        pa.array([Decimal(2**64 - 1)], pa.decimal128(20, 0)),
        str(2**64 - 1),
        "",
    ),
    (SourceType("bit", width=9), pa.array([257]), "257", ""),
    (SourceType("year"), pa.array([2026]), "2026", ""),
    (SourceType("float"), pa.array([0.1], pa.float32()), "0.10000000149011612", ""),
    (SourceType("double"), pa.array([0.1]), "0.1", ""),
    (
        SourceType("decimal", 0, False, 20, 9),
        pa.array([SMALL], pa.decimal128(20, 9)),
        "CAST('1.00E-7' AS DECIMAL(20,9))",
        "",
    ),
    (SourceType("decimal", 0, False, 50, 9), pa.array(["0.000000100"]), "CAST('0.000000100' AS DECIMAL(50,9))", ""),
    (
        SourceType("string", **LATIN),
        pa.array(["é'"]),
        "_utf8mb4 X'c3a927'",
        "CONVERT(_utf8mb4 X'c3a927' USING latin1) COLLATE latin1_bin",
    ),
    (SourceType("enum", charset="latin1"), pa.array(["é"]), "_utf8mb4 X'c3a9'", ""),
    (SourceType("set", charset="latin1"), pa.array(["é"]), "_utf8mb4 X'c3a9'", ""),
    (SourceType("bytes", charset="binary"), pa.array([b"\x00'"]), "X'0027'", ""),
    (SourceType("bytes", 2, charset="binary", form="uuid"), pa.array([b"\x00'"]), "CAST(X'0027' AS UUID)", ""),
    (SourceType("date"), pa.array([date(2026, 1, 2)]), "'2026-01-02'", "CAST('2026-01-02' AS DATE)"),
    (SourceType("date", as_text=True), pa.array(["2026-00-00"]), "'2026-00-00'", "CAST('2026-00-00' AS DATE)"),
    (SourceType("time", scale=1), pa.array(["-12:00:00.5"]), "'-12:00:00.5'", "CAST('-12:00:00.5' AS TIME(6))"),
    (SourceType("datetime"), pa.array([NOON], pa.timestamp("us")), f"'{MOMENT}'", f"CAST('{MOMENT}' AS DATETIME(6))"),
    (
        SourceType("timestamp"),
        pa.array([NOON], pa.timestamp("us", "UTC")),
        f"'{MOMENT}'",
        f"CAST('{MOMENT}' AS DATETIME(6))",
    ),
    (SourceType("json"), pa.array(["1"]), "'1'", ""),
]
"""A column's type, a value as the lake holds it, its literal beside the column, and its literal on its own; empty for the same."""


def of_one(kind):
    return TableSchema("db", "t", (Column("k", KEYS[kind][0]),), ("k",))


def test_each_kind_is_here():
    assert set(KEYS) == {kind for kind, family in FAMILIES.items() if family.walks}
    assert {one[0].kind for one in LAKE} == set(FAMILIES) - {"unsupported"}


@pytest.mark.parametrize("kind", KEYS)
def test_a_key_becomes_text_and_a_literal(kind):
    """What the server sends, and what a statement asks for."""
    _, sent, text, literal = KEYS[kind]
    schema = of_one(kind)
    assert key_text(schema, (sent,)) == (text,)
    assert key_text_sql(schema) == ["LOWER(HEX(`k`))" if kind in ("string", "bytes") else "CAST(`k` AS CHAR)"]
    assert at_key(schema, (text,)) == f"`k` = {literal}"


@pytest.mark.parametrize("kind", KEYS)
def test_what_a_person_writes_becomes_the_text_of_a_key(kind):
    """Texts in their character set, bytes as hex digits."""
    _, sent, text, _ = KEYS[kind]
    written = {"string": "é'", "bytes": "0x0027"}.get(kind) or sent.decode()
    assert bound(of_one(kind), written, "--key-from", lambda value, charset: value.encode(charset)) == (text,)


@pytest.mark.parametrize("kind", KEYS)
def test_the_greater_key_itself_is_among_the_values_between_two_keys(kind):
    """Where no value lies between them, it is the only one."""
    of, _, text, literal = KEYS[kind]
    if of.family.has_charset:
        assert "_utf8mb4 X'61'" in between(of, "", "61", ("", "a"))
    else:
        values = between(of, text, text)
        assert (
            {float(one) for one in values} == {float(literal)} if not of.family.signs[0] else set(values) == {literal}
        )


@pytest.mark.parametrize(("of", "values", "beside", "alone"), LAKE, ids=range(len(LAKE)))
def test_a_value_of_the_lake_becomes_a_literal(of, values, beside, alone):
    """Beside its column, and on its own with the column's type."""
    assert literals(of, values).to_pylist() == [beside]
    assert literals(of, values, "latin1_bin" if of.family.has_charset else "").to_pylist() == [alone or beside]
