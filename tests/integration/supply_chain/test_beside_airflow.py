"""The package can be installed beside what the images of supported Airflow versions hold, without changing it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.docs.pages import ROOT

IMAGES = ROOT / "tests" / "supply_chain" / "airflow_images"
PINS = sorted(one for one in IMAGES.glob("*.txt") if one.name[0].isdigit())


def resolve(pins, *wanted):
    """Ask the resolver for requirements under the pins of an image."""
    command = [str(Path(sys.executable).with_name("uv")), "pip", "compile", "--quiet", "--no-header", "--no-annotate"]
    command += ["--python-version", "3.12", "--constraint", str(pins), *map(str, wanted)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def named(text):
    """Return the pinned versions by name."""
    pairs = (line.partition(" ")[0].partition("==") for line in text.splitlines() if not line.startswith("#"))
    return {name.lower(): version for name, _, version in pairs if version}


@pytest.mark.parametrize("pins", PINS, ids=lambda one: one.stem)
def test_what_an_airflow_image_holds_stays_as_it_is(pins):
    """MWAA enforces these pins; elsewhere a changed package may break Airflow's providers."""
    done = resolve(pins, ROOT / "pyproject.toml", "--extra", "read", "--extra", "airflow")
    assert done.returncode == 0, done.stderr
    held, got = named(pins.read_text()), named(done.stdout)
    assert {"pymysql", "rich", "pyarrow"} <= held.keys() & got.keys()
    assert {name: got[name] for name in held.keys() & got.keys()} == {
        name: held[name] for name in held.keys() & got.keys()
    }


def test_a_floor_above_what_an_image_holds_is_found(tmp_path):
    """Else the test above would look at nothing."""
    wanted = tmp_path / "wanted.in"
    wanted.write_text("pymysql>=1.2\n")
    done = resolve(IMAGES / "3.3.2.txt", wanted)
    assert done.returncode != 0
    assert "pymysql" in done.stderr
