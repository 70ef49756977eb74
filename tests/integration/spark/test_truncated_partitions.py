"""Numbers that a partition by ``truncate`` cannot hold: Iceberg would not find their rows again, so they are refused."""

from __future__ import annotations

from decimal import Decimal

import pytest

from cdc_lib.config.layouts import LayoutRule
from cdc_lib.errors import MergeError
from cdc_lib.model.schema import SourceType
from cdc_lib.store.cuts import last_cut
from spark_jobs.maintain import lake_tables, maintain
from tests.harness.lake.batches import BIGINT, INT, Row, table

DECIMAL = SourceType("decimal", precision=5, scale=2)
MODES = ["merge_on_read", "copy_on_write"]


def merge(lake, schema, number, rows):
    """Merge one window with rows of (operation, values)."""
    start = 100_000 * number + 4
    changes = [Row(op, start + 1 + at, values) for at, (op, values) in enumerate(rows)]
    lake.merge(lake.batches.plan(start + 100_000, lake.batches.window(start, start + 100_000, {schema: changes})))


def partitioned(lake, kind, width, mode="merge_on_read"):
    rule = LayoutRule(tables="*.t", partition_by=(f"truncate({width}, k)",), write_mode=mode)
    lake.config = lake.config.model_copy(update={"layouts": (rule,)})
    return table(f"{lake.database}.t", {"k": kind, "v": INT}, key=("k",))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("kind", "lowest"), [(INT, -(2**31) + 8), (BIGINT, -(2**63) + 8)])
def test_the_smallest_keys_that_fit_are_replaced_and_smaller_ones_are_refused(lake, kind, lowest, mode):
    """A smaller one would be in the partition of the largest numbers, so a merge of many keys would miss all others: rows twice."""
    schema = partitioned(lake, kind, 10, mode)
    keys = [lowest, lowest + 1, *range(-20, 300)]
    for number in range(2):
        merge(lake, schema, number, [("cu"[number], {"k": key, "v": number}) for key in keys])
    assert lake.rows(schema.name, "k", "v") == sorted([(key, 1) for key in keys], key=repr)
    with pytest.raises(MergeError, match=rf"column k: {lowest - 1} is smaller than {lowest}, the smallest value"):
        merge(lake, schema, 2, [("u", {"k": key, "v": 2}) for key in (*keys, lowest - 1)])
    assert lake.rows(schema.name, "k", "v") == sorted([(key, 1) for key in keys], key=repr)


@pytest.mark.parametrize("mode", MODES)
def test_a_delete_of_a_key_that_does_not_fit_hides_no_other_key(lake, mode):
    """Such a row was never in the lake."""
    schema = partitioned(lake, INT, 10, mode)
    keys = range(300)
    merge(lake, schema, 0, [("c", {"k": key, "v": 0}) for key in keys])
    merge(lake, schema, 1, [("d", {"k": -(2**31), "v": 0}), *(("u", {"k": key, "v": 1}) for key in keys)])
    assert lake.rows(schema.name, "k", "v") == sorted([(key, 1) for key in keys], key=repr)


def test_a_decimal_that_rounds_to_one_digit_more_is_named_at_the_first_load(lake):
    schema = partitioned(lake, DECIMAL, 10_000)
    with pytest.raises(MergeError, match=r"column k: -999\.99 is smaller than -900\.00, the smallest value") as error:
        merge(lake, schema, 0, [("c", {"k": Decimal("-999.99"), "v": 1}), ("c", {"k": Decimal("-900.00"), "v": 1})])
    assert "layouts in the source file" in error.value.hint


def test_with_another_partition_the_merge_goes_on(lake):
    """As the hint says: the file is changed, maintenance writes the table in the new layout, and the merge runs again."""
    schema = partitioned(lake, INT, 10)
    merge(lake, schema, 0, [("c", {"k": 1, "v": 1})])
    changed = [("u", {"k": 1, "v": 2}), ("c", {"k": -(2**31), "v": 2})]
    with pytest.raises(MergeError, match="the smallest value"):
        merge(lake, schema, 1, changed)
    rule = LayoutRule(tables="*.t", partition_by=("bucket(4, k)",))
    lake.config = lake.config.model_copy(update={"layouts": (rule,)})
    names = lake_tables(lake.config, last_cut(lake.store, lake.config.source), [schema.name])
    maintain(lake.spark, lake.config, lake.store, names, lake.said.append)
    merge(lake, schema, 1, changed)
    assert lake.rows(schema.name, "k", "v") == [(-(2**31), 2), (1, 2)]
