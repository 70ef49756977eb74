"""The options of ``cdc verify windows`` that bound the comparison."""

from __future__ import annotations

from cdc_lib.cli.verify.windows import DEFAULT_LAST, WindowBounds


def test_windows_are_bounded_unless_something_else_bounds_them():
    """A period or ids are taken whole, and --last can still bound them."""
    assert WindowBounds(None, None, None, ()).choice([]).last == DEFAULT_LAST
    assert WindowBounds(None, "2026-01-01T00:00:00Z", None, ()).choice([]).last is None
    assert WindowBounds(3, None, None, ("id",)).choice([]).last == 3
    assert not WindowBounds(None, None, None, ()).choice(["shop.*"]).wants("other", "t")
