"""``schema_changes:`` in a source file: defaults, exceptions, and behaviours that cannot hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdc_lib.config import load_source
from cdc_lib.errors import ConfigError
from cdc_lib.model.schema_policy import DEFAULT_POLICY

PLAIN = """
server: {host: db.example, user: cdc, password_env: P}
tables: ["shop.*"]
store: {url: "file:///tmp/store"}
lake: {type: jdbc, uri: "jdbc:sqlite:/tmp/cat.db", warehouse: "file:///tmp/lake"}
"""


def policy(folder: Path, changes: str, table: str = "orders"):
    file = folder / "shop.yaml"
    file.write_text(f"{PLAIN}schema_changes: {changes}\n")
    return load_source(file).schema_changes.policy("shop", table)


def test_without_a_word_a_table_has_the_default_policy(tmp_path: Path):
    assert policy(tmp_path, "{}") == DEFAULT_POLICY


def test_the_first_exception_that_covers_a_table_wins_and_unset_keys_are_those_of_all_tables(tmp_path: Path):
    """``null`` is a value of drop_table: the table's mode decides again."""
    changes = (
        "{truncate: keep, drop_table: stop, tables: ["
        "{tables: shop.orders, drop_column: follow, drop_table: null}, {tables: 'shop.*', truncate: stop, rename: stop}]}"
    )
    orders, others = policy(tmp_path, changes), policy(tmp_path, changes, "views")
    assert (orders.truncate, orders.drop_column, orders.drop_table, orders.rename) == ("keep", "follow", None, "follow")
    assert (others.truncate, others.drop_column, others.drop_table, others.rename) == ("stop", "keep", "stop", "stop")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ("{narrow: follow}", ("schema_changes.narrow", "may hold wider values")),
        ("{widen: keep}", ("schema_changes.widen", "cannot hold the wider values")),
        ("{rename: keep}", ("schema_changes.rename", "older rows would lack their values")),
        (
            "{tables: [{tables: 'shop.*', rename: keep}]}",
            ("schema_changes.tables", "older rows would lack their values"),
        ),
        ("{truncate: ignore}", ("schema_changes.truncate", "follow")),
        ("{drop_index: keep}", ("schema_changes.drop_index",)),
        ("{tables: [{tables: orders, truncate: keep}]}", ("schema_changes.tables",)),
    ],
)
def test_a_behaviour_that_cannot_hold_is_refused_with_its_key_and_reason(tmp_path: Path, changes: str, words):
    with pytest.raises(ConfigError) as refused:
        policy(tmp_path, changes)
    assert all(word in str(refused.value) for word in words)


@pytest.mark.parametrize(
    ("changes", "asks"),
    [
        ("{}", False),
        ("{truncate: stop, tables: [{tables: shop.orders, narrow: keep}]}", False),
        ("{narrow: ask}", True),
        ("{tables: [{tables: shop.orders, drop_table: ask}]}", True),
    ],
)
def test_answers_are_read_only_where_a_change_waits_for_a_person(tmp_path: Path, changes: str, asks: bool):
    policy(tmp_path, changes)
    assert load_source(tmp_path / "shop.yaml").schema_changes.asks is asks
