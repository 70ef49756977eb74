"""``layouts:`` in a source file: transforms, sort fields, properties, and what is refused with the key's name."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdc_lib.config import load_source
from cdc_lib.errors import ConfigError
from cdc_lib.model.layout import Layout, Partition, SortField
from tests.unit.config.test_schema_changes import PLAIN


def layouts(folder: Path, rules: str):
    file = folder / "shop.yaml"
    file.write_text(f"{PLAIN}layouts: {rules}\n")
    return [rule.over(Layout()) for rule in load_source(file).layouts]


def test_a_rule_with_tables_only_is_the_default_layout(tmp_path: Path):
    """Format version 3, merge-on-read, in key order."""
    assert layouts(tmp_path, "[{tables: 'shop.*'}]") == [Layout()]


def test_every_key_of_a_rule_is_parsed(tmp_path: Path):
    """Words compare without case, backticks quote a column, and numbers of properties become text."""
    rule = (
        "[{tables: shop.orders, partition_by: ['days(created)', 'BUCKET(16, `a b`)', country, 'truncate( 4 ,sku)'], "
        "sort_by: [id, 'created desc', 'sku ASC NULLS LAST'], properties: {write.target-file-size-bytes: 1000}, "
        "format_version: 2, write_mode: copy_on_write}]"
    )
    partitions = (
        Partition("day", "created"),
        Partition("bucket", "a b", 16),
        Partition("identity", "country"),
        Partition("truncate", "sku", 4),
    )
    order = (SortField("id"), SortField("created", True, False), SortField("sku", False, False))
    [layout] = layouts(tmp_path, rule)
    assert layout == Layout(partitions, order, (("write.target-file-size-bytes", "1000"),), 2, "copy_on_write")
    assert Layout.from_json(layout.to_json()) == layout
    assert [str(one) for one in partitions] == [
        "days(`created`)",
        "bucket(16, `a b`)",
        "`country`",
        "truncate(4, `sku`)",
    ]
    assert [str(one) for one in order][1:] == ["`created` DESC NULLS LAST", "`sku` ASC NULLS LAST"]


@pytest.mark.parametrize(
    ("keys", "key", "why"),
    [
        ("partition_by: ['week(created)']", "partition_by", "'week(created)' is not valid: a transform is column"),
        ("partition_by: ['bucket(id)']", "partition_by", "bucket takes a number from 1"),
        ("partition_by: ['bucket(0, id)']", "partition_by", "bucket takes a number from 1"),
        ("partition_by: ['day(4, created)']", "partition_by", "day takes a column and no number"),
        ("partition_by: [id, ID]", "partition_by", "has id twice"),
        ("sort_by: ['id UP']", "sort_by", "a sort field is column"),
        ("sort_by: [id, 'id DESC']", "sort_by", "has id twice"),
        ("properties: {format-version: 2}", "properties", "format-version: set format_version instead"),
        ("properties: {write.merge.mode: copy-on-write}", "properties", "write.merge.mode: set write_mode instead"),
        ("properties: {gc.enabled: false}", "properties", "gc.enabled: merges depend on it"),
        ("properties: {write.delete.isolation-level: snapshot}", "properties", "isolation-level: merges depend on it"),
        ("properties: {cdc.mode: append}", "properties", "cdc.mode: merges depend on it"),
        ("format_version: 1", "format_version", "2 or 3"),
        ("write_mode: merge-on-read", "write_mode", "merge_on_read or copy_on_write"),
    ],
)
def test_what_is_not_valid_is_refused_with_its_key(tmp_path: Path, keys: str, key: str, why: str):
    with pytest.raises(ConfigError) as refused:
        layouts(tmp_path, f"[{{tables: shop.orders, {keys}}}]")
    assert f"layouts.0.{key}" in str(refused.value) or f"layouts[0].{key}" in str(refused.value)
    assert why in str(refused.value)
