"""Words of changes: their operations, and what completed ones still lack."""

from __future__ import annotations

from collections.abc import Callable

DELETE = "d"
"""The ``_op`` that deletes a row; every other one leaves the row as the change shows it."""

INSERT = "c"
"""The ``_op`` of an inserted row."""

READ = "r"
"""The ``_op`` of a row that was read by SELECT: by a snapshot, a repair, or because the binlog had it incomplete."""

MISSING = "cdc_missing"
"""A column of completed last changes: names of the columns that a row still lacks; empty for a complete row."""

Quote = Callable[[str], str]
