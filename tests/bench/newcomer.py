"""Minutes and CPU seconds of each step of a newcomer, from a bare Debian to the first verified table: ``./dev bench newcomer``.

The steps are the commands of ``docs/guides/mysql-setup.md``, ``docs/install.md`` and ``docs/quickstart.md`` as they are printed, typed
into a Debian that debootstrap has just made, with a checkout, a MySQL server and, for each version, an Airflow of its own. It needs root and debootstrap.
Processes of a step have a PID namespace; what the server takes is not counted.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tests.bench.processes import ROOT
from tests.bench.report import Figure, save
from tests.harness.airflow.venv import IMAGES
from tests.harness.docs.pages import blocks, shell_lines
from tests.harness.servers.mysql import MySqlServer
from tests.harness.servers.process import free_port
from tests.harness.shop.terminal import typed

SUITE, MIRROR = "bookworm", "http://deb.debian.org/debian"
PACKAGES = "apt-get -qq update && apt-get -qq -y --no-install-recommends install python3 python3-venv openjdk-17-jre-headless >/dev/null"
PASSED_ON = ("PIP_", "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
"""How variables begin that say how this machine reaches a package index."""
CERTIFICATES = ("/etc/ssl/certs", "/usr/local/share/ca-certificates", "/etc/pip.conf", "/etc/resolv.conf", "/etc/hosts")
"""What the new system gets of this machine, to reach it too; names as Debian's installer writes them."""
TABLES = (
    "CREATE TABLE billing.orders (id INT PRIMARY KEY, item VARCHAR(20), price DECIMAL(10,2))",
    "INSERT INTO billing.orders VALUES (1, 'bell', 10.50), (2, 'lamp', 20.00), (3, NULL, NULL)",
)
ROWS = 3
SYSTEM, ALONE = "Debian", "no Airflow"
AIRFLOW = "mkdir -p ~/dags && python3 -m venv ~/airflow-venv && ~/airflow-venv/bin/pip install -q apache-airflow=={version} -c /pins.txt"
"""What somebody did who has an Airflow."""
STANDALONE = """
set -m
asked() { python3 -c 'import os, sqlite3, sys; print(*sqlite3.connect(os.environ["AIRFLOW_HOME"] + "/airflow.db").execute(sys.argv[1]).fetchone() or ("",))' "$1" 2>/dev/null || true; }
airflow standalone >~/standalone.log 2>&1 & airflow=$!
until [ -n "$(asked "SELECT 1 FROM serialized_dag WHERE dag_id = 'cdc_billing'")" ]; do
  sleep 2
  kill -0 $airflow || { tail -n 40 ~/standalone.log; exit 1; }
done
until (: </dev/tcp/localhost/$AIRFLOW__API__PORT) 2>/dev/null; do sleep 2; done
airflow dags unpause -y cdc_billing
airflow dags trigger cdc_billing
until [ "$state" = success ]; do
  sleep 2
  state=$(asked "SELECT state FROM dag_run WHERE dag_id = 'cdc_billing' ORDER BY state = 'success' DESC, state = 'failed' DESC LIMIT 1")
  [ "$state" != failed ] || { find ~/airflow/logs -name '*.log' -path '*cdc_billing*' -exec tail -n 5 {} +; exit 1; }
done
kill -INT -- -$airflow
for second in {1..30}; do kill -0 $airflow 2>/dev/null || break; sleep 1; done
kill -KILL -- -$airflow 2>/dev/null || true
wait $airflow || true"""
"""A run of the DAG. Airflow ends before the shell does, so that its CPU time is the shell's; now and then it never ends."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step, with its wall seconds and the CPU seconds of all its processes."""

    part: str
    name: str
    wall: float
    cpu: float


class StepFailed(Exception):
    """A command of a newcomer failed; the message has the end of what it printed."""


