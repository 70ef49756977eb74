"""Which values cells take that changes lack, and which rows stay incomplete."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from cdc_lib.apply.complete import MovedKeys, completed, needing, refuse_partial_keys
from cdc_lib.apply.rows import BEFORE_READ, READ_AHEAD, WHILE_READ, LakeShape, last_changes
from cdc_lib.errors import ValuesNotLogged
from cdc_lib.merge.collapse import MISSING
from cdc_lib.model.lake_table import ORDER
from cdc_lib.model.manifest import ABSENT, OP
from cdc_lib.model.position import Point
from cdc_lib.model.table_commit import Superseded
from cdc_lib.model.table_mode import TO_ORDER

OWN = ("id", "v", "w")
MARKS = {"soft_delete": {"_is_deleted": pa.bool_()}, "mirror": {}}
MARKS["scd2"] = {"_is_current": pa.bool_(), **dict.fromkeys(TO_ORDER, pa.int64())}
TRUNCATE = Superseded(Point(1, 1, 50), {}, at=datetime(2026, 1, 1, tzinfo=UTC))


def schema(mode):
    numbers = dict.fromkeys((*OWN, *ORDER), pa.int64())
    return pa.schema([(OP, pa.string()), *numbers.items(), *MARKS[mode].items()])


def changes(*rows, mode="mirror"):
    """Return changes ``(op, offset, marks of id, v and w, values)``; marks may have a phase, and None are all."""
    fields = schema(mode).append(pa.field(ABSENT, pa.string()))
    found, row_of = [], {}
    for op, offset, marks, values in rows:
        number = row_of[offset] = row_of.get(offset, -1) + 1
        absent = marks and marks[:3] + "+" * (len(fields) - 5) + marks[3:]
        order = dict(zip(ORDER, (1, 1, offset, number), strict=True))
        found.append({OP: op, **order, **dict(zip(OWN, values, strict=True)), ABSENT: absent})
    return pa.Table.from_pylist(found, fields)


def old(offset, *values, mode="mirror", **more):
    """Return the lake's row."""
    order = dict(zip(ORDER, (1, 1, offset, 0), strict=True))
    return pa.Table.from_pylist([{**order, **dict(zip(OWN, values, strict=True)), **more}], schema(mode)).drop_columns(
        [OP]
    )


def nothing(mode="mirror"):
    return schema(mode).empty_table().drop_columns([OP])


def shown(found, *, last=True):
    rows = last_changes(found, ["id"], begins=False) if last else found
    return sorted((row["id"], row[OP], row["v"], row["w"], row[MISSING]) for row in rows.to_pylist())


@pytest.mark.parametrize("mode", ["mirror", "soft_delete"])
def test_an_insert_takes_nothing_from_before_a_delete(mode):
    given = changes(("d", 10, "+--", (1, None, None)), ("c", 20, "++-", (1, 5, None)), mode=mode)
    more = {"_is_deleted": False} if mode == "soft_delete" else {}
    found = completed(given, old(5, 1, 3, 4, mode=mode, **more), ["id"], mode)
    assert shown(found) == [(1, "c", 5, None, "w")]
    assert shown(found, last=False)[1] == (1, "d", 3, 4, "")


def test_an_insert_takes_nothing_from_a_row_that_is_marked_as_deleted():
    given = changes(("c", 20, "++-", (1, 5, None)), mode="soft_delete")
    found = completed(given, old(5, 1, 3, 4, mode="soft_delete", _is_deleted=True), ["id"], "soft_delete")
    assert shown(found) == [(1, "c", 5, None, "w")]


def test_a_row_that_moves_to_the_key_of_a_deleted_row_takes_nothing_from_that_one():
    moves = [("d", 20, "+--", (2, None, None)), ("u", 20, "+--", (1, None, None))]
    before = pa.concat_tables(
        [
            old(10, 1, 3, 4, mode="soft_delete", _is_deleted=True),
            old(5, 2, 7, 8, mode="soft_delete", _is_deleted=False),
        ]
    )
    found = completed(changes(*moves, mode="soft_delete"), before, ["id"], "soft_delete")
    assert shown(found) == [(1, "u", 7, 8, ""), (2, "d", 7, 8, "")]


def test_a_delete_that_comes_again_keeps_the_cells_of_the_row():
    rows = [("d", 20, "+--", (1, None, None)), ("d", 30, "+--", (1, None, None))]
    before = old(20, 1, 3, 4, mode="soft_delete", _is_deleted=True)
    found = completed(changes(*rows, mode="soft_delete"), before, ["id"], "soft_delete")
    assert shown(found, last=False) == [(1, "d", 3, 4, "")] * 2


@pytest.mark.parametrize("mode", ["mirror", "soft_delete", "scd2"])
def test_a_row_takes_nothing_from_before_a_statement_that_removed_all_rows(mode):
    """Without a delete of its own. Changes before the statement do."""
    more = {"soft_delete": {"_is_deleted": False}, "scd2": {"_is_current": True}}.get(mode, {})
    before = old(5, 1, 3, 4, mode=mode, **more)
    given = changes(("c", 60, "++-", (1, 5, None)), mode=mode)
    assert shown(completed(given, before, ["id"], mode, [TRUNCATE])) == [(1, "c", 5, None, "w")]
    if mode != "mirror":
        given = changes(("u", 40, "++-", (1, 5, None)), mode=mode)
        assert shown(completed(given, before, ["id"], mode, [TRUNCATE])) == [(1, "u", 5, 4, "")]


