"""Checks that Java is installed, in a version that Spark supports."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from cdc_lib.errors import ConfigError
from cdc_lib.model.finding import Finding

VERSIONS = (17, 21)
"""First and last Java version that Spark 4.1 supports."""

INSTALL = (
    "Install Java 17 (on Debian 12: apt-get install openjdk-17-jre-headless), or set JAVA_HOME to one of 17 to 21."
)

_VERSION = re.compile(r'version "(?P<first>\d+)(?:\.(?P<second>\d+))?')
_PATIENCE = 30.0


def check_java(environ: Mapping[str, str] = os.environ) -> Iterator[Finding]:
    """Yield a finding about Java."""
    try:
        program, version = java_of(environ)
    except ConfigError as error:
        yield Finding("error", error.message, error.hint)
        return
    yield Finding("ok", f"Java {version} ({program})")


def java_of(environ: Mapping[str, str] = os.environ) -> tuple[str, int]:
    """Return the java program that Spark would start, and its major version.

    Raises:
        ConfigError: it does not exist, or Spark does not support its version.
    """
    home = environ.get("JAVA_HOME")
    program = str(Path(home) / "bin" / "java") if home else shutil.which("java", path=environ.get("PATH"))
    if program is None:
        raise ConfigError("Spark needs Java, and there is none on PATH", hint=INSTALL)
    try:
        done = subprocess.run(
            [program, "-version"], capture_output=True, text=True, check=False, timeout=_PATIENCE, env=dict(environ)
        )
    except OSError as error:
        wrong = f"{program} cannot be started: {error.strerror or error}"
        raise ConfigError(f"Spark needs Java, and {wrong}", hint=INSTALL) from None
    except subprocess.TimeoutExpired:
        raise ConfigError(f"{program} -version did not end in {_PATIENCE:.0f} s", hint=INSTALL) from None
    version = version_in(done.stderr + done.stdout)
    if version is None:
        raise ConfigError(f"{program} does not say which Java it is", hint=INSTALL)
    if not VERSIONS[0] <= version <= VERSIONS[1]:
        raise ConfigError(f"Spark does not run on Java {version} ({program})", hint=INSTALL)
    return program, version


def version_in(text: str) -> int | None:
    """Return the major version in the output of ``java -version``; None if it has none."""
    found = _VERSION.search(text)
    if found is None:
        return None
    first = int(found["first"])
    return int(found["second"] or 0) if first == 1 else first