@dataclass
class Newcomer:
    """Types commands in a new Debian.

    Args:
        root: its files.
        env: variables of its shell.
        part: which part of the way is measured.
        steps: what was done.
    """

    root: Path
    env: dict[str, str]
    part: str = ""
    steps: list[Step] = field(default_factory=list)

    def types(self, name: str, line: str, answers: Sequence[str] = ()) -> str:
        """Do a step, and return what it shows.

        Raises:
            StepFailed: its exit status is not 0.
        """
        # The shell of a PID namespace adopts orphans, and the kernel adds their time to its own.
        shell = ["env", f"PATH={self.env['PATH']}", "bash", "-ec", f"cd ~/checkout; {line}; exit"]
        inside = (
            f"PATH=/usr/sbin:/usr/bin; mount -t proc proc {self.root}/proc; exec chroot {self.root} {shlex.join(shell)}"
        )
        command = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "bash", "-ec", inside]
        began, before = time.monotonic(), _children()
        code, shown = typed(command, answers, self.env)
        self.steps.append(Step(self.part, name, time.monotonic() - began, _children() - before))
        print(f"{self.part:10} {name:45} {self.steps[-1].wall:7.1f} s {self.steps[-1].cpu:7.1f} CPU s", flush=True)
        if code != 0:
            raise StepFailed(f"{name}: exit status {code} of {line}\n{shown[-6000:]}")
        return shown

    def first_source(self, line: str) -> None:
        """Answer the questions of ``cdc init``."""
        server = [self.env["DB_HOST"], self.env["DB_PORT"], "cdc", "BILLING_PASSWORD", ""]
        places = [
            f"file://{self.env['HOME']}/batches",
            f"jdbc:sqlite:{self.env['HOME']}/catalog.db",
            f"file://{self.env['HOME']}/lake",
        ]
        self.types("cdc init", line, ["billing", *server, "billing.*", *places, "", ""])


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@contextmanager
def bare_debian(folder: Path) -> Iterator[tuple[Path, Step]]:
    """Make a Debian with nothing but its base system, and remove it at the end; also yield what that took.

    Raises:
        StepFailed: debootstrap failed.
    """
    root = folder / "debian"
    began, before = time.monotonic(), _children()
    done = subprocess.run(["debootstrap", "--variant=minbase", SUITE, root, MIRROR], capture_output=True, text=True)
    if done.returncode != 0:
        raise StepFailed(f"debootstrap: {done.stdout[-2000:]} {done.stderr[-2000:]}")
    for one in map(Path, CERTIFICATES):
        if one.is_dir():
            shutil.copytree(one, root / one.relative_to("/"), dirs_exist_ok=True)
        elif one.is_file():
            shutil.copy(one, root / one.relative_to("/"))
    try:
        yield root, Step(SYSTEM, "debootstrap", time.monotonic() - began, _children() - before)
    finally:
        shutil.rmtree(root)


def home_of(root: Path, name: str) -> Path:
    """Make a home with a checkout of what is committed; return its path in the new system."""
    home = Path("/home", name)
    inside = root / home.relative_to("/") / "checkout"
    inside.mkdir(parents=True)
    packed = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=BytesIO(packed)) as archive:
        archive.extractall(inside, filter="data")
    return home


def page(name: str) -> str:
    """Return the text of a page."""
    return (ROOT / "docs" / name).read_text()


def section(text: str, title: str) -> str:
    """Return a section of a page."""
    return text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def prepare(server: MySqlServer, password: str) -> None:
    """Set up a server by the statements of the page, with a password, and make the table."""
    server.execute(f"DROP USER {server.cdc_user}@'%'")  # which servers of tests have
    for block in blocks(page("guides/mysql-setup.md"), "sql")[:1]:
        for statement in re.sub(r" *--.*", "", block).replace("'...'", f"'{password}'").split(";"):
            if statement.strip():
                server.execute(statement)
    server.execute("CREATE DATABASE billing")
    for statement in TABLES:
        server.execute(statement)


def verified(shown: str) -> None:
    """Check that ``cdc verify`` compared the table.

    Raises:
        StepFailed: it did not.
    """
    if f"{ROWS} rows" not in shown or "billing.orders" not in shown:
        raise StepFailed(f"no table was compared: {shown}")


def without_airflow(person: Newcomer) -> None:
    """Do the first block of install.md, its kernels, and the last of quickstart.md."""
    install = page("install.md").partition("\n## ")[0]
    lines = [*shell_lines(install), *shell_lines(section(page("install.md"), "Kernels"))]
    person.env["PATH"] = f"{person.env['HOME']}/lakecdc/bin:/usr/bin:/bin"
    for line in (*lines, *_runs()):
        _typed(person, line)


def _runs() -> list[str]:
    """Return the commands of quickstart.md for an own source, as they are without ``./dev``."""
    return [
        line.removeprefix("./dev ")
        for line in shell_lines(section(page("quickstart.md"), "Your own source"))
        if line.startswith("./dev cdc ")
    ]


def _typed(person: Newcomer, line: str) -> None:
    if line.endswith("cdc init"):
        person.first_source(line)
    else:
        shown = person.types(line, line)
        if line.startswith("cdc verify"):
            verified(shown)


