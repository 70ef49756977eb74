"""The options of ``cdc verify windows`` that bound the comparison."""

from __future__ import annotations

from cdc_lib.cli.verify.windows import DEFAULT_LAST, choice_of


def test_windows_are_bounded_unless_something_else_bounds_them():
    """A period or ids are taken whole, and --last can still bound them."""
    assert choice_of(None, None, None, (), ()).last == DEFAULT_LAST
    assert choice_of(None, "2026-01-01T00:00:00Z", None, (), ()).last is None
    assert choice_of(3, None, None, ("id",), ()).last == 3
    assert not choice_of(None, None, None, (), ["shop.*"]).wants("other", "t")
