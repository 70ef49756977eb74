"""``cdc spark jobs`` without a server."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from cdc_lib.cli.main import app


def source_file(folder: Path, **merge: object) -> None:
    document = {
        "server": {"host": "h", "user": "u", "password_env": "P"},
        "tables": ["shop.*"],
        "store": {"url": f"file://{folder}/store"},
        "lake": {"type": "jdbc", "uri": f"jdbc:sqlite:{folder}/cat.db", "warehouse": f"file://{folder}/lake"},
        "merge": merge,
    }
    (folder / "shop.yaml").write_text(yaml.safe_dump(document))


def test_a_source_without_a_server_has_no_list(tmp_path: Path) -> None:
    """Its jobs start Spark themselves."""
    source_file(tmp_path)
    result = CliRunner().invoke(app, ["--sources", str(tmp_path), "spark", "jobs", "shop"])
    assert result.exit_code == 2
    assert "the source file names no Spark server" in result.output
    assert "merge.spark_server" in result.output


@pytest.mark.parametrize("option", [[], ["--json"]])
def test_a_server_that_does_not_run_is_an_error(tmp_path: Path, option: list[str]) -> None:
    """And no empty list."""
    source_file(tmp_path, spark_server={"url": "http://127.0.0.1:9"})
    result = CliRunner().invoke(app, ["--sources", str(tmp_path), "spark", "jobs", "shop", *option])
    assert result.exit_code != 0
    assert "the Spark server does not answer" in " ".join(result.output.split())
