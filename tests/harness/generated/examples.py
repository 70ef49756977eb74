"""How many examples a law is checked with."""

from __future__ import annotations

import os

PERCENT = int(os.environ.get("CDC_EXAMPLES", "100"))
"""Share of the full number, which `./dev test-unit` lowers."""
FEWEST = 5


def examples(full: int) -> int:
    """Return the number of examples of a law whose full number is ``full``."""
    return max(FEWEST, full * PERCENT // 100)
