from __future__ import annotations

from pathlib import Path

import pytest

from cdc_lib.config import load_source
from cdc_lib.errors import ConfigError

PLAIN = """
server: {host: db.example, user: cdc, password_env: P}
tables: ["shop.*"]
store: {url: "file:///tmp/store"}
lake: {type: jdbc, uri: "jdbc:sqlite:/tmp/cat.db", warehouse: "file:///tmp/lake"}
"""


def loaded(folder: Path, verify: str):
    file = folder / "shop.yaml"
    file.write_text(f"{PLAIN}verify: {verify}\n")
    return load_source(file)


def test_without_a_word_all_captured_tables_are_compared_and_only_when_asked(tmp_path: Path):
    """Nobody's server is read automatically."""
    config = loaded(tmp_path, "{}")
    assert config.verify.schedule is None
    assert config.verify.names("shop", "orders")


def test_patterns_choose_tables(tmp_path: Path):
    """As everywhere in the file."""
    config = loaded(tmp_path, '{schedule: "0 4 * * *", tables: ["shop.o*"]}')
    assert config.verify.names("shop", "orders")
    assert not config.verify.names("shop", "customers")


@pytest.mark.parametrize(
    ("verify", "words"),
    [
        ('{schedule: "each day"}', ["verify.schedule", "five fields"]),
        ("{tables: [orders]}", ["verify.tables", "'orders' is not database.table"]),
        ("{tables: []}", ["verify.tables"]),
        ("{chunk_rows: 0}", ["verify.chunk_rows", "at least 1"]),
        ("{statement_delay: 61s}", ["verify.statement_delay", "must be 1m or shorter"]),
        ("{wait: 25h}", ["verify.wait", "must be 1d or shorter"]),
        ("{chunks: 5}", ["verify.chunks"]),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, verify: str, words: list[str]):
    """Key, value and what is allowed."""
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, verify)
    for word in words:
        assert word in str(caught.value)
