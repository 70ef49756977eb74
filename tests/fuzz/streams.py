"""The stream of a case through the reader, and what came of it."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass, field, replace

import pyarrow as pa

from cdc_lib.binlog.framing.scan_progress import WindowSummary
from cdc_lib.binlog.reader import WindowReader
from cdc_lib.binlog.rows.captured_tables import CapturedTables
from cdc_lib.binlog.rows.inflate_buffer import InflateBuffer
from cdc_lib.binlog.rows.row_groups import ReadOptions, WindowSinks
from cdc_lib.errors import CdcError, SourceUnavailable
from tests.harness.binlog.recorded import Recorded

ORDER = ["_epoch", "_binlog", "_offset", "_row"]


class Portions:
    """A stream that gives its bytes in portions of random sizes and then ends."""

    def __init__(self, data: bytes, chosen: random.Random, most: int) -> None:
        self._data = data
        self._at = 0
        self._most = most
        self._chosen = chosen

    def read_into(self, view: memoryview) -> int:
        size = min(self._chosen.randint(1, self._most), len(view))
        part = self._data[self._at : self._at + size]
        view[: len(part)] = part
        self._at += len(part)
        return len(part)


class Kept:
    """A sink that keeps what it is given, by file."""

    def __init__(self) -> None:
        self.groups: defaultdict[str, list[pa.Table]] = defaultdict(list)

    def write(self, key, schema, rows, renames=0) -> None:
        assert renames >= 0
        assert rows.num_columns >= 7 + len(schema.columns)
        for column in rows.columns:
            column.validate(full=True)
        self.groups[key].append(rows)

    def rows(self) -> dict[str, pa.Table]:
        """Return all rows of each file."""
        return {key: pa.concat_tables(groups).unify_dictionaries() for key, groups in self.groups.items()}


@dataclass
class Outcome:
    """What the reader made of a stream: rows of both sinks and a summary, or an error."""

    plain: Kept = field(default_factory=Kept)
    prepared: Kept = field(default_factory=Kept)
    summary: WindowSummary | None = None
    error: CdcError | None = None
    held: int = 0

    def values(self) -> object:
        """Return the rows without their places, or that there was an error: which one comes first is left open."""
        if self.error:
            return "error"
        sinks = [sink.rows() for sink in (self.plain, self.prepared)]
        return [{key: _cells(rows.drop_columns(ORDER)) for key, rows in sorted(found.items())} for found in sinks]

    def rows(self) -> object:
        """Return the rows with their places, or that there was an error."""
        if self.error:
            return "error"
        sinks = [sink.rows() for sink in (self.plain, self.prepared)]
        return [{key: _cells(rows) for key, rows in sorted(found.items())} for found in sinks]


def _cells(rows: pa.Table) -> list[list[object]]:
    """Return the columns; dates and doubles as numbers, for Python has no room for all of the ones and NaN is no NaN."""
    return [
        column.combine_chunks().view(_NUMBERS[column.type]).to_pylist()
        if column.type in _NUMBERS
        else column.to_pylist()
        for column in rows.columns
    ]


_NUMBERS = {
    pa.float32(): pa.int32(),
    pa.float64(): pa.int64(),
    pa.date32(): pa.int32(),
    pa.timestamp("us"): pa.int64(),
    pa.timestamp("us", tz="UTC"): pa.int64(),
}


def outcome(
    stream: Recorded,
    chosen: random.Random,
    *,
    options: ReadOptions | None = None,
    omittable: frozenset[str] = frozenset(),
    inflate_size: int = 8 << 20,
    most: int = 1 << 20,
) -> Outcome:
    """Read a stream; an error must be one of the tree and name its position.

    Args:
        stream: to read.
        chosen: for the portions.
        options: of the reader.
        omittable: columns whose changes the server may leave out.
        inflate_size: bytes of the inflate buffer.
        most: bytes of a portion.
    """
    found = Outcome()
    reader = WindowReader(
        stream.window,
        Portions(stream.wire, chosen, most),
        replace(stream.facts, omittable=lambda *_: omittable),
        CapturedTables(lambda *_: True),
        WindowSinks(found.plain, found.prepared),
        options,
    )
    reader._inflated = InflateBuffer(inflate_size)
    try:
        found.summary = reader.run()
    except SourceUnavailable as error:
        found.error = error
    except CdcError as error:
        check_context(error)
        found.error = error
    found.held = reader._inflated.data.shape[0]
    return found


def check_context(error: CdcError) -> None:
    """Look that an error says where it happened."""
    if not {"file", "offset"} <= error.context.keys():
        raise AssertionError(f"{type(error).__name__} without a place: {error}") from error
