"""A source that is drained, acknowledged, merged, released and read again in any order: each lake table is at a state that was.

The model is in :mod:`tests.harness.generated.quarantine_world`.
"""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.harness.generated.examples import examples
from tests.harness.generated.quarantine_world import World

GROUPS = [
    ("write",),
    ("plan", "ack all"),
    ("plan",),
    ("plan long",),
    ("plan long", "ack all"),
    ("ack one",),
    ("write", "release", "read"),
    ("read",),
    ("merge",),
    ("prune",),
]
SNAPSHOT_STEPS = [
    *GROUPS,
    ("ask",),
    ("ask", "plan", "read"),
    ("plan merge",),
    ("finish merge",),
    ("roll back",),
    ("late",),
]

RUN = ("write", "plan", "ack all", "merge")
MERGE_STEPS = [*SNAPSHOT_STEPS, RUN, RUN, RUN, RUN, ("answer",)]


def steps_of(groups):
    chosen = st.lists(st.sampled_from(groups), min_size=10, max_size=60)
    return chosen.map(lambda found: [step for group in found for step in group])


FAULTY = st.sets(st.integers(0, 12), min_size=1, max_size=6)
SOME = st.sets(st.integers(0, 12), max_size=3)
OFTEN = settings(max_examples=examples(1000))


def act(world, step):
    acts = {
        "write": lambda: setattr(world, "head", world.head + 1),
        "plan": lambda: world.plan(1),
        "plan long": lambda: world.plan(3),
        "ack one": lambda: world.drain_and_ack(1),
        "ack all": lambda: world.drain_and_ack(99),
        "release": world.resume,
        "read": world.read_chunk,
        "merge": world.merge,
        "ask": world.ask,
        "plan merge": world.plan_merge,
        "finish merge": world.finish_merge,
        "roll back": world.roll_back,
        "late": world.late,
        "answer": world.answer,
        "prune": world.prune,
    }
    acts[step]()
    world.look()


def caught_up(world):
    """Let nothing be at fault any more, release, and run so many rounds that all is merged."""
    world.faulty, world.replaced, world.stuck = set(), frozenset(), world.stuck if not world.leaves_out else frozenset()
    world.answered |= world.asking
    for again in (True, True, True, True, False, False, False):
        world.plan(2)
        world.read_chunk()
        world.read_chunk()
        world.drain_and_ack(99)
        world.merge()
        if again:
            world.resume()
    return world.state == world.head


@OFTEN
@given(FAULTY, steps_of(GROUPS))
def test_a_lake_table_always_equals_a_state_of_the_source(faulty, steps):
    """And a window's content does not depend on when it is drained; the cut names the state."""
    world = World(faulty)
    for step in steps:
        act(world, step)


@given(FAULTY, steps_of(GROUPS))
def test_a_released_table_catches_up(faulty, steps):
    """Once all faults are fixed, a release and two rounds bring it to the end of the binlog."""
    world = World(faulty)
    for step in steps:
        act(world, step)
    assert caught_up(world)


@OFTEN
@given(SOME, SOME, steps_of(SNAPSHOT_STEPS))
def test_a_resnapshotted_table_catches_up_with_any_work_in_flight(faulty, replaced, steps):
    """Requested or because it was replaced, once or several times, with abandoned merges that end late."""
    world = World(faulty, frozenset(replaced))
    for step in steps:
        act(world, step)
    assert caught_up(world)
    while world.abandoned:
        world.late()
    assert world.state == world.head


@OFTEN
@given(SOME, SOME, steps_of(SNAPSHOT_STEPS))
def test_a_new_snapshot_replaces_a_merge_that_cannot_succeed(faulty, stuck, steps):
    """The request is enough, after a release if the table was quarantined."""
    world = World(faulty, stuck=frozenset(stuck))
    for step in steps:
        act(world, step)
    world.resume()
    world.ask()
    assert caught_up(world)


@OFTEN
@given(SOME, SOME, steps_of(SNAPSHOT_STEPS))
def test_a_table_that_is_read_keeps_no_other_waiting_and_catches_up(faulty, replaced, steps):
    """Its first snapshot is read, given up, or replaced by another, while windows are merged without the table."""
    world = World(faulty, frozenset(replaced), first=True)
    for step in steps:
        act(world, step)
    assert caught_up(world)
    while world.abandoned:
        world.late()
    assert world.state == world.head
    assert world.held == ()


@OFTEN
@example(
    faulty=set(),
    replaced={0},
    stuck=set(),
    asking={0, 1},
    first=False,
    steps=["write", *["plan", "ack all"] * 6, "read", "read", "write", "plan", "ack all", "merge"],
)
@example(
    faulty=set(),
    replaced={7},
    stuck={6},
    asking=set(),
    first=False,
    steps=[*["write"] * 4, "ask", "write", "read", "write", "read", *["write"] * 2, "plan", "ack all", "merge"],
)
@example(
    faulty=set(),
    replaced={2},
    stuck=set(),
    asking=set(),
    first=False,
    steps=[
        "write",
        "plan",
        "ask",
        "write",
        "plan",
        "ack all",
        "merge",
        "ask",
        "write",
        "plan",
        "ack all",
        "ask",
        "merge",
    ],
)
@example(
    faulty={1},
    replaced=set(),
    stuck=set(),
    asking={0},
    first=False,
    steps=[*RUN, *RUN, "answer", "write", "late"],
)
@given(SOME, SOME, SOME, SOME, st.booleans(), steps_of(MERGE_STEPS))
def test_a_table_that_a_merge_cannot_bring_keeps_no_other_waiting_and_catches_up(
    faulty, replaced, stuck, asking, first, steps
):
    """A merge fails with it, or it stops at a statement: the lake cursor goes on in the same merge, and nothing of the table is lost."""
    world = World(faulty, frozenset(replaced), frozenset(stuck), first=first, leaves_out=True, asking=frozenset(asking))
    for step in steps:
        act(world, step)
        if step == "merge":
            assert world.flight is None
    assert caught_up(world)
    while world.abandoned:
        world.late()
    assert world.state == world.head
    assert world.held == ()


@OFTEN
@given(SOME, steps_of([*GROUPS, RUN, RUN, ("answer",)]))
def test_a_table_that_stops_at_a_statement_needs_no_new_snapshot(asking, steps):
    """Its changes wait where it is, and come with the answer."""
    world = World(set(), asking=frozenset(asking))
    for step in steps:
        act(world, step)
    assert not world.cursor.quarantine
    assert caught_up(world)
    assert not world.cursor.snapshots
