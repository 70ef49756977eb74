"""The layout that named engines read, and what is said of one that some do not read."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import get_args

import pytest

from cdc_lib.lake.layout import layout_of
from cdc_lib.lake.routing import lake_merges
from cdc_lib.model.layout import Layout
from cdc_lib.model.readers import READERS, ReaderName, layout_for, unread
from tests.unit.config.test_shape import LAKE, config


def laid_out(readers, **rule):
    """The layout of a table whose source file names readers, and a rule for it."""
    layouts = [{"tables": "shop.*", **rule}] if rule else []
    given = config(lake={**LAKE, "readers": readers}, layouts=layouts)
    [orders] = lake_merges(given, ["shop.orders"])
    return layout_of(given, orders)


def test_each_name_has_its_facts_with_their_source():
    assert set(READERS) == set(get_args(ReaderName))
    assert all(one.source and len(one.date) == len("2026-11-28") for one in READERS.values())


@pytest.mark.parametrize("some", [pair for n in (1, 2, 3) for pair in combinations(READERS, n)])
def test_every_reader_reads_the_layout_and_none_reads_a_faster_one(some):
    """Of one to three engines."""
    layout = layout_for(some)
    assert list(unread(layout, some)) == []
    for faster in (replace(layout, format_version=3), replace(layout, write_mode="merge_on_read")):
        assert faster == layout or list(unread(faster, some))


def test_a_rule_wins_and_leaves_the_rest_to_the_readers():
    assert laid_out([]) == Layout()
    assert laid_out(["spark", "athena"]) == Layout(format_version=2)
    assert laid_out(["athena", "duckdb"]) == Layout(format_version=2, write_mode="copy_on_write")
    assert laid_out(["athena", "duckdb"], write_mode="merge_on_read") == Layout(format_version=2)
    assert laid_out(["athena"], format_version=3) == Layout()


def test_what_a_reader_does_not_read_is_said_with_the_source_of_the_fact():
    fault, other = unread(Layout(), ("athena", "spark", "duckdb"))
    assert fault.startswith("athena does not read format_version 3: it reads 2 (https://docs.aws.amazon.com/")
    assert other.startswith("duckdb does not read write_mode merge_on_read: it needs copy_on_write (tests/")
