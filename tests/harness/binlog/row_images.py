"""Random changes of a table r with any row image, and a comparison of lake and source."""

from __future__ import annotations

import random

from tests.harness.binlog.capture import Capture
from tests.harness.lake.running import Lake

KEYS = {
    "one column": "id INT, g INT, PRIMARY KEY (id)",
    "several columns": "id INT, g INT, PRIMARY KEY (g, id)",
    "unique": "id INT NOT NULL, g INT NOT NULL, UNIQUE (g, id)",
}
COLUMNS = "a INT, b VARCHAR(20), t TEXT, c BLOB"
MAKERS = {
    "a": lambda draw: str(draw.randint(0, 9)),
    "b": lambda draw: f"'{draw.choice('xyz')}'",
    "t": lambda draw: f"'{draw.choice(['short', 'l' * 300])}'",
    "c": lambda draw: draw.choice(["x'00FF'", "x''"]),
}
IMAGES = ("MINIMAL", "NOBLOB", "FULL")


def one_round(capture: Capture, lake: Lake, meanwhile=lambda: None):
    """Plan, drain and merge; ``meanwhile`` runs after the windows are planned."""
    pipeline = capture.pipeline
    units = pipeline.plan(by="test")
    meanwhile()
    for unit in units:
        pipeline.drain(unit)
    pipeline.ack_drain(by="test")
    plan = pipeline.plan_merge(by="test")
    if plan is not None:
        lake.merge(plan)
        pipeline.ack_lake(by="test")
    return plan


def statement(draw: random.Random, *, named: bool = False) -> str:
    """A random change of one or several rows of table r; ``named``: also a REPLACE of some columns, whose row image may lack defaults."""
    key, other = draw.randrange(8), draw.randrange(8)
    value = {name: "NULL" if draw.random() < 0.25 else make(draw) for name, make in MAKERS.items()}
    kind = draw.random()
    if kind < 0.25:
        names = [draw.choice(list(MAKERS))] if named and kind < 0.1 else list(MAKERS)
        values = ", ".join(value[name] for name in names)
        return f"REPLACE INTO r (id, g, {', '.join(names)}) VALUES ({key}, {key % 2}, {values})"
    if kind < 0.35:
        return f"DELETE FROM r WHERE id = {key}"
    if kind < 0.55:
        return f"UPDATE IGNORE r SET id = {other}, g = {other % 2} WHERE id = {key}"
    name, second = draw.sample(list(MAKERS), 2)
    if kind < 0.65:
        return f"UPDATE IGNORE r SET id = id + 1, g = 1 - g, {name} = {value[name]} WHERE id >= {key} ORDER BY id DESC"
    if kind < 0.8:
        return f"UPDATE r SET {name} = {value[name]}"
    return f"UPDATE r SET {name} = {value[name]}, {second} = {value[second]} WHERE id = {key}"


def in_session(capture, *statements):
    with capture.server.connect(database=capture.database) as session, session.cursor() as cursor:
        for sql in statements:
            cursor.execute(sql)


def assert_equal(capture, lake):
    rows = [tuple(map(plain, row)) for row in lake.rows(f"{capture.database}.r", "id", "g", "a", "b", "t", "c")]
    expected = [tuple(row) for row in capture.execute("SELECT id, g, a, b, t, c FROM r")]
    assert sorted(rows, key=repr) == sorted(expected, key=repr)


def plain(value):
    return bytes(value) if isinstance(value, bytearray) else value
