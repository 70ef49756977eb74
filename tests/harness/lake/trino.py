"""A Trino server for tests, made of jars from Maven Central: Trino publishes its server elsewhere. It needs Java 25 and Maven.

``CDC_TEST_TRINO_JAVA`` names the folder of that Java; without it, one in ``/usr/lib/jvm`` is used.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import shutil
import struct
import subprocess
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from tests.harness.servers.process import free_port

VERSION = "483"
PLUGIN = "io.trino.plugin.iceberg.IcebergPlugin"

_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>test</groupId><artifactId>{name}</artifactId><version>1</version>
<dependencyManagement><dependencies><dependency><groupId>io.trino</groupId><artifactId>trino-root</artifactId>
<version>{version}</version><type>pom</type><scope>import</scope></dependency></dependencies></dependencyManagement>
<dependencies><dependency><groupId>io.trino</groupId><artifactId>{name}</artifactId><version>{version}</version></dependency></dependencies>
</project>"""
_MAIN = 'public class Main { public static void main(String[] none) { new io.trino.server.Server().start("%s"); } }'
_CONFIG = """coordinator=true
node-scheduler.include-coordinator=true
http-server.http.port={port}
discovery.uri=http://127.0.0.1:{port}
query.max-memory-per-node=200MB
memory.heap-headroom-per-node=200MB
"""
_UTC = ZoneInfo("UTC")
_VALUES: dict[str, Callable[[Any], Any]] = {
    "real": lambda value: struct.unpack("f", struct.pack("f", float(value)))[0],
    "double": float,
    "decimal": Decimal,
    "varbinary": base64.b64decode,
    "date": date.fromisoformat,
    "timestamp": datetime.fromisoformat,
    "timestamp with time zone": lambda value: datetime.fromisoformat(value.removesuffix(" UTC")).replace(tzinfo=_UTC),
}
"""What the JSON of a type means; others are what they are."""


class TrinoMissing(Exception):
    """Trino cannot run here; the text says why."""


class TrinoError(Exception):
    """Trino refused a query; the text is its error."""


def _java() -> Path:
    chosen = os.environ.get("CDC_TEST_TRINO_JAVA")
    homes = [Path(chosen)] if chosen else sorted(Path("/usr/lib/jvm").glob("*-25-*"))
    if not homes:
        raise TrinoMissing("no Java 25 in /usr/lib/jvm; CDC_TEST_TRINO_JAVA names the folder of one")
    return homes[-1]


def _installed(java: Path) -> Path:
    """Install the server and its plugin for Iceberg, once; returns the folder, with ``server`` and ``plugin``."""
    if shutil.which("mvn") is None:
        raise TrinoMissing("the jars come from Maven Central, and there is no Maven")
    folder = Path(os.environ.get("CDC_CACHE", Path.home() / ".cache" / "lakecdc")) / f"trino-{VERSION}"
    if (folder / ".done").exists():
        return folder
    for name, into in (("trino-main", folder / "server"), ("trino-iceberg", folder / "plugin" / "iceberg")):
        into.mkdir(parents=True, exist_ok=True)
        pom = folder / f"{name}.xml"
        pom.write_text(_POM.format(name=name, version=VERSION))
        command = ["mvn", "-q", "-B", "-f", str(pom), "dependency:copy-dependencies", "-DincludeScope=runtime"]
        command += [f"-DoutputDirectory={into}", "-Dmdep.useRepositoryLayout=false"]
        done = subprocess.run(command, env={**os.environ, "JAVA_HOME": str(java)}, capture_output=True, text=True)
        if done.returncode:
            raise TrinoMissing(f"the jars of {name}: {done.stdout[-500:]}")
    with zipfile.ZipFile(folder / "plugin" / "iceberg" / "services.jar", "w") as jar:
        jar.writestr("META-INF/services/io.trino.spi.Plugin", PLUGIN)
    (folder / "Main.java").write_text(_MAIN % VERSION)
    (folder / ".done").touch()
    return folder


@contextmanager
def running(folder: Path, catalog: Mapping[str, str]) -> Iterator[Trino]:
    """Run a server with one catalog, ``lake``, while the block runs.

    Args:
        folder: of its own files; empty.
        catalog: properties of the catalog.

    Raises:
        TrinoMissing: it cannot run here.
    """
    java = _java()
    jars = _installed(java)
    port = free_port()
    (folder / "etc" / "catalog").mkdir(parents=True)
    (folder / "plugin").symlink_to(jars / "plugin")
    (folder / "etc" / "config.properties").write_text(_CONFIG.format(port=port))
    properties = {"connector.name": "iceberg", "fs.local.enabled": "true", "local.location": "/", **catalog}
    (folder / "etc" / "catalog" / "lake.properties").write_text("\n".join(f"{k}={v}" for k, v in properties.items()))
    node = {"environment": "test", "id": "one", "bind-ip": "127.0.0.1", "internal-address": "127.0.0.1", "data-dir": str(folder)}  # fmt: skip
    command = [str(java / "bin" / "java"), "-Xmx1g", "-Dconfig=etc/config.properties"]
    command += [f"-Dnode.{name}={value}" for name, value in node.items()]
    command += ["--sun-misc-unsafe-memory-access=allow", "--add-modules=jdk.incubator.vector"]
    command += ["--enable-native-access=ALL-UNNAMED", "-cp", f"{jars}/server/*", str(jars / "Main.java")]
    log = folder / "log"
    with log.open("wb") as output:
        server = subprocess.Popen(command, cwd=folder, stdout=output, stderr=subprocess.STDOUT)
    try:
        trino = Trino(port)
        deadline = time.monotonic() + 300
        while not trino.is_ready():
            if server.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"Trino did not start: {log.read_text()[-4000:]}")
            time.sleep(0.5)
        yield trino
    finally:
        server.kill()
        server.wait()


class Trino:
    """A client of a server.

    Args:
        port: of its HTTP interface on this machine.
    """

    def __init__(self, port: int) -> None:
        self._port = port

    def is_ready(self) -> bool:
        """Whether it takes queries."""
        try:
            return self._ask("/v1/info")["starting"] is False
        except (OSError, http.client.HTTPException):
            return False

    def rows(self, query: str) -> list[dict[str, Any]]:
        """Return the rows of a query, with the values that Arrow has of the same types.

        Raises:
            TrinoError: it refuses the query.
        """
        answer = self._ask("/v1/statement", query)
        columns, rows = [], []
        while True:
            if "error" in answer:
                raise TrinoError(answer["error"]["message"])
            columns = answer.get("columns", columns)
            rows += answer.get("data", [])
            if "nextUri" not in answer:
                break
            answer = self._ask(urlsplit(answer["nextUri"]).path)
        readers = [_VALUES.get(one["typeSignature"]["rawType"], lambda value: value) for one in columns]
        names = [one["name"] for one in columns]
        return [
            {name: None if value is None else of(value) for name, of, value in zip(names, readers, row, strict=True)}
            for row in rows
        ]

    def _ask(self, path: str, body: str | None = None) -> dict[str, Any]:
        # Clients without this capability get times in milliseconds.
        headers = {
            "X-Trino-User": "test",
            "X-Trino-Time-Zone": "UTC",
            "X-Trino-Client-Capabilities": "PARAMETRIC_DATETIME",
        }
        with closing(http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)) as connection:
            connection.request("POST" if body else "GET", path, body.encode() if body else None, headers)
            response = connection.getresponse()
            text = response.read()
        if response.status != 200:
            raise http.client.HTTPException(f"{path}: {response.status} {text[:200]!r}")
        answer: dict[str, Any] = json.loads(text)
        return answer
