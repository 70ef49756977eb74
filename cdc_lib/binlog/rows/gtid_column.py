"""The column ``_gtid``: one text for each transaction, and for each row which of them is its own.

A bulk insert has thousands of rows in one transaction, so that the text is made once.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numba import njit

from cdc_lib.binlog.bytes.integers import copy
from cdc_lib.binlog.framing.packets import SOURCE, TXN
from cdc_lib.binlog.types.builders import FixedBuilder, TextBuilder
from cdc_lib.binlog.types.codec import Cells
from cdc_lib.binlog.types.jsonb import write_unsigned

_LONGEST_NUMBER = 20


@njit(cache=True, nogil=True)
def _gtids(records, event, n, prefixes, starts, indices, valid, at, offsets, data, entries, last):
    """Write ``<prefix of the source><number>`` once for each transaction, and its index for each row; NULL without a GTID.

    ``last`` holds source and number of the newest entry. Returns how many entries there are.
    """
    o = np.int64(offsets[entries])
    for i in range(n):
        r = records[event[i]]
        source = r[SOURCE]
        valid[at + i] = source >= 0
        indices[at + i] = 0
        if source < 0:
            continue
        if entries == 0 or source != last[0] or r[TXN] != last[1]:
            size = starts[source + 1] - starts[source]
            copy(prefixes, starts[source], data, o, size)
            o = write_unsigned(np.uint64(r[TXN]), data, o + size)
            entries += 1
            offsets[entries] = o
            last[0] = source
            last[1] = r[TXN]
        indices[at + i] = entries - 1
    return entries


class GtidPrefixes:
    """What is before the number in the GTIDs of each source, laid out for the kernel."""

    def __init__(self) -> None:
        """Start with no source known."""
        self.texts: list[bytes] = []
        self.data = np.zeros(1, np.uint8)
        self.starts = np.zeros(1, np.int64)
        self.longest = 0
        """Bytes of the longest GTID that these can make."""

    def update(self, texts: list[bytes]) -> None:
        """Take the prefixes of all sources seen so far."""
        self.texts = texts
        self.data = np.frombuffer(b"".join(texts) or b"\0", np.uint8)
        self.starts = np.cumsum([0, *map(len, texts)]).astype(np.int64)
        self.longest = max(map(len, texts), default=0) + _LONGEST_NUMBER


class GtidColumn:
    """The GTID of each row, as an index into those of the transactions that the rows came in."""

    def __init__(self) -> None:
        """Start empty."""
        self._indices = FixedBuilder(pa.int32(), np.int32)
        self._texts = TextBuilder(pa.string())
        self._last = np.zeros(2, np.int64)

    def append(self, records: Cells, event: Cells, rows: int, gtids: GtidPrefixes) -> None:
        """Append the GTIDs of located rows; arguments as of :meth:`cdc_lib.binlog.rows.columns.TableColumns.append`."""
        indices, texts = self._indices, self._texts
        indices.reserve(rows)
        texts.reserve(rows, rows * gtids.longest)
        entries = _gtids(
            records, event, rows, gtids.data, gtids.starts, indices.values, indices.validity.bytes, indices.rows,
            texts.offsets, texts.data, texts.rows, self._last,
        )  # fmt: skip
        texts.validity.bytes[texts.rows : entries] = 1
        indices.rows += rows
        texts.rows = int(entries)

    def finish(self) -> pa.DictionaryArray:
        """Return the column and start over."""
        return pa.DictionaryArray.from_arrays(self._indices.finish(), self._texts.finish())
