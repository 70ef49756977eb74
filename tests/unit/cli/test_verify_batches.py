"""The options of ``cdc verify`` that bound the comparison of batches."""

from __future__ import annotations

import pytest

from cdc_lib.cli.batch_check import DEFAULT_LAST, WindowBounds, refuse
from cdc_lib.errors import ConfigError


def test_an_option_without_effect_is_refused():
    """A person who types it expects something of it."""
    with pytest.raises(ConfigError, match="--statement-delay has no effect with --batches"):
        refuse("with --batches", repair=False, statement_delay="1s")
    refuse("with --batches", repair=False, statement_delay=None)


def test_windows_are_bounded_unless_something_else_bounds_them():
    """A period or ids are taken whole, and --last can still bound them."""
    assert WindowBounds(None, None, None, ()).choice([]).last == DEFAULT_LAST
    assert WindowBounds(None, "2026-01-01T00:00:00Z", None, ()).choice([]).last is None
    assert WindowBounds(3, None, None, ("id",)).choice([]).last == 3
    assert not WindowBounds(None, None, None, ()).choice(["shop.*"]).wants("other", "t")
