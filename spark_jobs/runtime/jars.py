"""Additional jars for Spark, pinned by hash in ``jars.lock`` and fetched once into the download cache.

Fetching is done by the Ivy that pyspark ships, so Maven is not needed. Each line of the lock reads
``name[@spark] group:artifact:version[:classifier] sha256``; a name may be on several lines and means all of them, or those of the
installed Spark: ``iceberg@3.5`` is for Spark 3.5 alone.

Environment: ``CDC_CACHE`` is the folder of downloads (default ``~/.cache/lakecdc``); ``CDC_JARS`` names a folder that
already holds the jars under Maven's file names, for machines that fetch nothing.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cdc_lib.errors import ConfigError
from cdc_lib.store.objects.file_lock import locked

LOCK_FILE = Path(__file__).with_name("jars.lock")
_PATIENCE = 1800.0
"""Seconds to wait for another process that fetches."""

# The command line of Ivy knows no classifiers. An artifact named here is a jar, also if its module declares another type, such as bundle.
_WANTED = """\
<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="lakecdc" module="jar"/>
  <dependencies>
    <dependency org="{jar.group}" name="{jar.artifact}" rev="{jar.version}" transitive="false">
      <artifact name="{jar.artifact}" type="jar" ext="jar" {classifier}/>
    </dependency>
  </dependencies>
</ivy-module>
"""


@dataclass(frozen=True, slots=True)
class Jar:
    """One line of the lock."""

    name: str
    group: str
    artifact: str
    version: str
    sha256: str
    classifier: str = ""
    spark: str = ""

    @property
    def coordinates(self) -> str:
        """Return ``group:artifact:version`` and the classifier if there is one, as Gradle writes them."""
        return ":".join(filter(None, (self.group, self.artifact, self.version, self.classifier)))

    @property
    def file_name(self) -> str:
        """Return the file's name in a Maven repository."""
        return "-".join(filter(None, (self.artifact, self.version, self.classifier))) + ".jar"


def locked_jars(lock_file: Path = LOCK_FILE) -> list[Jar]:
    """Read the lock, in its order."""
    jars = []
    for line in lock_file.read_text().splitlines():
        if line and not line.startswith("#"):
            (name, _, spark), (coordinates, sha256) = line.split()[0].partition("@"), line.split()[1:]
            group, artifact, version, classifier, *_ = *coordinates.split(":"), ""
            jars.append(Jar(name, group, artifact, version, sha256, classifier, spark))
    return jars


def cache_dir() -> Path:
    """Return the folder of downloads, which may not exist yet."""
    return Path(os.environ.get("CDC_CACHE") or Path.home() / ".cache" / "lakecdc")


def jar_paths(names: Iterable[str]) -> list[Path]:
    """Return the files of the named jars; missing ones are fetched.

    Args:
        names: names of the lock, such as ``iceberg``, ``sqlite`` and ``s3``.

    Raises:
        ConfigError: a name is not in the lock, a jar could not be fetched, or it is not the one the lock names.
    """
    locked = locked_jars()
    paths: list[Path] = []
    for name in names:
        named = [jar for jar in locked if jar.name == name]
        if not named:
            raise ConfigError(f"no jar is called {name!r}", hint=f"the names are in {LOCK_FILE.name}")
        jars = [jar for jar in named if jar.spark in ("", installed_spark())]
        if not jars:
            raise ConfigError(
                f"jars.lock has no {name} for Spark {installed_spark()}",
                hint=f"Install a pyspark of {', '.join(sorted({jar.spark for jar in named}))}.",
            )
        paths.extend(_find(jar) or _fetch(jar) for jar in jars)
    return paths


def installed_spark() -> str:
    """Return the first two numbers of pyspark's version."""
    return minor_of(importlib.import_module("pyspark.version").__version__)


def minor_of(version: str) -> str:
    """Return the first two numbers of a version."""
    return ".".join(version.split(".")[:2])


def _find(jar: Jar) -> Path | None:
    cached = cache_dir() / "jars" / jar.file_name
    if cached.is_file():
        _check(jar, cached)  # each time: others may be able to write there
        return cached
    if offline := os.environ.get("CDC_JARS"):
        path = Path(offline) / jar.file_name
        if path.is_file():
            _check(jar, path)
            return path
    return None


def _fetch(jar: Jar) -> Path:
    """Fetch into a temporary folder, check, then move into place: files in the cache are complete and verified."""
    folder = cache_dir() / "jars"
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / jar.file_name
    with one_at_a_time(folder / ".lock"):
        if target.is_file():  # another process was faster
            return target
        with tempfile.TemporaryDirectory(dir=folder, prefix=".fetch-") as scratch:
            fetched = _retrieve(jar, Path(scratch))
            _check(jar, fetched)
            fetched.rename(target)
    return target


def _retrieve(jar: Jar, folder: Path) -> Path:
    java = str(Path(os.environ["JAVA_HOME"]) / "bin" / "java") if os.environ.get("JAVA_HOME") else "java"
    wanted = folder / "ivy.xml"
    wanted.write_text(_WANTED.format(jar=jar, classifier=f'm:classifier="{jar.classifier}"' if jar.classifier else ""))
    command = [java, "-cp", str(_ivy()), "org.apache.ivy.Main", "-warn"]
    command += ["-cache", str(folder / "cache"), "-ivy", str(wanted)]
    command += ["-retrieve", f"{folder}/[artifact]-[revision](-[classifier]).[ext]"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    path = folder / jar.file_name
    if done.returncode != 0 or not path.is_file():
        said = (done.stdout + done.stderr).strip()[-1500:]
        raise ConfigError(
            f"could not fetch {jar.coordinates}: {said}",
            hint="check the network, or set CDC_JARS to a folder that holds the jars",
        )
    return path


def _ivy() -> Path:
    spec = importlib.util.find_spec("pyspark")
    home = Path(spec.origin).parent if spec and spec.origin else None
    found = sorted(home.glob("jars/ivy-*.jar")) if home else []
    if not found:
        raise ConfigError("pyspark is not installed, and it holds what fetches jars", hint="install lakecdc[spark]")
    return found[-1]


def _check(jar: Jar, path: Path) -> None:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    if digest.hexdigest() != jar.sha256:
        raise ConfigError(
            f"{path} is not {jar.coordinates}: its sha256 is {digest.hexdigest()}, the lock says {jar.sha256}",
            hint="remove the file, or name the right one in jars.lock",
        )


@contextmanager
def one_at_a_time(lock: Path) -> Iterator[None]:
    """Hold a file lock, so that two processes do not fetch the same thing at once.

    Raises:
        StoreUnavailable: another process holds it for half an hour.
    """
    with locked(lock, _PATIENCE):
        yield
