"""Decodes the row events that are out of the ordinary: images without all columns, and differences of JSON documents."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cdc_lib.binlog.framing.scan_progress import ErrorContext
from cdc_lib.binlog.rows import locate, partial_images
from cdc_lib.binlog.rows.errors import rows_fault, value_fault
from cdc_lib.binlog.rows.gtid_column import GtidPrefixes
from cdc_lib.binlog.rows.partial_columns import PartialColumns
from cdc_lib.binlog.rows.table_map import TableLayout
from cdc_lib.binlog.types import json_diff
from cdc_lib.binlog.types.codec import Bytes, Cells, ValueFault
from cdc_lib.binlog.types.jsonb import JsonCodec


class PartialRows:
    """The rows of one layout whose images may lack columns.

    Args:
        columns: collects them.
        omittable: columns whose changes may be left out of an after image.
    """

    def __init__(self, columns: PartialColumns, omittable: frozenset[str]) -> None:
        """Make the scratch space."""
        self.columns = columns
        self._traits = _traits(columns.layout, omittable)
        self._sizes = np.zeros(self._traits.shape[0], np.int64)
        self._make_room(locate.WALK_ROWS)

    def _make_room(self, capacity: int) -> None:
        json_columns = int(np.count_nonzero(self._traits & partial_images.JSON))
        self._cells = locate.scratch_cells(self._traits.shape[0], capacity)
        self._marks = locate.scratch_marks(capacity)
        self._patches = np.empty((json_columns * capacity, partial_images.PATCH_SIZE), np.int64)

    def take(
        self,
        data: Bytes,
        records: Cells,
        chosen: Cells,
        gtids: GtidPrefixes,
        limits: tuple[int, int],
        error_context: Callable[[int], ErrorContext],
        full: Callable[[], None],
    ) -> None:
        """Decode row events.

        Args:
            data: bytes off the wire.
            records: of frame.scan.
            chosen: rows of ``records``, in the order of the stream.
            gtids: prefixes of the GTID sources.
            limits: rows and bytes at which a row group ends.
            error_context: context of the record with this number.
            full: called at the end of each row group.

        Raises:
            DecodeError: an image does not follow the format, or a value has no exact place in the lake.
        """
        table, layout = self.columns, self.columns.layout
        first = 0
        while first < chosen.shape[0]:
            status, found, next_, taken, patched = partial_images.locate_images(
                data, records, chosen, first, layout.prefix, layout.width, self._traits, layout.keys,
                limits[0] - table.rows, limits[1] - table.bytes, *self._cells, *self._marks, self._patches, self._sizes,
            )  # fmt: skip
            if status == locate.SPACE_FULL and found == 0:
                self._make_room(2 * self._marks[0].shape[0])
                continue
            if status not in (locate.ALL_READ, locate.GROUP_FULL, locate.SPACE_FULL):
                raise rows_fault(status, layout.schema.name, error_context(int(chosen[next_])))
            at = table.rows
            try:
                texts = self._patch(data, self._patches[:patched])
                table.append(data, self._cells, self._marks, found, records, gtids)
            except ValueFault as fault:
                raise value_fault(fault, layout.schema.name, error_context(int(self._marks[1][fault.row]))) from None
            for patch, text in zip(self._patches[:patched], texts, strict=True):
                table.put(at + int(patch[partial_images.ROW]), int(patch[partial_images.COLUMN]), text)
            table.bytes += int(taken)
            first = int(next_)
            if status == locate.GROUP_FULL:
                full()

    def _patch(self, data: Bytes, patches: Cells) -> list[str]:
        """Return the text of each document after its differences."""
        if not patches.shape[0]:
            return []
        parsed: list[list[json_diff.Diff]] = []
        for patch in patches:
            start = int(patch[partial_images.DIFFS])
            with self._naming_column(patch):
                parsed.append(json_diff.parse(data[start : start + int(patch[partial_images.DIFFS_SIZE])].tobytes()))
        before = [
            (i, int(p[partial_images.DOCUMENT]), int(p[partial_images.DOCUMENT_SIZE])) for i, p in enumerate(patches)
        ]
        values = [
            (i, int(patches[i, partial_images.DIFFS]) + diff.start, diff.size)
            for i, diffs in enumerate(parsed)
            for diff in diffs
            if diff.operation != json_diff.REMOVE
        ]
        printed = self._printed(data, patches, [*before, *values])
        texts = iter(printed[len(before) :])
        found = []
        for patch, document, diffs in zip(patches, printed, parsed, strict=False):
            pairs = [(diff, None if diff.operation == json_diff.REMOVE else next(texts)) for diff in diffs]
            with self._naming_column(patch):
                found.append(json_diff.apply(document, pairs))
        return found

    def _printed(self, data: Bytes, patches: Cells, cells: list[tuple[int, int, int]]) -> list[str]:
        """Return the texts of binary documents, each given by the number of its patch, its start and its size."""
        codec = JsonCodec()
        spans: np.ndarray = np.array(cells, np.int32).T.copy()
        try:
            codec.append(data, spans[1], spans[2], len(cells))
        except ValueFault as fault:
            with self._naming_column(patches[spans[0, fault.row]]):
                raise json_diff.BadDiff(fault.what) from None
        array: pa.Array = codec.finish()
        return [str(text) for text in array.to_pylist()]

    @contextmanager
    def _naming_column(self, patch: Cells) -> Iterator[None]:
        """Name the patch's column when the block fails."""
        try:
            yield
        except (json_diff.BadDiff, RecursionError) as error:
            name = self.columns.layout.schema.columns[int(patch[partial_images.COLUMN])].name
            masked = (
                name in self.columns.projection.masked
            )  # then nothing of the document is shown, nor by what came first
            what = f"column {name}: differences of a JSON document{'' if masked else f': {error}'}"
            raise ValueFault(int(patch[partial_images.ROW]), what) from (None if masked else error)


def _traits(layout: TableLayout, omittable: frozenset[str]) -> npt.NDArray[np.uint8]:
    """Return what each column may be missing for."""
    traits = np.zeros(layout.prefix.shape[0], np.uint8)
    for i, column in enumerate(layout.schema.columns):
        if column.name in omittable:
            traits[i] |= partial_images.MAY_BE_OMITTED
        elif layout.null_by_default[i]:
            traits[i] |= partial_images.NULL_BY_DEFAULT
        if column.type.kind == "json":
            traits[i] |= partial_images.JSON
    traits[layout.keys] |= partial_images.IN_KEY
    return traits
