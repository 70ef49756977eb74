"""Column types as table maps declare them, on bodies made by hand."""

from __future__ import annotations

import pytest

from cdc_lib.binlog.rows.table_map import parse
from cdc_lib.errors import DecodeError, UnsupportedValue

CHARSETS = {8: "latin1", 9: "latin2", 28: "gbk", 54: "utf16", 63: "binary", 255: "utf8mb4"}


def body(types, metas, names, *fields):
    """A TABLE_MAP of nullable columns, without an event header."""
    optional = b"".join(bytes((kind, len(value))) + value for kind, value in fields)
    named = b"".join(bytes((len(name),)) + name for name in names)
    bitmap = b"\xff" * ((len(types) + 7) // 8)
    return (
        bytes(8) + b"\1d\0\1t\0" + bytes((len(types),)) + bytes(types) + bytes((len(metas),)) + metas + bitmap
        + bytes((4, len(named))) + named + optional
    )  # fmt: skip


def columns(flavor, *arguments):
    return parse(body(*arguments), CHARSETS, flavor).schema.columns


def test_each_flavor_lists_the_character_sets_of_its_own_types():
    """MariaDB gives GEOMETRY one, MySQL gives VECTOR one: the columns after must not take it."""
    geometry = ([255, 15], b"\4\5\0", [b"g", b"t"])
    assert [c.type.charset for c in columns("mariadb", *geometry, (3, b"\x3f\x09"))] == ["binary", "latin2"]
    assert [c.type.charset for c in columns("mysql", *geometry, (3, b"\x09"))] == ["binary", "latin2"]
    vector = ([242, 15], b"\4\5\0", [b"v", b"t"])
    assert [c.type.charset for c in columns("mysql", *vector, (3, b"\x3f\x09"))] == ["binary", "latin2"]


def test_compressed_columns_of_mariadb_are_distinguished():
    """Text and bytes, short and long."""
    found = columns("mariadb", [141, 140], b"\x65\0\2", [b"v", b"b"], (3, b"\x08\x3f"))
    assert [(c.type.kind, c.type.form, c.type.width) for c in found] == [
        ("string", "compressed", 100),
        ("bytes", "compressed", 0),
    ]


def test_labels_are_decoded_in_their_character_set():
    """ENUM of gbk, SET of utf16."""
    enum, set_ = columns(
        "mysql", [254, 254], b"\xf7\1\xf8\1", [b"e", b"s"], (11, b"\x1c\x36"), (6, b"\2\1a\2\xd6\xd0"), (5, b"\1\2\0a")
    )
    assert enum.type.members == ("a", "中")
    assert set_.type.members == ("a",)


@pytest.mark.parametrize(
    ("kind", "meta"),
    [
        (255, b"\0"),
        (255, b"\5"),
        (242, b"\xff"),
        (140, b"\x09"),
        (252, b"\0"),
        (18, b"\7"),
        (254, b"\xf7\3"),
        (254, b"\xf8\x09"),
    ],
)
def test_metadata_that_would_lead_a_walk_astray_is_refused(kind, meta):
    """Prefixes of no or too many bytes, fractions of seven digits, an ENUM of three bytes."""
    with pytest.raises(DecodeError, match="not possible"):
        columns("mariadb", [kind], meta, [b"x"], (2, b"\x3f"), (10, b"\x3f"), (6, b"\1\1a"), (5, b"\1\1a"))


def test_labels_that_are_no_text_are_refused():
    """With their table, which is left out alone; so is a name."""
    with pytest.raises(UnsupportedValue, match="gbk") as caught:
        columns("mysql", [254], b"\xf7\1", [b"e"], (11, b"\x1c"), (6, b"\1\1\x80"))
    assert caught.value.context["table"] == "d.t"
    with pytest.raises(UnsupportedValue, match="no text"):
        columns("mysql", [3], b"", [b"\xed\xa0\x80"])


@pytest.mark.parametrize("kind", [0, 6, 14, 20, 200, 243])
def test_a_type_that_is_not_read_is_refused_with_its_column_and_table(kind):
    """Its width is not known: no byte of its rows is walked."""
    with pytest.raises(
        UnsupportedValue, match=rf"column x: the type number {kind} of the binlog is not read"
    ) as caught:
        columns("mysql", [3, kind], b"", [b"id", b"x"])
    assert caught.value.context["table"] == "d.t"