def test_an_insert_takes_nothing_from_a_version_that_has_ended():
    ended = dict(zip(TO_ORDER, (1, 1, 10, 0), strict=True)) | {"_is_current": False}
    given = changes(("u", 8, "++-", (1, 5, None)), ("c", 20, "++-", (1, 6, None)), mode="scd2")
    found = completed(given, old(5, 1, 3, 4, mode="scd2", **ended), ["id"], "scd2")
    assert shown(found, last=False) == [(1, "c", 6, None, "w"), (1, "u", 5, 4, "")]


def test_a_value_that_is_not_in_the_binlog_is_not_that_of_the_row_before():
    given = changes(("u", 10, "++?", (1, 5, None)), ("u", 20, "+-+", (2, None, 9)), ("u", 15, "++?", (2, 5, None)))
    assert shown(completed(given, old(5, 1, 3, 4), ["id"], "mirror")) == [(1, "u", 5, None, "w"), (2, "u", 5, 9, "")]


@pytest.mark.parametrize(
    ("phase", "op", "to_come", "found"),
    [
        ("", "u", False, ("u", "w")),
        ("", "u", True, ("d", "")),
        (BEFORE_READ, "c", False, ("d", "")),
        (WHILE_READ, "u", False, ("d", "")),
        (WHILE_READ, "c", False, ("c", "w")),
        (READ_AHEAD, "u", False, ("u", "w")),
    ],
)
def test_an_incomplete_row_that_a_read_did_not_return_was_deleted(phase, op, to_come, found):
    """Unless it was inserted during the read; a row of a later snapshot is left to it."""
    given = changes((op, 10, "++-" + phase, (1, 5, None)))
    [row] = shown(completed(given, nothing(), ["id"], "mirror", to_come=to_come))
    assert (row[1], row[4]) == found


@pytest.mark.parametrize("phase", ["", WHILE_READ, READ_AHEAD])
def test_a_row_that_moved_while_its_old_key_was_read_takes_cells_only_of_a_row_that_was_inserted(phase):
    """The row that was read under the old key may be another one."""
    moves = [("d", 20, "+--" + phase, (1, None, None)), ("u", 20, "++-" + phase, (2, 7, None))]
    inserted = completed(changes(("c", 10, None, (1, 3, 4)), *moves), nothing(), ["id"], "mirror")
    assert shown(inserted)[1] == (2, "u", 7, 4, "")
    read = completed(changes(*moves), old(5, 1, 3, 4), ["id"], "mirror")
    assert shown(read)[1] == ((2, "u", 7, 4, "") if not phase else (2, "u", 7, None, "w"))


def test_rows_that_move_in_a_chain_are_completed_one_after_another():
    moves = [
        row
        for key in range(1, 30)
        for row in (("d", 100 + key, "+--", (key, None, None)), ("u", 100 + key, "+--", (key + 1, None, None)))
    ]
    found = completed(changes(*moves), old(5, 1, 3, 4), ["id"], "mirror")
    assert shown(found)[-1] == (30, "u", 3, 4, "")


def test_only_rows_that_stay_or_move_need_the_lake_row():
    given = changes(
        ("d", 10, "+--", (1, None, None)),
        ("d", 20, "+--", (2, None, None)),
        ("u", 20, "+--", (3, None, None)),
        ("c", 30, None, (4, 1, 1)),
    )
    assert needing(given, keeps_deleted=False).tolist() == [False, True, True, False]
    assert needing(given, keeps_deleted=True).tolist() == [True, True, True, False]


def test_moved_keys_are_found_between_two_tables_of_changes():
    """The drain may end a row group between the two rows of an update."""
    given = changes(("c", 10, None, (9, 1, 1)), ("d", 20, "+--", (2, None, None)), ("u", 20, "+--", (3, None, None)))
    moved = MovedKeys(["id"])
    found = [moved(given.slice(start, 1)).column("id").to_pylist() for start in range(3)]
    assert found == [[], [], [3, 2]]


def test_a_key_that_took_its_default_cannot_be_completed():
    given = changes(("c", 10, "-++", (None, 1, 1)), ("c", 20, "++-", (2, 1, None)))
    with pytest.raises(ValuesNotLogged, match="rows lack columns of the key") as caught:
        refuse_partial_keys(given, ["id"], "db.t")
    assert caught.value.context["rows"] == 1


def test_marks_say_by_which_read_a_row_may_have_been_returned():
    fields = (pa.field("id", pa.int64()), *(pa.field(name, pa.int64()) for name in ORDER))
    shape = LakeShape(
        "db.t", fields, {}, lambda _: True, reads=(Point(1, 1, 20), Point(1, 1, 30)), ahead_until=Point(1, 1, 40)
    )
    rows = changes(*(("u", offset, "+++", (1, 1, 1)) for offset in (10, 20, 30, 40)))
    assert shape._phase(rows).to_pylist() == [BEFORE_READ, WHILE_READ, READ_AHEAD, ""]
