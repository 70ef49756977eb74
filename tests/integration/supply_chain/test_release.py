"""What ``./dev release`` builds, installed into a bare environment by the commands of README and install.md as they are printed."""

from __future__ import annotations

import email
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from cdc_lib.cli.init import DAG_FILES
from tests.harness.docs.pages import ROOT, shell_lines
from tests.harness.shop.terminal import typed
from tests.supply_chain.release import build

ADDRESS = "https://example.org/owner/lakecdc"
PAGES = {name: (ROOT / name).read_text() for name in ("README.md", "docs/install.md")}
LINES = list(dict.fromkeys(line for page in PAGES.values() for line in shell_lines(page)))
ELSEWHERE = {
    "./dev demo": "compares every row at its end",
    "./dev test": "each change",
    "./dev test-unit": "each change",
    "./dev setup": "each change",
    "./dev cdc --help": "tests/unit/cli",
    "cp .env.example .env": "tests/unit/test_compose.py",
    "docker compose up --build": "needs Docker: tests/unit/test_compose.py reads the file",
}
"""Commands that need what a test cannot start, or that run with each change."""
FOREIGN = ("PYTHON", "VIRTUAL_ENV", "AIRFLOW", "CDC_SOURCES", "CDC_TEST", "NUMBA")
"""How variables begin that a newcomer's shell does not have."""


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return source archive and wheel: those of ``./dev release``, or as it builds them."""
    dist = os.environ.get("CDC_TEST_DIST")
    made = sorted(Path(dist).glob("lakecdc-*")) if dist else build(ADDRESS, tmp_path_factory.mktemp("dist"))
    (wheel,) = (one for one in made if one.suffix == ".whl")
    (source,) = (one for one in made if one.name.endswith(".tar.gz"))
    return source, wheel


def test_an_index_can_show_the_package(archives: tuple[Path, Path]):
    """The README without a link that needs the files around it, addresses, license and classifiers; both archives say the same."""
    source, wheel = archives
    with zipfile.ZipFile(wheel) as opened:
        (name,) = (one for one in opened.namelist() if one.endswith(".dist-info/METADATA"))
        text = opened.read(name).decode()
    with tarfile.open(source) as packed:
        found = packed.extractfile(f"{source.name.removesuffix('.tar.gz')}/PKG-INFO")
        assert found is not None
        assert found.read().decode() == text
    said = email.message_from_string(text)
    assert said["Description-Content-Type"] == "text/markdown"
    assert "## Guarantees" in said.get_payload()
    assert re.findall(r"\]\((?!https?://|#)[^)]*", str(said.get_payload())) == []
    assert {one.partition(",")[0] for one in said.get_all("Project-URL", [])} == {
        "Repository",
        "Documentation",
        "Changelog",
    }
    assert said["License-Expression"] == "Apache-2.0"
    assert any("Apache Airflow" in one for one in said.get_all("Classifier", []))


def test_both_archives_have_the_dag_files_and_no_test(archives: tuple[Path, Path]):
    """``cdc init`` writes them from the wheel; an environment can be built from the source archive."""
    source, wheel = archives
    with zipfile.ZipFile(wheel) as opened:
        for name in DAG_FILES:
            assert opened.read(f"cdc_lib/dag_files/{name}") == (ROOT / "dags" / name).read_bytes()
        assert not [one for one in opened.namelist() if one.startswith("tests/")]
    with tarfile.open(source) as packed:
        inside = {one.partition("/")[2] for one in packed.getnames()}
    assert {f"dags/{name}" for name in DAG_FILES} | {"README.md", "LICENSE", "pyproject.toml"} <= inside
    assert not [one for one in inside if one.startswith(("tests", "docs", "demo"))]


class Newcomer:
    """Types commands into a shell whose home has nothing, in a checkout.

    Args:
        home: an empty folder.
        checkout: of the repository.
        wheel: what ``.`` means for pip; a checkout builds the same.
        variables: in addition to those of the shell.
    """

    def __init__(self, home: Path, checkout: Path, wheel: Path, variables: dict[str, str]) -> None:
        self.checkout, self.home, self.wheel = checkout, home, wheel
        self.bin = home / "lakecdc" / "bin"
        kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
        python = Path(sys.executable).resolve().parent
        self.env = kept | {"HOME": str(home), "PATH": f"{self.bin}:{python}:/usr/bin:/bin"} | variables

    def answers(self, line: str, answers: list[str]) -> str:
        """Run one line in a terminal, type the answers, and return what it shows."""
        code, shown = typed(["bash", "-c", line], answers, self.env, self.checkout)
        assert code == 0, f"$ {line}\n{shown}"
        return shown

    def types(self, line: str) -> str:
        """Run one line and return what it prints."""
        done = subprocess.run(
            ["bash", "-c", line], cwd=self.checkout, env=self.env, capture_output=True, text=True, timeout=1500,
        )  # fmt: skip
        assert done.returncode == 0, f"$ {line}\n{done.stdout}\n{done.stderr}"
        if "-m venv" in line:
            self._keep_downloads()
        return done.stdout + done.stderr

    def _keep_downloads(self) -> None:
        """Let uv do what pip is asked for, so that nothing is fetched twice on this machine; it installs the same metadata."""
        uv, real = Path(sys.executable).with_name("uv"), self.bin / "pip"
        cache = subprocess.run([uv, "cache", "dir"], capture_output=True, text=True, check=True).stdout.strip()
        real.write_text(
            f'#!/bin/bash\nexport HOME={Path.home()}\n[ "$1" = install ] || exit 2\nexec {uv} --cache-dir {cache} pip install --quiet '
            f'--python {self.bin}/python "${{2/#./{self.wheel}}}"\n'
        )


@pytest.mark.slow
def test_the_commands_of_readme_and_install_run_as_they_are_printed(
    archives: tuple[Path, Path], mariadb_server, mariadb_database: str, tmp_path: Path
):
    """In an environment with nothing but Python: install, first source, checks, DAG files, a run, its state and the comparison."""
    home, checkout = tmp_path / "home", tmp_path / "checkout"
    home.mkdir()
    checkout.mkdir()
    shutil.copy(archives[1], checkout)
    mariadb_server.execute(f"CREATE TABLE {mariadb_database}.orders (id INT PRIMARY KEY, item VARCHAR(20))")
    mariadb_server.execute(f"INSERT INTO {mariadb_database}.orders VALUES (1, 'bell'), (2, 'lamp')")
    person = Newcomer(home, checkout, archives[1], {"BILLING_PASSWORD": mariadb_server.cdc_password})

    def answered(source: str) -> list[str]:
        places = [f"file://{tmp_path}/batches", f"jdbc:sqlite:{tmp_path}/catalog.db", f"file://{tmp_path}/lake"]
        server = [mariadb_server.host, str(mariadb_server.port), mariadb_server.cdc_user, "BILLING_PASSWORD", ""]
        return [source, *server, f"{mariadb_database}.*", *places, "", ""]

    undecided = []
    for line in [*shell_lines(PAGES["docs/install.md"]), *shell_lines(PAGES["README.md"])]:
        command = re.sub(r"^\./dev (?=cdc )", "", line)  # it is the environment of the checkout
        if line in ELSEWHERE:
            continue
        if command == "cdc init":
            person.env["AIRFLOW_HOME"] = str(home / "airflow")
            assert "billing.yaml" in person.answers(command, answered("billing"))
            assert {one.name for one in (home / "airflow" / "dags").glob("*.py")} == set(DAG_FILES)
        elif command.endswith("/cdc init"):
            assert "billing.yaml" in person.answers(command, answered("billing"))
        elif re.match(r"(~/lakecdc/bin/)?(cdc|pip|python) |python3 -m venv ", command):
            said = person.types(command)
            assert not command.startswith("cdc verify") or "no difference" in said or "equal" in said, said
        else:
            undecided.append(line)
    assert undecided == []
    made = [
        person.types(f"python -c 'import runpy; print(*runpy.run_path(\"{home}/airflow/dags/{name}\"))'")
        for name in DAG_FILES
    ]
    assert re.search(r"\bcdc_billing\b.*\bcdc_maintenance\b", " ".join(made), re.DOTALL)


def test_a_printed_command_is_run_or_has_a_reason():
    """One that somebody adds to a page must be tried too."""
    assert {line for line in ELSEWHERE if line not in LINES} == set()
