"""The root of the project holds what it should, and the product does not grow unseen."""

from __future__ import annotations

import subprocess

from tests.harness.docs.pages import ROOT
from tests.harness.docs.size import statements_by_room

EXPECTED = {
    ".ci", ".dockerignore", ".env.example", ".gitignore", "ARCHITECTURE.md", "CHANGELOG.md", "Dockerfile", "LICENSE", "Makefile",
    "README.md", "cdc_lib", "dags", "demo", "dev", "docker-compose.yml", "docs", "mkdocs.yml", "plugins", "pyproject.toml",
    "requirements.lock", "spark_jobs", "tests",
}  # fmt: skip


def test_the_root_has_no_other_files():
    """Of those that git tracks."""
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert {path.partition("/")[0] for path in tracked.split("\0") if path} == EXPECTED


def test_the_product_does_not_grow_unseen():
    """What is added makes something else needless; a smaller number is written here as it is reached."""
    assert sum(statements_by_room().values()) <= 42_666
