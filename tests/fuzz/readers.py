"""Whole streams through the reader, and single events through what Python looks at."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np

from cdc_lib.binlog.control_events import ControlEvents
from cdc_lib.binlog.framing.scan_progress import ScanProgress
from cdc_lib.binlog.reader import WindowReader
from cdc_lib.binlog.rows.captured_tables import CapturedTables
from cdc_lib.binlog.rows.mapped_tables import KnownTables
from cdc_lib.binlog.rows.row_groups import ReadOptions, WindowSinks
from cdc_lib.binlog.rows.xa import XaTransactions
from cdc_lib.errors import CdcError, SourceUnavailable
from cdc_lib.model.table_name import TableName
from cdc_lib.model.value_policy import ValuePolicy
from tests.fuzz.mutation import Samples, begin, below, broken
from tests.fuzz.samples import cut
from tests.fuzz.streams import Portions, check_context
from tests.harness.binlog.recorded import recorded

_HEADER = 19
_POLICIES = (
    ValuePolicy(),
    ValuePolicy(zero_dates="error", legacy_temporals="no_fraction"),
    ValuePolicy(zero_dates="string", invalid_text="replace"),
)


class Nowhere:
    """A sink that looks at the shape of what it is given, and keeps nothing."""

    def write(self, _key, schema, rows, _renames=0) -> None:
        assert rows.num_columns >= 7 + len(schema.columns)
        rows.validate()


_LEFT_OUT = [TableName("fixture", name) for name in ("numbers", "a", "documents", "images")]


def reader(seed: int, first: int, cases: int, done: np.ndarray) -> None:
    """Run cases of whole streams; one in two has its checksums made right again."""
    streams = [
        stream
        for whole in recorded().values()
        for stream in (whole, whole.without_checksums(), whole.without_checksums())
    ]
    wires = Samples.of([stream.wire for stream in streams])
    for case in range(first, first + cases):
        done[0] = case
        chosen = random.Random(seed << 40 | case)
        stream = streams[chosen.randrange(len(streams))]
        wire = bytearray(stream.wire)
        _change(wire, chosen, np.asarray(wires.data))
        try:
            WindowReader(
                stream.window,
                Portions(bytes(wire), chosen, _most(wire, chosen)),
                stream.facts,
                CapturedTables(lambda *_: True, excluded=chosen.choice([(), _LEFT_OUT])),
                WindowSinks(Nowhere(), Nowhere()),
                ReadOptions(group_rows=chosen.choice([1, 3, 1 << 17]), values=chosen.choice(_POLICIES)),
            ).run()
        except SourceUnavailable:
            pass
        except CdcError as error:
            check_context(error)


def _most(wire: bytearray, chosen: random.Random) -> int:
    return chosen.choice([1, 7, 100, 1 << 20]) if len(wire) < 1 << 12 else 1 << 20


def _change(wire: bytearray, chosen: random.Random, others: np.ndarray) -> None:
    """Change a few bytes; lengths of packets stay right in most cases, so that what is inside is reached."""
    for _ in range(chosen.randint(1, 4)):
        at = chosen.randrange(len(wire))
        match chosen.randrange(6):
            case 0:
                wire[at] ^= 1 << chosen.randrange(8)
            case 1:
                wire[at] = chosen.choice([0, 1, 127, 128, 250, 251, 252, 253, 254, 255])
            case 2:
                wire[at : at + 4] = chosen.randbytes(min(4, len(wire) - at))
            case 3:
                other = chosen.randrange(len(others))
                part = others[other : other + min(chosen.randrange(24), len(wire) - at)].tobytes()
                wire[at : at + len(part)] = part
            case 4:
                wire[at] = (wire[at] + chosen.choice([-1, 1])) & 0xFF
            case 5 if chosen.random() < 0.2:
                del wire[at:]
                if not wire:
                    return


def control_events(seed: int, first: int, cases: int, done: np.ndarray) -> None:
    """Run cases of table maps, statements, rotations and format descriptions."""
    samples = Samples.of(cut().control_events)
    rng, buffer = np.zeros(1, np.uint64), np.empty(samples.room, np.uint8)
    stream = recorded()["mysql_numbers"]
    make: Callable[[], ScanProgress] = lambda: ScanProgress(stream.window, "mysql", checksum=False)  # noqa: E731
    progress = make()
    for case in range(first, first + cases):
        done[0] = case
        if case % 256 == 0:
            progress = make()
        tables = KnownTables(progress, stream.facts, CapturedTables(lambda *_: True), _POLICIES[0])
        begin(rng, seed, case)
        sample = int(below(rng, samples.starts.shape[0] - 1))
        size = broken(rng, samples.data, samples.starts, sample, buffer)
        event = buffer[:size].copy()
        if size < _HEADER:
            continue
        event[:_HEADER] = samples.data[samples.starts[sample] : samples.starts[sample] + _HEADER]
        event[9:13] = np.array([size], "<u4").view(np.uint8)
        try:
            ControlEvents(progress, tables, XaTransactions(progress), stream.facts).take(event, 0, size)
        except CdcError as error:
            check_context(error)
            progress = make()
