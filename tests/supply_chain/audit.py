"""``./dev audit``: known vulnerabilities of everything that the two locks name.

pip-audit asks about the packages, and this program asks the same service about the Java archives. The exit status is 0 if nothing
is known, 1 if something is, and 2 if it could not be found out: an audit that asked nobody never looks like a clean one.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import requests

from tests.supply_chain.advisories import Advisories, NotAdvisories, served
from tests.supply_chain.locked import REQUIREMENTS, Locked, archives

SERVICE = "https://api.osv.dev/v1/query"
SECONDS = 15
CLEAN, FOUND, NOT_AUDITED = 0, 1, 2


class NotAudited(Exception):
    """The service did not answer, or not about everything."""


def audit(service: str, lock: Path = REQUIREMENTS) -> list[str]:
    """Return one line for each known vulnerability.

    Args:
        service: address of OSV's query, or of what answers as it does.
        lock: the packages to ask about.

    Raises:
        NotAudited: it is not known about everything.
    """
    lines = [
        f"{one['name']} {one['version']}: {_described(fault)}"
        for one in _audited(service, lock)
        for fault in one["vulns"]
    ]
    for jar in archives():
        name = f"{jar.purl.namespace}:{jar.purl.name}"
        lines += [f"{name} {jar.purl.version}: {one['id']} {_summary(one)}" for one in _of_archive(service, name, jar)]
    return lines


def _audited(service: str, lock: Path) -> list[dict[str, Any]]:
    """Return what pip-audit found about each package of a lock."""
    command = [sys.executable, "-m", "pip_audit", "--requirement", str(lock), "--disable-pip", "--require-hashes"]
    command += ["--vulnerability-service", "osv", "--osv-url", service, "--timeout", str(SECONDS)]
    done = subprocess.run([*command, "--format", "json", "--progress-spinner", "off"], capture_output=True, text=True)
    if done.returncode not in (CLEAN, FOUND) or not done.stdout:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise NotAudited(f"the vulnerability service {service} gave no answer: {last}")
    found = json.loads(done.stdout)["dependencies"]
    skipped = [f"{one['name']}: {one['skip_reason']}" for one in found if "skip_reason" in one]
    if skipped or not found:
        raise NotAudited("not audited: " + ("; ".join(skipped) or "no package"))
    return found


def _described(fault: dict[str, Any]) -> str:
    fixed = f"fixed in {', '.join(fault['fix_versions'])}" if fault["fix_versions"] else "not fixed yet"
    return f"{' '.join([fault['id'], *fault['aliases']])} {fixed}"


def _of_archive(service: str, name: str, jar: Locked) -> list[dict[str, Any]]:
    query = {"package": {"name": name, "ecosystem": "Maven"}, "version": jar.purl.version}
    try:
        answer = requests.post(service, json=query, timeout=SECONDS)
        answer.raise_for_status()
        found = answer.json().get("vulns", [])
    except (requests.RequestException, ValueError) as error:
        raise NotAudited(f"the vulnerability service {service} gave no answer: {error}") from error
    return [one for one in found if not one.get("withdrawn")]


def _summary(advisory: dict[str, Any]) -> str:
    return " ".join([*advisory.get("aliases", []), advisory.get("summary") or ""]).strip()


def main(arguments: list[str] | None = None) -> int:
    """Audit, print what is known, and return the exit status."""
    parser = argparse.ArgumentParser(prog="./dev audit", description=__doc__.partition("\n")[0])
    parser.add_argument("--offline", nargs="+", type=Path, metavar="FILE", help="OSV's all.zip of PyPI and of Maven")
    parser.add_argument("--service", default=SERVICE, help=f"default: {SERVICE}")
    parser.add_argument("--lock", type=Path, default=REQUIREMENTS, help="default: requirements.lock")
    wanted = parser.parse_args(arguments)
    try:
        service = served(Advisories(wanted.offline)) if wanted.offline else nullcontext(wanted.service)
        with service as address:
            lines = audit(address, wanted.lock)
    except (NotAudited, NotAdvisories, OSError) as error:
        print(
            f"{error}\nNothing was audited. Without a way to the service: ./dev audit --offline FILE", file=sys.stderr
        )
        return NOT_AUDITED
    print("\n".join(lines) if lines else "no known vulnerability")
    return FOUND if lines else CLEAN


if __name__ == "__main__":
    sys.exit(main())
