"""Every file, folder and module that pages and docstrings name exists; the page that finds the way names every room."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from tests.harness.docs.paths import (
    FOLDERS,
    ROOT,
    is_defined,
    paths_in,
    references_in,
    unknown_in_code,
    unknown_in_page,
)

ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text()
WAY = (ROOT / "docs" / "internals" / "find-your-way.md").read_text()
PAGES = [
    "ARCHITECTURE.md",
    "README.md",
    *(str(page.relative_to(ROOT)) for page in sorted((ROOT / "docs").rglob("*.md"))),
]
PACKAGES = [path.parent for root in ("cdc_lib", "spark_jobs") for path in sorted((ROOT / root).glob("*/__init__.py"))]
ROOMS = [*(str(path.relative_to(ROOT)) for path in PACKAGES), "plugins/cdc_airflow", "dags", "demo", "tests", "docs"]
ROW = re.compile(r"^\| (\S+) \| `([\w/]+)/` \| .* \| `([\w./]+)` \|$", re.MULTILINE)
CODE = [file for folder in FOLDERS for file in sorted((ROOT / folder).rglob("*.py")) if file != Path(__file__)]


@pytest.mark.parametrize("page", PAGES)
def test_paths_of_a_page_exist(page):
    """From the root of the repository, so that a reader can open them."""
    text = (ROOT / page).read_text()
    assert unknown_in_page(text) == []
    assert len(paths_in(text)) > 2 or not page.startswith(("ARCHITECTURE", "docs/internals/"))


def test_links_of_the_architecture_page_lead_somewhere():
    """The site's build looks at the links of its own pages."""
    links = re.findall(r"\]\(([^)#]+)", ARCHITECTURE)
    assert len(links) > 8
    assert [link for link in links if not (ROOT / link).exists()] == []


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_is_on_the_page_of_rooms_with_the_file_to_read_first(room):
    """Once; a new folder is entered there."""
    (first,) = [first for _, folder, first in ROW.findall(WAY) if folder == room]
    assert Path(first).parent == Path(room)


def test_the_layers_of_the_page_of_rooms_are_those_that_are_checked():
    """By import-linter, whose contract is in pyproject.toml."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = [contract["layers"] for contract in contracts if contract["type"] == "layers"]
    checked = {name: str(number) for number, layer in enumerate(layers, 1) for name in re.findall(r"\w+", layer)}
    page = {Path(first).stem if folder == "cdc_lib" else Path(folder).name: layer
            for layer, folder, first in ROW.findall(WAY) if folder.startswith("cdc_lib")}  # fmt: skip
    assert page == {name: layer for name, layer in checked.items() if name != "compile_kernels"}
    assert [*page.values()] == sorted(page.values())


def test_paths_and_references_in_code_exist():
    """A file that moves takes what other files say of it along."""
    assert sum(len(references_in(file.read_text())) for file in CODE) > 40
    assert {str(file): wrong for file in CODE if (wrong := unknown_in_code(file.read_text()))} == {}


def test_a_path_that_does_not_exist_is_found():
    """Also a file without its folder, a folder that is a file, and a name that a module or a class does not have."""
    paths = "`cdc_lib/window/start.py` `iceberg.py` `cdc_lib/decode/` `cdc_lib/ports.py/` `cdc_lib.read.as_of`"
    names = "`cdc_lib.ports.Nothing` `MergeSource` `Cursor.latest`"
    right = "`cdc_lib/ports.py` `cdc_lib/lake/` `cdc_lib.lake.as_of` `cdc_lib.ports.ObjectStore` `Cursor.last` `batches/x` `x.y`"
    assert len(unknown_in_page(f"{paths} {names}")) == 8
    assert unknown_in_page(right) == []
    assert unknown_in_code("see window/start.py and :func:`cdc_lib.merge.plan.nothing`") == [
        "window/start.py",
        "cdc_lib.merge.plan.nothing",
    ]
    assert is_defined("cdc_lib.merge.plan.work_on")
