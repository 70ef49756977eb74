"""Environments with other versions of Airflow than that of the tests, made once on this machine.

``python -m tests.harness.airflow.venv 3.1.8`` prints the Python of one in which the tests can run. ``floors`` in place of a version is
one without Airflow, in which each dependency has the lowest version that pyproject.toml allows.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tomllib
from importlib.metadata import version as installed
from pathlib import Path

from spark_jobs.runtime.jars import cache_dir, one_at_a_time

ROOT = Path(__file__).resolve().parents[3]
IMAGES = ROOT / "tests" / "supply_chain" / "airflow_images"
REFUSED = {"2.11.0": "2025-06-15", "3.0.6": "2025-09-10"}
"""Versions that are too old, each with a day on which its packages were what one got."""


FLOORS = "floors"

TOOLS = ("hatchling", "hypothesis", "playwright", "pyspark", "pytest", "pytest-timeout")
"""What tests need beside the project: in the versions that are installed here."""

BESIDE = ("httpx", "psutil", "uv")
"""What they need too: of Airflow's image where it pins them."""


def airflow_venv(version: str, *, for_tests: bool = False, python: str = sys.executable) -> Path:
    """Return the Python of an environment with a version of Airflow and what this project needs, but not the project itself.

    Args:
        version: one that has its image's pins in :data:`IMAGES`, or one of :data:`REFUSED`, or ``floors``.
        for_tests: whether tests run in it: with the project as an editable install, and what they need.
        python: its path; the pins of an image are for 3.12.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    arguments = [] if version == FLOORS else ["apache-airflow[statsd]==" + version]
    if for_tests:
        arguments += [f"{one}=={installed(one)}" for one in TOOLS]
        arguments += (
            [f"{one}=={installed(one)}" for one in BESIDE]
            if version == FLOORS
            else [*BESIDE, "apache-airflow-providers-openlineage"]
        )
    if version == FLOORS:
        floored = (
            one for name in ("read", "serve", "azure", "gcs", "tunnel") for one in extras[name] if "lakecdc" not in one
        )
        arguments += ["--resolution", "lowest-direct", *project["dependencies"], *floored]
        made_of = " ".join(arguments)
    elif version in REFUSED:
        arguments += ["pydantic", "--exclude-newer", REFUSED[version]]  # what reading a source file needs
        made_of = " ".join(arguments)
    else:
        pins = IMAGES / f"{version}.txt"
        arguments += ["--constraint", str(pins), *project["dependencies"], *extras["read"]]
        if for_tests:
            arguments += [one for extra in ("azure", "gcs", "tunnel") for one in extras[extra]]
        made_of = " ".join(arguments) + pins.read_text()
    digest = hashlib.sha256(
        f"{sys.version_info[:2] if python == sys.executable else python} {made_of} {ROOT if for_tests else ''}".encode()
    ).hexdigest()[:12]
    folder = cache_dir() / f"airflow-{version}-{digest}"
    with one_at_a_time(cache_dir() / ".airflow-venv.lock"):
        if not (folder / "made").is_file():
            _uv("venv", "--clear", "--python", python, str(folder))
            _uv("pip", "install", "--python", str(folder / "bin" / "python"), *arguments)
            if for_tests:
                _uv(
                    "pip",
                    "install",
                    "--python",
                    str(folder / "bin" / "python"),
                    "--no-deps",
                    "--no-build-isolation",
                    "--editable",
                    str(ROOT),
                )
            (folder / "made").touch()
    return folder / "bin" / "python"


def fab_provider() -> Path:
    """Return a folder with Flask AppBuilder's provider as the image of this Airflow has it, and what it needs."""
    pins = (IMAGES / f"{installed('apache-airflow')}.txt").read_text().splitlines()
    (pin,) = [line for line in pins if line.startswith("apache-airflow-providers-fab==")]
    folder = cache_dir() / pin.replace("==", "-")
    with one_at_a_time(cache_dir() / ".airflow-venv.lock"):
        if not (folder / "made").is_file():
            _uv("pip", "install", "--python", sys.executable, "--target", str(folder), pin)
            (folder / "made").touch()
    return folder


def _uv(*arguments: str) -> None:
    command = [str(Path(sys.executable).with_name("uv")), *arguments]
    done = subprocess.run(command, cwd=cache_dir(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[:4])} failed\n{done.stderr[-4000:]}")


if __name__ == "__main__":
    print(airflow_venv(sys.argv[1], for_tests=True))
