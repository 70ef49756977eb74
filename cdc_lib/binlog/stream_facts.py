"""What has to be known of a server before the bytes of its binlog make sense."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cdc_lib.binlog.ddl.history.window import WindowHistory
from cdc_lib.binlog.rows.partial_rows import Untold, nothing_untold
from cdc_lib.model.server_identity import Flavor


@dataclass(frozen=True, slots=True)
class StreamFacts:
    """What the stream does not say of itself.

    Args:
        flavor: MySQL or MariaDB.
        checksum: whether events end in a CRC32 when the stream begins.
        charsets: character set name of each collation number.
        untold: columns of a table whose changes an after image may leave out; asked for once per table, and only when an
            image does not have all columns.
        history: knows the columns that the stream does not name, and follows the statements that define tables; None where
            nobody asks.
    """

    flavor: Flavor
    checksum: bool
    charsets: Mapping[int, str]
    untold: Untold = nothing_untold
    history: WindowHistory | None = None
