"""The versions of rows, run on a table in DuckDB: random lives of rows, cut into merges, must tell what stood when."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc_lib.apply.versions import spliced
from cdc_lib.merge.scd2.rewrite import RewriteRange
from cdc_lib.merge.scd2.timeline import TimeCut
from cdc_lib.merge.scd2.versions import SAME
from cdc_lib.model.position import Point
from cdc_lib.model.table_commit import Superseded
from cdc_lib.model.table_mode import TableReset
from tests.harness.generated.examples import examples
from tests.harness.generated.histories import histories
from tests.harness.lake.planned import DictTable

START_TIME = datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None)  # as DuckDB has it
ROW = ("id", "v", "_op", "_epoch", "_binlog", "_offset", "_row", "_gtid", "_valid_from")
ENDS = ("_valid_to", "_is_current", "_to_epoch", "_to_binlog", "_to_offset", "_to_row", "_to_gtid")
TYPES = dict.fromkeys((*ROW, *ENDS), "BIGINT")
TYPES |= dict.fromkeys(("_op", "_gtid", "_to_gtid"), "VARCHAR") | {"_is_current": "BOOLEAN"}
TYPES |= dict.fromkeys(("_valid_from", "_valid_to"), "TIMESTAMP")
KEYS = 3


def quote(name):
    return f'"{name}"'


@pytest.fixture(scope="module")
def engine():
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        yield connection


def _literal(change):
    texts = ("NULL" if cell is None else str(cell) if isinstance(cell, int) else f"'{cell}'" for cell in change)
    return f"({', '.join(texts)})"


class Versions:
    """A lake table in scd2 mode; its merge reads as little of it as the Spark job does."""

    def __init__(self, engine):
        self.engine = engine
        for name, columns in (("lake", (*ROW, *ENDS)), ("changes", ROW)):
            declared = ", ".join(f"{quote(column)} {TYPES[column]}" for column in columns)
            engine.execute(f"CREATE OR REPLACE TABLE {name} ({declared})")

    def merge(self, changes, cuts=(), *, guard=False, again=(), unfinished=()):
        self.engine.execute("DELETE FROM changes")
        if changes:
            self.engine.execute(f"INSERT INTO changes VALUES {', '.join(_literal(change) for change in changes)}")
        self._splice(changes, cuts, again, unfinished, guard=guard)
        for cut in sorted(cuts, key=lambda cut: cut.reset):
            place = f"{cut.reset.epoch}, {cut.reset.file}, {cut.reset.offset}"
            self.engine.execute(
                f"UPDATE lake SET _is_current = false, _to_epoch = {cut.reset.epoch}, _to_binlog = {cut.reset.file},"
                f" _to_offset = {cut.reset.offset}, _to_row = -2, _valid_to = greatest(_valid_from, ?::TIMESTAMP)"
                f" WHERE _is_current AND (_epoch, _binlog, _offset) < ({place}) AND id NOT IN (SELECT id FROM changes)",
                [cut.reset.at],
            )

    def _splice(self, changes, cuts, again, unfinished, *, guard):
        if not changes:
            return
        first = min([min(change[3:7] for change in changes), *((*one.since, 0) for one in again)])
        where = f"_is_current OR _valid_to >= '{min(change[8] for change in changes)}'"
        if guard:
            where += f" OR (_to_epoch, _to_binlog, _to_offset, _to_row) >= {first}"
        self.engine.execute(
            f"CREATE OR REPLACE TABLE existing AS SELECT * FROM lake WHERE id IN (SELECT id FROM changes) AND ({where})"
        )
        self._found(cuts, again, unfinished)
        place = "id, _epoch, _binlog, _offset, _row"
        self.engine.execute(
            f"DELETE FROM lake WHERE ({place}) IN (SELECT ({place}) FROM existing)"
            f" AND ({place}) NOT IN (SELECT ({place}) FROM found WHERE {SAME})"
        )
        names = ", ".join(map(quote, (*ROW, *ENDS)))
        self.engine.execute(f"INSERT INTO lake ({names}) SELECT {names} FROM found WHERE NOT {SAME}")

    def _found(self, cuts, again, unfinished):
        names = ", ".join(map(quote, (*ROW, *ENDS)))
        existing = self.engine.sql(f"SELECT {names} FROM existing").to_arrow_table()
        ends = ", ".join(f"NULL::{TYPES[name]} AS {quote(name)}" for name in ENDS)
        changes = self.engine.sql(f"SELECT *, {ends} FROM changes").to_arrow_table()
        rules = [Superseded(Point(*cut.reset[:3]), {}, at=cut.reset.at, by_snapshot=cut.by_snapshot) for cut in cuts]
        rules += [Superseded(one.end, {}, since=one.since) for one in again]
        new, stays = spliced(changes, existing, ("id",), ("v",), rules, unfinished)
        self.engine.register("rows", pa.concat_tables([new, existing.filter(pa.array(stays))]))
        self.engine.register("same", pa.table({SAME: [False] * new.num_rows + [True] * int(stays.sum())}))
        self.engine.execute("CREATE OR REPLACE TABLE found AS SELECT * FROM rows POSITIONAL JOIN same")

    def rows(self):
        return sorted(self.engine.execute("SELECT * FROM lake").fetchall(), key=repr)

    def damage(self, row, deed):
        """Do something to a version that no merge does."""
        which = f"id = {row[0]} AND (_epoch, _binlog, _offset, _row) = {row[3:7]}"
        statements = {
            "gone": "DELETE FROM lake WHERE",
            "other": "UPDATE lake SET v = -1, _op = 'u', _valid_from = NULL WHERE",
            "current": "UPDATE lake SET _is_current = true, _valid_to = NULL, _to_epoch = NULL WHERE",
            "twice": "INSERT INTO lake SELECT * FROM lake WHERE",
        }
        self.engine.execute(f"{statements[deed]} {which}")

    def at_place(self, *place):
        """What stood before the event at a place."""
        found = self.engine.execute(
            f"SELECT id, v FROM lake WHERE (_epoch, _binlog, _offset) < {place}"
            f" AND (_to_epoch IS NULL OR (_to_epoch, _to_binlog, _to_offset) >= {place})"
        ).fetchall()
        assert len(found) == len(dict(found)), "two versions of a row at one place"
        return dict(found)

    def at_time(self, time):
        found = self.engine.execute(
            "SELECT id, v FROM lake WHERE _valid_from <= ?::TIMESTAMP AND (_valid_to > ?::TIMESTAMP OR _valid_to IS NULL)",
            [time, time],
        ).fetchall()
        assert len(found) == len(dict(found)), "two versions of a row at one time"
        return dict(found)


@st.composite
def lives(draw):
    """Changes of transactions, statements that take all rows, and what stood after each transaction.

    Returns:
        A list of ``(offset, seconds, rows, truncates)`` and the states: before the first transaction and after each.
    """
    state, states, events, time = {}, [{}], [], 0
    with_gtids = draw(st.booleans())
    for number in range(1, draw(st.integers(1, 14)) + 1):
        time += draw(st.sampled_from([0, 0, 1, 5]))
        offset, gtid = number * 10, f"g:{number}" if with_gtids else None
        if draw(st.integers(0, 9)) == 0:
            state = {}
            events.append((offset, time, [], True))
            states.append({})
            continue
        rows = []
        for row in range(draw(st.integers(1, 3))):
            rows += _change(draw, state, number * 10 + row, row)
        events.append((offset, time, [(*r[:3], offset, r[3], gtid) for r in rows], False))
        states.append(dict(state))
    return events, states


def _change(draw, state, value, row):
    key = draw(st.integers(0, KEYS - 1))
    if key not in state:
        state[key] = value
        return [(key, value, "c", row)]
    free = [other for other in range(KEYS) if other not in state]
    kind = draw(st.sampled_from(["update", "delete", "move"]))
    if kind == "delete":
        return [(key, state.pop(key), "d", row)]
    if kind == "move" and free:
        gone, to = state.pop(key), draw(st.sampled_from(free))
        state[to] = value
        return [(key, gone, "d", row), (to, value, "u", row)]
    state[key] = value
    return [(key, value, "u", row)]


def at(seconds):
    return START_TIME + timedelta(seconds=seconds)


def placed(events, epoch=1, shift=0):
    """Return the changes of events and the places of their statements."""
    rows = [
        (key, value, op, epoch, 1, offset + shift, row, gtid, at(time))
        for _, time, found, _ in events
        for key, value, op, offset, row, gtid in found
    ]
    return rows, [TimeCut(TableReset(epoch, 1, offset + shift, at(time))) for offset, time, _, cut in events if cut]


def _is_right(table, events, states):
    for (offset, _, _, _), before, after in zip(events, states, states[1:], strict=False):
        assert table.at_place(1, 1, offset) == before
        assert table.at_place(1, 1, offset + 1) == after
    times = {}
    for (_, time, _, _), after in zip(events, states[1:], strict=True):
        times[time] = after
    for time, state in times.items():
        assert table.at_time(at(time)) == state


@settings(max_examples=examples(40), deadline=None)
@given(lives(), st.data())
def test_any_split_gives_the_right_rows_as_of_each_position_and_time(engine, life, data):
    """Two changes in one second differ by place, and by time the last one of the second stands."""
    events, states = life
    cuts = sorted(data.draw(st.sets(st.integers(1, max(1, len(events) - 1)), max_size=4)))
    table = Versions(engine)
    for low, high in zip([0, *cuts], [*cuts, len(events)], strict=True):
        table.merge(*placed(events[low:high]))
    _is_right(table, events, states)
    split = table.rows()
    whole = Versions(engine)
    whole.merge(*placed(events))
    assert whole.rows() == split


@settings(max_examples=examples(40), deadline=None)
@given(lives(), st.data())
def test_merging_any_range_again_changes_nothing(engine, life, data):
    """As a chunk that comes late does with the windows after it."""
    events, _ = life
    table = Versions(engine)
    table.merge(*placed(events))
    before = table.rows()
    low = data.draw(st.integers(0, len(events) - 1))
    table.merge(*placed(events[low : data.draw(st.integers(low + 1, len(events)))]), guard=True)
    assert table.rows() == before


def first_distinguishable(events, known):
    """Return where new changes may begin: within one second without GTIDs, only the order tells a replayed change from a new one."""
    if not events[0][2] or events[0][2][0][5] is None:
        while known < len(events) and events[known][1] == events[known - 1][1]:
            known += 1
    return known


@settings(max_examples=examples(40), deadline=None)
@given(lives(), st.data())
def test_changes_replayed_in_a_new_epoch_make_no_versions(engine, life, data):
    """Also when the stretch comes in several merges, and is followed by what the new server has on its own."""
    events, states = life
    known = data.draw(st.integers(1, len(events)))
    low = data.draw(st.integers(0, known - 1))
    known = first_distinguishable(events, known)
    table = Versions(engine)
    table.merge(*placed(events[:known]))
    before = table.rows()
    cut = data.draw(st.integers(low, known))
    for part in (events[low:cut], events[cut:known]):
        table.merge(*placed(part, epoch=2, shift=7))
    if not any(truncates for _, _, _, truncates in events[low:known]):
        assert table.rows() == before
    table.merge(*placed(events[known:], epoch=2, shift=7))
    for (offset, _, _, _), after in zip(events[known:], states[known + 1 :], strict=True):
        assert table.at_place(2, 1, offset + 8) == after
    current = table.engine.execute("SELECT id, v FROM lake WHERE _is_current").fetchall()
    assert sorted(current) == sorted(states[-1].items())


@settings(max_examples=examples(60), deadline=None)
@given(lives(), st.data())
def test_a_new_epoch_that_begins_before_what_the_lake_knows_ends_as_the_source(engine, life, data):
    """A snapshot made good what came before; then that is read again, with some changes after it that the lake does have."""
    events, states = life
    known = len(events) - data.draw(st.integers(0, len(events) // 4))
    read = data.draw(st.integers(known // 2, known))
    since = data.draw(st.integers(0, read))
    table = Versions(engine)
    table.merge(*placed(events[since:read]))
    place, time = read * 10 + 5, events[read - 1][1] if read else 0
    rows = [(key, value, "r", 1, 1, place, -1, None, at(time)) for key, value in states[read].items()]
    table.merge(rows, [TimeCut(TableReset(1, 1, place + 1, at(time)), by_snapshot=True)], guard=True)
    table.merge(*placed(events[read:known]))
    low = data.draw(st.integers(0, since))
    middle = data.draw(st.integers(low, len(events)))
    for part in (events[low:middle], events[middle:]):
        table.merge(*placed(part, epoch=2, shift=7))
    current = table.engine.execute("SELECT id, v FROM lake WHERE _is_current").fetchall()
    assert sorted(current) == sorted(states[-1].items())


@settings(max_examples=examples(75), deadline=None)
@given(lives(), st.data())
def test_an_epoch_that_ends_before_what_the_lake_knows_is_continued_by_the_next(engine, life, data):
    """Several epochs go back, also behind a snapshot, and end anywhere; the last one reads up to the end."""
    events, states = life
    known = len(events)
    read = data.draw(st.integers(0, known))
    since = data.draw(st.integers(0, read))
    table = Versions(engine)
    table.merge(*placed(events[since:read]))
    place, time = read * 10 + 5, events[read - 1][1] if read else 0
    rows = [(key, value, "r", 1, 1, place, -1, None, at(time)) for key, value in states[read].items()]
    table.merge(rows, [TimeCut(TableReset(1, 1, place + 1, at(time)), by_snapshot=True)], guard=True)
    table.merge(*placed(events[read:known]))
    ends = [known]
    for epoch in range(2, data.draw(st.integers(3, 4)) + 1):
        low = data.draw(st.integers(0, ends[-1]))
        high = data.draw(st.integers(low, known))
        middle = data.draw(st.integers(low, high))
        for part in (events[low:middle], events[middle:high]):
            table.merge(*placed(part, epoch=epoch, shift=7), unfinished=unfinished(ends))
        ends.append(high)
    epoch = len(ends) + 1
    table.merge(*placed(events[ends[-1] :], epoch=epoch, shift=7), unfinished=unfinished(ends))
    current = table.engine.execute("SELECT id, v FROM lake WHERE _is_current").fetchall()
    assert sorted(current) == sorted(states[-1].items())


@settings(max_examples=examples(60), deadline=None)
@given(lives(), st.data())
def test_epochs_that_replay_ranges_make_no_versions(engine, life, data):
    """Each ends anywhere, and the next goes back from there."""
    events, _ = life
    events = [event for event in events if not event[3]]
    table = Versions(engine)
    table.merge(*placed(events))
    before = table.rows()
    ends = [len(events)]
    for epoch in range(2, data.draw(st.integers(3, 4)) + 1):
        low = data.draw(st.integers(0, ends[-1]))
        high = data.draw(st.integers(low, len(events)))
        table.merge(*placed(events[low:high], epoch=epoch, shift=7), unfinished=unfinished(ends))
        ends.append(high)
    assert table.rows() == before


def unfinished(ends):
    """Return the epochs, numbered from 1, that end before an earlier one."""
    return {epoch for epoch, end in enumerate(ends, 1) if end < max(ends[:epoch])}


@settings(max_examples=examples(40), deadline=None)
@given(lives(), st.data())
def test_rewriting_a_range_changes_nothing_and_repairs_damage_in_it(engine, life, data):
    """Also where an epoch brought changes again: these make no versions, as when they came by themselves."""
    events, _ = life
    known = first_distinguishable(events, data.draw(st.integers(1, len(events))))
    low = data.draw(st.integers(0, known))
    merges = [
        placed(events[:known]),
        placed(events[low:known], epoch=2, shift=7),
        placed(events[known:], epoch=2, shift=7),
    ]
    table = Versions(engine)
    for changes, cuts in merges:
        table.merge(changes, cuts)
    before = table.rows()
    places = sorted({change[3:6] for changes, _ in merges for change in changes} | {(1, 1, 4)})
    since = Point(*data.draw(st.sampled_from(places)))
    changes = [change for changes, _ in merges for change in changes if change[3:6] >= since]
    cuts = [cut for _, found in merges for cut in found if cut.reset[:3] >= since]
    stretch = RewriteRange(since, Point(9, 1, 4))
    table.merge(changes, cuts, guard=True, again=[stretch])
    assert table.rows() == before
    for row in before:
        deed = data.draw(st.sampled_from(["none", "none", "gone", "other", "current", "twice"]))
        if row[3:6] >= since and deed != "none":
            table.damage(row, deed)
    table.merge(changes, cuts, guard=True, again=[stretch])
    assert table.rows() == before


def test_a_range_that_begins_after_a_replayed_change_and_holds_its_truncate_keeps_one_version(engine):
    """The row ended by the TRUNCATE of the range; without it the replayed change is still known."""
    table = Versions(engine)
    create = (1, 1, "c", 1, 1, 10, 0, None, at(0))
    replayed = (1, 1, "c", 2, 1, 17, 0, None, at(0))
    truncate = TimeCut(TableReset(2, 1, 27, at(0)))
    table.merge([create])
    table.merge([replayed])
    table.merge([], [truncate])
    before = table.rows()
    assert [row[10:13] for row in before] == [(False, 2, 1)]
    table.merge([replayed], [truncate], guard=True, again=[RewriteRange(Point(2, 1, 17), Point(9, 1, 4))])
    assert table.rows() == before


@pytest.mark.parametrize("split", [False, True])
def test_a_replayed_truncate_that_ends_no_row_lets_no_change_come_again(engine, split):
    """The row had ended in the earlier epoch; whether one merge holds the TRUNCATE and the change makes no difference."""
    table = Versions(engine)
    end = TimeCut(TableReset(1, 1, 30, at(0)))
    table.merge([(1, 1, "c", 1, 1, 20, 0, None, at(0))])
    table.merge([], [end])
    before = table.rows()
    replayed = (1, 1, "c", 2, 1, 27, 0, None, at(0))
    first, last = (TimeCut(TableReset(2, 1, offset, at(0))) for offset in (17, 37))
    if split:
        table.merge([], [first])
        table.merge([replayed], [last])
    else:
        table.merge([replayed], [first, last])
    assert table.rows() == before


def test_commit_times_that_decrease_leave_one_version_at_any_time(engine):
    """A clock was set back by three seconds: the version that came last stands from the time of the one before on."""
    table = Versions(engine)
    table.merge([(1, 1, "c", 1, 1, 10, 0, None, at(10)), (1, 2, "u", 1, 1, 20, 0, None, at(20))])
    table.merge([(1, 3, "u", 1, 1, 30, 0, None, at(17)), (1, 3, "d", 1, 1, 40, 0, None, at(16))])
    table.merge([(1, 4, "c", 1, 1, 50, 0, None, at(15))])
    assert [table.at_time(at(time)) for time in (9, 15, 19, 20, 21)] == [{}, {1: 1}, {1: 1}, {1: 4}, {1: 4}]


def test_a_new_snapshot_ends_versions_of_rows_that_it_does_not_have(engine):
    """And continues with what it has, from its own place on."""
    table = Versions(engine)
    table.merge([(key, key, "c", 1, 1, 10, key, None, at(10)) for key in (1, 2)])
    read = [(1, 9, "r", 1, 1, 50, -1, None, at(50)), (3, 3, "r", 1, 1, 50, -1, None, at(50))]
    table.merge(read, [TimeCut(TableReset(1, 1, 51, at(50)), by_snapshot=True)], guard=True)
    assert table.at_place(1, 1, 50) == {1: 1, 2: 2}
    assert table.at_place(1, 1, 60) == {1: 9, 3: 3}
    table.merge([(2, 7, "c", 1, 1, 60, 0, None, at(60))])
    assert table.at_place(1, 1, 61) == {1: 9, 2: 7, 3: 3}


class Planned(DictTable):
    """Versions, merged by the decisions of plans."""

    def __init__(self, history, engine):
        super().__init__(history, "scd2")
        self.versions = Versions(engine)

    def merge(self, pieces, work):
        changes = [(key, value, op, *order, None, at(order[2])) for order, op, key, value in self.changes(pieces)]
        cuts = [TimeCut(gone._replace(at=gone.at.replace(tzinfo=None))) for gone in work.resets]
        again = [RewriteRange(*work.rewrite)] if work.rewrite is not None else []
        self.versions.merge(changes, cuts, guard=work.guard, again=again)


@settings(max_examples=examples(80), deadline=None)
@given(history=histories(most_events=12, statements=True), draw=st.data())
def test_any_plan_of_any_history_ends_with_the_rows_of_the_source_and_no_version_twice(engine, history, draw):
    """Late chunks, the windows that they bring again, merges that are repeated, and parts that are merged again in between."""
    lake = Planned(history, engine)
    for step in history.steps:
        lake.step(step)
        merged, mark = lake.marker.merged_to, lake.marker.snapshot("s1")
        if merged is not None and draw.draw(st.booleans()):
            begin, before = draw.draw(st.sampled_from([start for start, _, _ in history.windows])), lake.versions.rows()
            whole = mark is not None and mark.complete and draw.draw(st.booleans())
            begin = min([begin, merged.offset, *((chunk.low for chunk in history.chunks) if whole else ())])
            lake.again(begin, merged.offset, chunks=whole, side=False)
            assert lake.versions.rows() == before
    rows = lake.versions.rows()
    assert {row[0]: row[1] for row in rows if row[10]} == history.final
    assert len({(row[0], *row[3:7]) for row in rows}) == len(rows)
    for start, _, _ in history.windows:
        lake.versions.at_place(1, 1, start)
    for step in history.steps:
        lake.step(step)
    assert lake.versions.rows() == rows
