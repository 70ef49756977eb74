from __future__ import annotations

import pyarrow as pa
import pytest

from cdc_lib.cli import head
from cdc_lib.config import load_source
from cdc_lib.read.lake import open_catalog


@pytest.fixture
def lake(tmp_path, sources):
    """A real lake in SQLite and a folder, with one table of three rows."""
    (tmp_path / "cat.db").touch()
    config = load_source(sources / "shop.yaml")
    catalog = open_catalog(config)
    catalog.create_tables()
    catalog.create_namespace("shop")
    rows = pa.table({"id": [1, 2, 3], "name": ["a", None, "[b]"], "raw": [b"\x00\xff", b"", None], "_epoch": [1, 1, 1]})
    catalog.create_table(("shop", "orders"), rows.schema).append(rows)
    catalog.close()
    return config


def test_rows_of_a_lake_table_are_shown_without_spark(cdc, lake):
    """Nulls and bytes are told from texts; texts in brackets stay what they are."""
    result = cdc("head", "shop", "shop.orders")
    assert result.exit_code == 0
    assert "NULL" in result.stdout
    assert "00ff" in result.stdout
    assert "[b]" in result.stdout
    assert "_epoch" not in result.stdout
    assert "3 rows" in result.stdout


def test_no_more_rows_than_asked_for_are_read(cdc, lake):
    """And the columns of the order key on request."""
    result = cdc("head", "shop", "shop.orders", "--limit", 2, "--all")
    assert "2 rows" in result.stdout
    assert "_epoch" in result.stdout


def test_a_table_that_the_lake_does_not_have_is_told(cdc, lake):
    """With when it will have it."""
    result = cdc("head", "shop", "shop.nothing")
    assert result.exit_code == 2
    assert "the lake has no table shop.nothing" in result.stderr


def test_a_name_that_is_no_table_is_told(cdc, lake):
    """It is the source's name for it that is wanted."""
    result = cdc("head", "shop", "orders")
    assert result.exit_code == 2
    assert "'orders' is not database.table" in result.stderr


def test_looking_at_a_lake_that_is_not_there_does_not_make_one(cdc, tmp_path):
    """SQLite would make an empty file."""
    result = cdc("head", "shop", "shop.orders")
    assert result.exit_code == 2
    assert "there is no lake yet" in result.stderr
    assert not (tmp_path / "cat.db").exists()


def test_a_missing_pyiceberg_is_told_with_the_way_to_get_it(cdc, monkeypatch):
    """Only this command needs it."""
    monkeypatch.setattr(head.importlib.util, "find_spec", lambda _: None)
    result = cdc("head", "shop", "shop.orders")
    assert result.exit_code == 2
    assert 'pip install "lakecdc[read]"' in result.stderr
