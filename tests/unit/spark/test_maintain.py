"""The maintenance job of a source that has no cut."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from spark_jobs import maintain


def test_a_source_whose_first_merge_failed_is_not_said_to_have_no_tables(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """Its catalog may have some: none is maintained, and Spark is not started."""
    file = tmp_path / "shop.yaml"
    values = {
        "server": {"host": "h", "user": "u", "password_env": "NONE"},
        "tables": ["shop.*"],
        "store": {"url": f"file://{tmp_path}/store"},
        "lake": {"type": "hadoop", "warehouse": f"file://{tmp_path}/lake"},
    }
    file.write_text(yaml.safe_dump(values))
    assert maintain.main([f"--config={file}"]) == 0
    assert "shop: nothing is merged yet" in capsys.readouterr().out
