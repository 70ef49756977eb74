"""The index of the harness."""

from __future__ import annotations

import re

import pytest

from tests.harness.docs.pages import ROOT

HARNESS = ROOT / "tests/harness"
FOLDERS = sorted(path.name for path in HARNESS.iterdir() if (path / "__init__.py").is_file())


def indexed() -> dict[str, set[str]]:
    """Return the modules that the index names, by folder."""
    parts = re.split(r"^## `(\w+)/`.*$", (HARNESS / "README.md").read_text(), flags=re.MULTILINE)[1:]
    return {
        folder: set(re.findall(r"^\* `(\w+)\.py`: \S", text, flags=re.MULTILINE))
        for folder, text in zip(parts[::2], parts[1::2], strict=True)
    }


@pytest.mark.parametrize("folder", FOLDERS)
def test_each_module_is_in_the_index(folder: str) -> None:
    modules = {path.stem for path in (HARNESS / folder).glob("*.py")} - {"__init__"}
    assert indexed()[folder] == modules


def test_the_index_has_no_other_folder_and_no_module_is_beside_the_folders() -> None:
    assert sorted(indexed()) == FOLDERS
    assert [path.name for path in HARNESS.glob("*.py")] == ["__init__.py"]
