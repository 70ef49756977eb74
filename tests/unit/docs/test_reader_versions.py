"""The page of limits says of the locked DuckDB what was measured with it."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_limits_name_the_locked_duckdb():
    """When the lock changes, the new version has to be measured, or be stated as not measured."""
    locked = re.search(r"^duckdb==(\S+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    assert locked is not None
    assert f"| {locked[1]} (`requirements.lock`) |" in (ROOT / "docs/operations/limits.md").read_text()
