"""The matrix of engines and layouts has a column for each engine that a test compares, with its version, and a line for each layout."""

from __future__ import annotations

from itertools import product

import pyspark
import pytest

from tests.harness.docs.pages import ROOT
from tests.harness.lake.duckdb_queries import PACKAGED
from tests.harness.lake.engine_tables import MODES
from tests.harness.lake.trino import VERSION as TRINO
from tests.unit.docs.test_support_matrix import pin

TEXT = (ROOT / "docs" / "guides" / "table-layout.md").read_text().partition("## Which engine reads which layout\n")[2]
LINES = [
    [cell.strip() for cell in line.strip("|").split("|")] for line in TEXT.lstrip().splitlines() if line.startswith("|")
]
LIMITS = (ROOT / "docs" / "operations" / "limits.md").read_text()


def locked(package):
    """Return the version in ``requirements.lock``."""
    lines = (ROOT / "requirements.lock").read_text().splitlines()
    (found,) = (line.split(" ")[0] for line in lines if line.startswith(f"{package}=="))
    return found.partition("==")[2]


def test_each_engine_of_the_tests_has_a_column_with_its_version():
    duckdb = [f"DuckDB {version}" for version in (*PACKAGED, locked("duckdb"))]
    engines = [f"Spark {pyspark.__version__}", "`cdc_lib.read`", f"PyIceberg {pin('pyiceberg')}", f"Trino {TRINO}"]
    assert LINES[0] == ["`format_version`", "`write_mode`", *engines, *duckdb]


def test_each_layout_has_a_line():
    assert [tuple(line[:2]) for line in LINES[2:6]] == [(v, f"`{mode}`") for v, mode in product("32", MODES)]


@pytest.mark.parametrize("version", [*PACKAGED, locked("duckdb")])
def test_the_limits_name_each_version_of_duckdb(version):
    section = LIMITS.partition("### DuckDB\n")[2].partition("\n### ")[0]
    assert f"| {version} " in section
