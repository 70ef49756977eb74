"""A lake table as a dict, merged by the product's decisions without Spark; tests may subclass it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from cdc_lib.backfill.decide import BackfillDecision
from cdc_lib.merge.plan import MergeInput, StoredBatch, following, has_arrived, replayed_windows, work_on
from cdc_lib.merge.table_resets import statement_effects
from cdc_lib.model.ddl_effect import TableStatement
from cdc_lib.model.lake_table import Marker
from cdc_lib.model.manifest import DataFile, Manifest, SnapshotChunk
from cdc_lib.model.merge_plan import MergePlan
from cdc_lib.model.position import Point
from cdc_lib.model.table_mode import STATEMENT_ROW
from cdc_lib.model.window import Window
from cdc_lib.store import layout
from tests.harness.generated.histories import STEP
from tests.harness.lake.batches import BIGINT, IDENTITY, START_TIME, at, table

SCHEMA = table("db.t", {"id": BIGINT, "v": BIGINT})


def manifest(*, window=None, chunk=None, rows=1, truncates=()):
    files = (DataFile("part", SCHEMA.name, SCHEMA.id, rows, 1, "0"),) if rows else ()
    return Manifest(
        source="shop", epoch=1, identity=IDENTITY, window=window, chunk=chunk, gtid_first="", gtid_last="",
        first_time=None, last_time=None, transactions=0, events=0, files=files, schemas={SCHEMA.id: SCHEMA},
        statements=tuple(TableStatement("truncate", SCHEMA.name, at(n), time=START_TIME + timedelta(seconds=n)) for n in truncates),
    )  # fmt: skip


class DictTable:
    """A lake table in memory that applies the same decisions as the real one."""

    def __init__(self, history, mode="mirror"):
        self.history, self.mode = history, mode
        self.rows = {}
        self.marker = Marker()
        self.changed = 0
        self.windows = []
        for start, stop, rows in history.windows:
            window = Window("shop", 1, at(start), at(stop))
            truncates = [offset for offset in history.truncates if start <= offset < stop]
            facts = manifest(window=window, rows=len(rows), truncates=truncates)
            self.windows.append((StoredBatch(layout.manifest_key(window), facts), rows))
        self.chunks = []
        for chunk in history.chunks:
            last = chunk.number == len(history.chunks) - 1
            facts = SnapshotChunk("s1", SCHEMA.name, chunk.number, at(chunk.low), None, None, last, at(chunk.high))
            self.chunks.append(
                (StoredBatch(f"chunk-{chunk.number}", manifest(chunk=facts, rows=len(chunk.rows))), chunk)
            )
        self.done = []

    def step(self, step):
        if step.again is not None:
            step = self.history.steps[step.again]
            while step.again is not None:
                step = self.history.steps[step.again]
        batches = [self.chunks[i][0] for i in step.chunks] + [self.windows[i][0] for i in step.windows]
        stop = max((self.history.windows[i][1] for i in step.windows), default=STEP)
        plan = MergePlan("shop", 1, "m", at(4), at(stop), tuple(b.key for b in batches))
        work = work_on(SCHEMA.name, self.mode, batches, self.marker, plan)
        if not work.inputs:
            return
        self.apply(work)
        assert has_arrived(self.marker, work)

    def again(self, begin, end, *, chunks, side, whole=False):
        """Merge the windows between two offsets again, with or without the snapshot."""
        begin, end = Point(1, 1, begin), Point(1, 1, end)
        low = min(filter(None, (begin, self.marker.merged_to)))
        high = max(filter(None, (end, self.marker.merged_to)))
        bounds = [(batch, batch.manifest.window) for batch, _ in self.windows]
        batches = [batch for batch, _ in self.chunks] if chunks else []
        batches += [b for b, w in bounds if Point.at(1, w.stop) > low and Point.at(1, w.start) < high]
        plan = MergePlan("shop", 1, "again", at(4), at(end.offset), tuple(b.key for b in batches))
        work = BackfillDecision(begin, end, (low, high), is_copy=side, from_start=whole)(
            SCHEMA.name, self.mode, batches, self.marker, plan
        )
        if work.inputs:
            self.apply(work)

    def apply(self, work):
        inputs = list(work.inputs)
        if work.replay is not None:
            known = {batch.key: batch for batch, _ in self.windows}
            of = [batch.manifest.window for batch, _ in self.windows]
            stored = [(layout.manifest_key(w), Point.at(w.epoch, w.start), Point.at(w.epoch, w.stop)) for w in of]
            late = [known[k] for k in replayed_windows(stored, work.replay, SCHEMA.name)]
            inputs += [MergeInput(batch, work.replay[0]) for batch in late]
            before = statement_effects(SCHEMA.name, (batch.manifest for batch in late), work.replay[0], Marker())
            floor = max(filter(None, (work.reset_before, before.before)), default=None)
            work = following(replace(work, inputs=tuple(inputs)), replace(before, before=floor))
            inputs = list(work.inputs)
        self.merge(inputs, work)
        self.marker = work.marker
        self.changed += 1

    def merge(self, inputs, work):
        last = {}
        for order, op, key, value in sorted(self.changes(inputs), key=lambda c: (c[0], c[1] != "d")):
            last[key] = (order, op, value)
        for key, (order, op, value) in last.items():
            if key in self.rows and self.rows[key][0] > order:
                assert work.guard, "a newer row exists, but the merge is not guarded"
                continue
            self.rows.pop(key, None)
            if op != "d":
                self.rows[key] = (order, value)
            elif self.mode == "soft_delete":
                self.rows[key] = (order, None)
        if work.reset_before is not None:
            self.rows = {key: row for key, row in self.rows.items() if row[0][:3] >= work.reset_before}
        for reset in work.resets:
            place = (reset.epoch, reset.file, reset.offset, STATEMENT_ROW)
            taken = {key for key, (order, value) in self.rows.items() if order <= place and value is not None}
            self.rows |= dict.fromkeys(taken, (place, None))

    def changes(self, inputs):
        rows = {batch.key: rows for batch, rows in self.windows}
        chunks = {batch.key: chunk for batch, chunk in self.chunks}
        for item in inputs:
            if item.batch.key in chunks:
                chunk = chunks[item.batch.key]
                if item.floor is None or (1, 1, chunk.low) >= item.floor:
                    yield from (((1, 1, chunk.low, -1), "r", key, value) for key, value in chunk.rows.items())
            for row in rows.get(item.batch.key, ()):
                if item.floor is None or (1, row.file, row.offset) >= item.floor:
                    yield (1, row.file, row.offset, row.row), row.op, row.values["id"], row.values["v"]
