"""Differences of JSON documents on texts and bytes made by hand."""

from __future__ import annotations

import random

import pytest

from cdc_lib.binlog.types.json_diff import INSERT, REMOVE, REPLACE, BadDiff, Diff, apply, parse

DOCUMENT = '{"a": [1.50, "x"], "bb": {"k\\"y": null}}'


def cell(operation: int, path: bytes, value: bytes | None = None) -> bytes:
    head = bytes([operation, len(path)]) + path
    return head if value is None else head + bytes([len(value)]) + value


@pytest.mark.parametrize(
    ("operation", "path", "value", "after"),
    [
        (REPLACE, (), "7", "7"),
        (REPLACE, ("a", 0), '"é\\n"', '{"a": ["é\\n", "x"], "bb": {"k\\"y": null}}'),
        (REPLACE, ("bb", 'k"y'), "{}", '{"a": [1.50, "x"], "bb": {"k\\"y": {}}}'),
        (INSERT, ("a", 1), "1e20", '{"a": [1.50, 1e20, "x"], "bb": {"k\\"y": null}}'),
        (INSERT, ("a", 9), "true", '{"a": [1.50, "x", true], "bb": {"k\\"y": null}}'),
        (INSERT, ("B",), "[]", '{"B": [], "a": [1.50, "x"], "bb": {"k\\"y": null}}'),
        (INSERT, ("é",), "0", '{"a": [1.50, "x"], "bb": {"k\\"y": null}, "é": 0}'),
        (REMOVE, ("a", 0), None, '{"a": ["x"], "bb": {"k\\"y": null}}'),
        (REMOVE, ("bb", 'k"y'), None, '{"a": [1.50, "x"], "bb": {}}'),
    ],
)
def test_a_json_difference_changes_only_the_node_at_its_path(operation, path, value, after):
    """Numbers keep their texts; members stand by length, then by bytes."""
    assert apply(DOCUMENT, [(Diff(operation, path, 0, 0), value)]) == after


@pytest.mark.parametrize(
    ("operation", "path"),
    [
        (REPLACE, ("a", 2)),
        (REPLACE, ("c",)),
        (REPLACE, ("a", "x")),
        (REPLACE, (0,)),
        (REMOVE, ()),
        (REMOVE, ("a", 0, 0)),
        (INSERT, ("a",)),
        (INSERT, ("a", "x")),
        (INSERT, (0,)),
    ],
)
def test_a_path_that_is_not_there_is_a_fault(operation, path):
    """A document is never changed somewhere else."""
    with pytest.raises(BadDiff):
        apply(DOCUMENT, [(Diff(operation, path, 0, 0), "1")])


@pytest.mark.parametrize(
    ("path", "legs"),
    [
        (b"$", ()),
        (b"$[12]", (12,)),
        (b"$.a.b[0].c", ("a", "b", 0, "c")),
        (b"$._a$1.$", ("_a$1", "$")),
        (b'$.""', ("",)),
        (b'$."\\ud83d\\ude00"', ("\U0001f600",)),
        (b'$."x y"."q\\"[0]"[1]', ("x y", 'q"[0]', 1)),
        ("$.é".encode(), ("é",)),
    ],
)
def test_paths_are_read_as_the_server_writes_them(path, legs):
    """Names that are no identifiers are quoted."""
    assert parse(cell(REMOVE, path)) == [Diff(REMOVE, legs, len(path) + 2, 0)]


@pytest.mark.parametrize(
    "data",
    [
        b"\3\1$",
        b"\0",
        b"\2\5$",
        cell(REPLACE, b"$.a"),
        cell(REPLACE, b"$.a") + b"\5abc",
        cell(REMOVE, b"a"),
        cell(REMOVE, b"$[-1]"),
        cell(REMOVE, b"$[last]"),
        cell(REMOVE, b"$[0"),
        cell(REMOVE, b'$."a'),
        cell(REMOVE, b"$\xff"),
        cell(REMOVE, b"$x"),
        cell(REMOVE, b""),
        cell(REMOVE, b"$."),
        cell(REMOVE, b"$. a"),
        cell(REMOVE, b"$.*"),
        cell(REMOVE, b"$**.a"),
        cell(REMOVE, b'$.a"b'),
        cell(REMOVE, b"$[]"),
        cell(REMOVE, "$[\u0663]".encode()),
        cell(REMOVE, b"$[99999999999]"),
        cell(INSERT, b'$."\\ud800"', b"\4\0"),
        b"\2\xfc\xff",
        b"\2\xfb$",
        b"\2\xfe" + b"\xff" * 8,
    ],
)
def test_what_does_not_follow_the_format_is_a_fault(data):
    """No byte after the cell is read."""
    with pytest.raises(BadDiff):
        parse(data)


@pytest.mark.parametrize("seed", range(200))
def test_changed_bytes_end_in_differences_or_a_fault(seed):
    """Never in another error."""
    draw = random.Random(seed)
    data = bytearray(cell(REPLACE, b'$.a[1]."x y"', b"\5\1\0") + cell(REMOVE, b"$.bb") + cell(INSERT, b"$[0]", b"\4\0"))
    for _ in range(draw.randint(1, 4)):
        data[draw.randrange(len(data))] = draw.randrange(256)
    try:
        found = parse(bytes(data))
    except BadDiff:
        return
    assert all(diff.start + diff.size <= len(data) for diff in found)