def with_airflow(person: Newcomer, version: str) -> None:
    """Do what install.md says for an Airflow that is there, run the DAG, and compare."""
    home = person.env["HOME"]
    shutil.copy(IMAGES / f"{version}.txt", person.root / "pins.txt")
    person.types(f"pip install apache-airflow=={version}", AIRFLOW.format(version=version))
    person.env |= {
        "PATH": f"{home}/airflow-venv/bin:/usr/bin:/bin",
        "AIRFLOW_HOME": f"{home}/airflow",
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__API__PORT": (port := str(free_port())),
        "AIRFLOW__API__BASE_URL": f"http://localhost:{port}",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://localhost:{port}/execution/",
        "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(free_port()),
        "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(free_port()),
    }
    text = page("install.md")
    install, first, doctor = shell_lines(section(text, "Into an existing Airflow"))
    for line in (install, *shell_lines(section(text, "Kernels")), first, doctor):
        _typed(person, line)
    person.types("airflow standalone, one run of cdc_billing", STANDALONE)
    for line in _runs():
        if line.startswith(("cdc status", "cdc verify")):
            _typed(person, line)


def measure(folder: Path, parts: Sequence[str]) -> list[Step]:
    """Go the whole way once for each part: without Airflow, or with a version of it."""
    password = "first-hour"
    with MySqlServer(folder / "mysql") as server, bare_debian(folder) as (root, made):
        prepare(server, password)
        kept = {name: value for name, value in os.environ.items() if name.startswith(PASSED_ON)}
        shell = {
            "LANG": "C.UTF-8",
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "DEBIAN_FRONTEND": "noninteractive",
            **kept,
        }
        shell |= {"BILLING_PASSWORD": password, "DB_HOST": server.host, "DB_PORT": str(server.port)}
        person = Newcomer(root, {**shell, "HOME": str(home_of(root, "first"))}, SYSTEM)
        person.types("apt-get install python3 python3-venv openjdk-17-jre-headless", PACKAGES)
        steps = [made, *person.steps]
        for part in parts:
            other = Newcomer(root, {**shell, "HOME": str(home_of(root, part.replace(" ", "-")))}, part)
            without_airflow(other) if part == ALONE else with_airflow(other, part)
            steps += other.steps
    return steps


def figures_of(steps: Sequence[Step]) -> list[Figure]:
    """Return wall and CPU time of each step, and of each part as a whole."""
    found = []
    for part in dict.fromkeys(step.part for step in steps):
        own = [step for step in steps if step.part == part]
        whole = Step(part, "all steps", sum(step.wall for step in own), sum(step.cpu for step in own))
        for step in (whole, *own):
            found += [
                Figure(f"{part}: {step.name}: minutes", round(step.wall / 60, 2), "min"),
                Figure(f"{part}: {step.name}: CPU", round(step.cpu, 1), "CPU s"),
            ]
    return found


def others(path: Path, steps: Sequence[Step]) -> list[Figure]:
    """Return figures that an earlier run wrote of parts that this one did not measure."""
    parts = {step.part for step in steps}
    kept = json.loads(path.read_text())["figures"] if path.exists() else []
    return [Figure(**one) for one in kept if one["name"].partition(":")[0] not in parts]


def shown(steps: Sequence[Step]) -> Table:
    """Return the table of the steps."""
    table = Table("", "step", "minutes", "CPU s")
    for step in steps:
        table.add_row(step.part, escape(step.name), f"{step.wall / 60:.2f}", f"{step.cpu:.1f}")
    return table


def main() -> int:
    """Measure, print the table, and save."""
    parser = argparse.ArgumentParser(prog="./dev bench newcomer", description=__doc__)
    parser.add_argument(
        "--parts",
        nargs="+",
        choices=[ALONE, *sorted(one.stem for one in IMAGES.glob("3*.txt"))],
        default=[ALONE, "3.3.2", "3.2.2", "3.1.8"],
        metavar="PART",
        help=f"'{ALONE}' or versions of Airflow; figures of other parts stay in the file",
    )
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "bench" / "newcomer.json", help="the file")
    options = parser.parse_args()
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        print("bench newcomer: needs root and debootstrap; on Debian: apt-get install debootstrap", file=sys.stderr)
        return 2
    load = round(os.getloadavg()[0], 2)
    try:
        with tempfile.TemporaryDirectory(prefix="lakecdc-newcomer-") as folder:
            steps = measure(Path(folder), options.parts)
    except StepFailed as error:
        print(error, file=sys.stderr)
        return 1
    Console(width=120).print(shown(steps))
    about: dict[str, Any] = {"load_before": load, "runs": "one", "warm_up": "nothing: downloads are counted"}
    save([*others(options.output, steps), *figures_of(steps)], "MySQL 9.7.4", about, options.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
