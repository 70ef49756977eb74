"""The root of the project holds what it should: a file that a test or a typing error left there is not committed."""

from __future__ import annotations

import subprocess

from tests.harness.docs.pages import ROOT

EXPECTED = {
    ".ci", ".dockerignore", ".env.example", ".gitignore", "ARCHITECTURE.md", "CHANGELOG.md", "Dockerfile", "LICENSE", "Makefile",
    "README.md", "cdc_lib", "dags", "demo", "dev", "docker-compose.yml", "docs", "mkdocs.yml", "plugins", "pyproject.toml",
    "requirements.lock", "spark_jobs", "tests",
}  # fmt: skip


def test_the_root_has_no_other_files():
    """Of those that git tracks."""
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert {path.partition("/")[0] for path in tracked.split("\0") if path} == EXPECTED
