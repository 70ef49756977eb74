"""The comparison of a batch with the second decoder, without a server."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from cdc_lib.model.decoded_event import NULL, DecodedEvent, DecodedImage
from cdc_lib.model.schema import Column, SourceType, TableSchema
from cdc_lib.model.table_name import TableName
from cdc_lib.verify.batches.cells import Unsure, compare_of
from cdc_lib.verify.batches.compare import WindowComparison
from cdc_lib.verify.batches.places import KnownOfWindow, Place, StoredChange

T = TableName("shop", "t")
INT = SourceType("int", 4)
SCHEMA = TableSchema("shop", "t", (Column("id", INT), Column("n", INT)), ("id",))


def stored(offset, row, op, *cells):
    return StoredChange(Place(1, offset, row), op, None, cells, "shop.t/part-00000.parquet", SCHEMA)


def image(number, n):
    return DecodedImage({"id": number, "n": n}, {})


def compared(changes, *events, masked=()):
    expected = KnownOfWindow(lambda _: True, {}, lambda _, column: column in masked)
    comparison = WindowComparison({T: iter(changes)}, expected)
    for event in events:
        comparison.take(event)
    comparison.finish()
    return comparison


def rows(offset, *pairs):
    return DecodedEvent("rows", 1, offset, T, rows=pairs)


def test_each_operation_is_compared_at_its_place():
    """An update takes two numbers; an update of the key is a delete and an update."""
    changes = [stored(10, 0, "c", 1, 5), stored(20, 1, "u", 1, 6), stored(30, 0, "d", 1, 6), stored(30, 1, "u", 2, 6)]
    events = (
        rows(10, (None, image(1, 5))),
        rows(20, (image(1, 5), image(1, 6))),
        rows(30, (image(1, 6), image(2, 6))),
    )
    found = compared(changes, *events)
    assert (found.equal, found.differing) == (4, 0)


def test_one_lost_change_makes_no_other_differ():
    """The place of each change says which one is lost."""
    event = rows(10, (None, image(1, 1)), (None, image(2, 2)), (None, image(3, 3)))
    found = compared([stored(10, 0, "c", 1, 1), stored(10, 2, "c", 3, 3)], event)
    assert (found.equal, [(one.kind, one.offset, one.row) for one in found.differences]) == (2, [("missing", 10, 1)])


def test_a_rolled_back_change_is_not_comparable():
    """The second decoder gives rows that the drain rightly leaves out."""
    found = compared([], DecodedEvent("begin", 1, 4), rows(10, (None, image(1, 1))), DecodedEvent("rollback", 1, 20))
    assert (found.differing, found.uncomparable) == (0, 1)


def test_a_masked_column_is_left_out_and_named():
    """Its values are not in the report."""
    found = compared([stored(10, 0, "c", 1, 999)], rows(10, (None, image(1, 5))), masked={"n"})
    assert (found.equal, [one.column for one in found.not_comparable]) == (1, ["n"])


@pytest.mark.parametrize(
    ("kind", "cell", "decoded", "same"),
    [
        (SourceType("time", scale=3), "100:00:00.125", timedelta(hours=100, milliseconds=125), True),
        (SourceType("datetime", scale=3), 1_000, datetime.fromisoformat("1970-01-01T00:00:00.001"), True),
        (SourceType("set", charset="utf8mb4"), "x,y", {"y", "x"}, True),
        (SourceType("bytes", text="binary(4)"), b"\1\0\0\0", b"\1", True),
        (SourceType("bytes", text="varbinary(4)"), b"\1\0", b"\1", False),
        (SourceType("double"), 0.0, -0.0, False),
        (SourceType("year"), 0, 1900, True),
        (INT, None, 1, False),
    ],
)
def test_cells_are_compared_in_the_form_of_their_type(kind, cell, decoded, same):
    """Texts of times, numbers of dates, sets without order, and padding."""
    compare = compare_of(Column("a", kind), named=True)
    assert not isinstance(compare, str)
    assert compare(cell, decoded, NULL) is same


def test_a_value_that_the_second_decoder_reads_wrong_is_not_judged():
    """A fraction of a negative time."""
    compare = compare_of(Column("a", SourceType("time", scale=2)), named=True)
    assert not isinstance(compare, str)
    with pytest.raises(Unsure, match="negative TIME"):
        compare("-00:00:00.05", timedelta(milliseconds=-950), NULL)
