from __future__ import annotations

from pathlib import Path

import pytest

GOOD = """
server: {{host: db.example, user: cdc, password_env: CDC_TEST_PASSWORD}}
tables: ["shop.*"]
schedule: "*/7 * * * *"
store: {{url: "file://{folder}/store"}}
lake: {{catalog: lake, type: jdbc, uri: "jdbc:sqlite:{folder}/cat.db", warehouse: "file://{folder}/lake"}}
drain: {{parallelism: 3}}
"""


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A folder with the right sources ``shop`` and ``stock``."""
    folder = tmp_path / "sources"
    folder.mkdir()
    for name in ("shop", "stock"):
        (folder / f"{name}.yaml").write_text(GOOD.format(folder=tmp_path))
    return folder
