"""The server facts that decoding a binlog stream needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cdc_lib.binlog.ddl.history.window import WindowHistory
from cdc_lib.model.server_identity import Flavor

OmittableColumns = Callable[[str, str], frozenset[str]]
"""Names of a table's columns whose changes the server may leave out of an after image."""


def nothing_omittable(_database: str, _table: str) -> frozenset[str]:
    """Return no column: the server logs every change."""
    return frozenset()


@dataclass(frozen=True, slots=True)
class StreamFacts:
    """Server facts that are not in the stream.

    Args:
        flavor: MySQL or MariaDB.
        checksum: whether events end in a CRC32 when the stream begins.
        charsets: character set name of each collation number.
        omittable: columns of a table whose changes an after image may omit; called once per table, and only for images
            without all columns.
        history: schema history for columns that the stream does not name; follows DDL; None if not needed.
    """

    flavor: Flavor
    checksum: bool
    charsets: Mapping[int, str]
    omittable: OmittableColumns = nothing_omittable
    history: WindowHistory | None = None
