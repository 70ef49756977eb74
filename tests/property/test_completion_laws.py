"""Changes that lack cells, in any history, cut into any merges: they are completed as the source has them, or refused."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from cdc_lib.apply import parts
from cdc_lib.apply.complete import MovedKeys, completed, refuse_missing
from cdc_lib.apply.rows import LakeShape, changes_of, last_changes, order_of
from cdc_lib.errors import MergeError
from cdc_lib.merge.collapse import MISSING
from cdc_lib.merge.load import load_batches
from cdc_lib.merge.plan import work_on
from cdc_lib.model.lake_table import ORDER, Marker
from cdc_lib.model.manifest import OP
from cdc_lib.model.merge_plan import MergePlan
from cdc_lib.store.objects.local import LocalStore
from tests.harness.generated.examples import examples
from tests.harness.generated.histories import STEP, histories
from tests.harness.lake.batches import BIGINT, BatchWriter, at, table

SCHEMA = table("db.t", {"id": BIGINT, "v": BIGINT, "w": BIGINT})
CELLS = ("id", "v", "w")
FIELDS = tuple(pa.field(name, pa.int32() if name in ORDER[:2] else pa.int64()) for name in (*CELLS, *ORDER))
KEY = ["id"]


class Lake:
    """Rows of a lake table, and a merge of their changes by the rules of the product."""

    def __init__(self, folder, history, mode, part_bytes):
        self.store, self.mode, self.part_bytes = LocalStore(Path(folder)), mode, part_bytes
        writer, self.marker = BatchWriter(self.store), Marker()
        self.windows = [
            writer.window(start, stop, {SCHEMA: rows} if rows else {}) for start, stop, rows in history.windows
        ]
        last = len(history.chunks) - 1
        self.chunks = [
            writer.chunk(
                SCHEMA,
                chunk.low,
                [dict(zip(CELLS, (key, *cells), strict=True)) for key, cells in chunk.rows.items()],
                number=chunk.number,
                last=chunk.number == last,
                high=chunk.high,
            )
            for chunk in history.chunks
        ]
        self.history = history
        marks = [pa.field("_is_deleted", pa.bool_())] if mode == "soft_delete" else []
        self.fields = (*FIELDS, *marks)
        self.rows = pa.schema(self.fields).empty_table()

    def merge(self, step):
        while step.again is not None:
            step = self.history.steps[step.again]
        keys = [*(self.chunks[number] for number in step.chunks), *(self.windows[number] for number in step.windows)]
        stop = max((self.history.windows[number][1] for number in step.windows), default=STEP)
        plan = MergePlan("shop", 1, "m", at(4), at(stop), tuple(keys))
        work = work_on(SCHEMA.name, self.mode, load_batches(self.store, keys), self.marker, plan)
        if not work.inputs:
            return
        shape = LakeShape(
            SCHEMA.name, self.fields, {}, lambda _: True, reads=work.marker.reads, ahead_until=work.ahead_until
        )
        found = changes_of(self.store, work.inputs, shape)
        with parts.parts_of(found, KEY, None, MovedKeys(KEY)) as read:
            event(f"parts: {min(len(read), 3)}")
            to_come = bool(self.chunks) and not work.marker.snapshots
            made = [self._applied(part(), to_come=to_come) for part in read]
        replaced = [keys for keys, _ in made]
        stays = pc.invert(pc.is_in(self.rows.column("id"), pa.concat_arrays(replaced)))
        self.rows = pa.concat_tables([self.rows.filter(stays), *(rows for _, rows in made)])
        self.marker = work.marker

    def _applied(self, changes, *, to_come):
        """Return the keys that get other rows, and these rows."""
        mine = self.rows.filter(pc.is_in(self.rows.column("id"), changes.column("id").combine_chunks()))
        rows = last_changes(completed(changes, mine, KEY, self.mode, to_come=to_come), KEY, begins=False)
        newest = {row["id"]: tuple(row[name] for name in ORDER) for row in mine.to_pylist()}
        order = zip(*(part.tolist() for part in order_of(rows)), strict=True)
        due = [newest.get(key, ()) <= at for key, at in zip(rows.column("id").to_pylist(), order, strict=True)]
        rows = rows.filter(pa.array(due, pa.bool_()))
        refuse_missing(rows, KEY, SCHEMA.name)
        deleted = pc.equal(rows.column(OP), "d")
        new = rows.drop_columns([MISSING, OP])
        if self.mode == "soft_delete":
            new = new.set_column(new.num_columns - 1, "_is_deleted", deleted)
        else:
            new = new.filter(pc.invert(deleted))
        return rows.column("id").combine_chunks(), new.cast(self.rows.schema)

    @property
    def shown(self):
        live = self.rows if self.mode == "mirror" else self.rows.filter(pc.invert(self.rows.column("_is_deleted")))
        return {row["id"]: (row["v"], row["w"]) for row in live.select(CELLS).to_pylist()}


@pytest.mark.parametrize("mode", ["mirror", "soft_delete"])
@settings(max_examples=examples(60), deadline=None)
@given(history=histories(partial=True), part_bytes=st.sampled_from([parts.PART_BYTES, 1]))
def test_the_lake_has_the_rows_of_the_source_or_refuses(mode, history, part_bytes):
    """It refuses only if a row got its key while the snapshot was read. Keys between which rows move are applied together."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "PART_BYTES", part_bytes)
        patch.setattr(parts, "_STRIDE", 1)
        lake = Lake(folder, history, mode, part_bytes)
        try:
            for step in history.steps:
                lake.merge(step)
        except MergeError as error:
            event("refused")
            if not history.doubtful or "lack columns" not in str(error):
                raise
            return
        assert lake.shown == history.final
