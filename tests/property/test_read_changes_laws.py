"""The changes between two snapshots lead from one to the other, and name no row that is the same in both."""

from __future__ import annotations

import math
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.types import BinaryType, DoubleType, LongType, StringType

from cdc_lib.model.table_mode import IS_DELETED
from cdc_lib.read.changes import CHANGE, net_changes
from tests.harness.lake.hand_made_table import HandMadeTable

COLUMNS = {"part": StringType(), "id": LongType(), "raw": BinaryType(), "weight": DoubleType(), "v": LongType()}
KEYS = [(part, number) for part in ("a", None, "ä") for number in (1, 2)]
WEIGHTS = [None, 0.0, 1.5, math.nan]

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "put", "delete", "mark", "compact"]),
        st.sampled_from(KEYS),
        st.integers(0, 1),
        st.sampled_from(WEIGHTS),
    ),
    max_size=12,
)


class Model:
    """A table by hand and the rows that it has, with where each lies."""

    def __init__(self, folder, mode, *, vectors):
        self.made = HandMadeTable(folder, COLUMNS, ("part", "id"), mode=mode)
        self.vectors = vectors
        self.rows, self.places, self.dead = {}, {}, {}

    def state(self):
        """The rows that a reader sees, comparable: NaN equals NaN."""
        return {key: tuple(map(repr, row.values())) for key, row in self.rows.items() if not row.get(IS_DELETED)}

    def take(self, step, key, v, weight):
        if step == "compact":
            self.rewrite()
        elif step == "put" or (step == "mark" and key in self.rows and self.made.mode == "soft_delete"):
            row = {"part": key[0], "id": key[1], "raw": b"\xff", "weight": weight, "v": v}
            self.put(key, row | ({IS_DELETED: step == "mark"} if self.made.mode == "soft_delete" else {}))
        elif key in self.rows:
            self.remove(key)

    def put(self, key, row):
        if key in self.rows:
            self.remove(key)
        self.places[key] = (self.made.add([row], 2), 0)
        self.rows[key] = row

    def remove(self, key):
        path, number = self.places.pop(key)
        del self.rows[key]
        self.dead.setdefault(path, set()).add(number)
        deleted = self.dead[path] if self.vectors else {number}
        self.made.delete({path: deleted}, vectors=self.vectors)

    def rewrite(self):
        """Write all rows into one file; the earlier files are removed from the table, and stay on disk."""
        order = sorted(self.rows, key=repr)
        self.made.data.clear()
        self.made.positions.clear()
        self.made.vectors.clear()
        self.dead.clear()
        if order:
            path = self.made.add([self.rows[key] for key in order], 2)
            self.places = {key: (path, number) for number, key in enumerate(order)}


@given(st.sampled_from(["mirror", "soft_delete"]), st.booleans(), STEPS, STEPS)
def test_the_changes_lead_from_one_snapshot_to_the_other(mode, vectors, first, then):
    with TemporaryDirectory() as folder:
        model = Model(Path(folder), mode, vectors=vectors)
        for step in first:
            model.take(*step)
        before, old = model.made.reader(), model.state()
        for step in then:
            model.take(*step)
        after, new = model.made.reader(), model.state()
        found = net_changes(before, after).to_pylist()
        reached = dict(old)
        for row in found:
            key, change = (row["part"], row["id"]), row.pop(CHANGE)
            assert (change == "insert") == (key not in reached)
            value = tuple(map(repr, row.values()))
            if change == "delete":
                assert reached.pop(key) == value
            else:
                assert reached.get(key) != value
                reached[key] = value
        assert reached == new
        assert len({(row["part"], row["id"]) for row in found}) == len(found)
        fewer = net_changes(before, after, ["id"]).to_pylist()
        assert [one["id"] for one in fewer] == [one["id"] for one in found]
