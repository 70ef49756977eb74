"""Everything that the two locks name: Python packages and Java archives."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from packageurl import PackageURL
from packaging.requirements import Requirement

from spark_jobs.runtime.jars import locked_jars

ROOT = Path(__file__).parents[2]
REQUIREMENTS = ROOT / "requirements.lock"
OF_A_JOB = frozenset({"iceberg", "sqlite", "postgresql", "s3", "gcs", "azure"})
"""Names of ``spark_jobs/runtime/jars.lock`` that a job loads; the others are for tests and benchmarks."""

_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Locked:
    """One package or archive.

    Args:
        purl: its name and version in the form that all ecosystems share.
        sha256: of its files: the one of an archive, those of all wheels and of the source of a package.
        marker: on which Python and system it is installed; empty for archives.
        optional: whether only tests and benchmarks use it.
    """

    purl: PackageURL
    sha256: tuple[str, ...]
    marker: str = ""
    optional: bool = False


def packages(lock: Path = REQUIREMENTS) -> list[Locked]:
    """Return the packages of ``requirements.lock``, in its order."""
    found = []
    for entry in re.split(r"\n(?=\S)", lock.read_text()):
        requirement = Requirement(entry.partition(" \\\n")[0])
        (pin,) = requirement.specifier
        purl = PackageURL("pypi", None, requirement.name, pin.version)
        found.append(Locked(purl, tuple(_HASH.findall(entry)), str(requirement.marker or "")))
    return found


def archives() -> list[Locked]:
    """Return the Java archives of ``spark_jobs/runtime/jars.lock``, in its order."""
    return [
        Locked(
            PackageURL("maven", jar.group, jar.artifact, jar.version), (jar.sha256,), optional=jar.name not in OF_A_JOB
        )
        for jar in locked_jars()
    ]
