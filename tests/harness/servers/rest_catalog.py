"""The REST catalog of Iceberg's own tests: its tables are in a SQLite file, and it writes their metadata itself."""

from __future__ import annotations

import tempfile
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.error import URLError

import pyspark

from spark_jobs.runtime.jars import jar_paths
from tests.harness.servers.process import ServerProcess, free_port
from tests.harness.servers.s3 import S3Server

SPARK_JARS = Path(str(pyspark.__file__)).parent / "jars"


class RestCatalogServer:
    """Runs in a block.

    Args:
        warehouse: root of the tables, such as ``file:///folder`` or ``s3://bucket/lake``.
        properties: further ones of the catalog that it has its tables in, such as ``s3.endpoint``.
        environment: of its process, such as the keys of S3.
    """

    def __init__(
        self, warehouse: str, properties: Mapping[str, str] | None = None, environment: Mapping[str, str] | None = None
    ) -> None:
        self.warehouse = warehouse
        self.port = free_port()
        self._properties = dict(properties or {})
        self._environment = dict(environment or {})
        self._folder = tempfile.TemporaryDirectory(prefix="lakecdc-rest-")
        self._process: ServerProcess | None = None

    @classmethod
    def on_s3(cls, server: S3Server, *, gives_keys: bool = False) -> Self:
        """Have the tables in a new bucket.

        Args:
            server: of the bucket.
            gives_keys: whether clients get the keys of the server with each table.
        """
        properties = {
            "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
            "s3.endpoint": server.endpoint,
            "s3.path-style-access": "true",
            "client.region": server.region,
            "s3.access-key-id": server.access_key,
            "s3.secret-access-key": server.secret_key,
            "include-credentials": str(gives_keys).lower(),
        }
        return cls(f"s3://{server.make_bucket('rest')}/lake", properties)

    @property
    def url(self) -> str:
        """What ``lake.uri`` names."""
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        folder = Path(self._folder.name)
        settings = {
            "uri": f"jdbc:sqlite:{folder}/catalog.db?busy_timeout=30000",
            "warehouse": self.warehouse,
            "rest.port": str(self.port),
            **self._properties,
        }
        jars = [*jar_paths(["rest-catalog", "sqlite", "s3"]), SPARK_JARS / "*"]
        java = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", ":".join(map(str, jars))]
        command = [*java, "org.apache.iceberg.rest.RESTCatalogServer"]
        environment = {_variable(name): value for name, value in settings.items()} | self._environment
        self._process = ServerProcess("rest catalog", command, folder / "rest-catalog.log", environment)
        self._process.wait_until_ready(self._answers)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._process is not None:
            self._process.stop()
        self._folder.cleanup()

    def _answers(self) -> bool:
        with (
            suppress(URLError, ConnectionError),
            urllib.request.urlopen(f"http://127.0.0.1:{self.port}/v1/config", timeout=5),
        ):
            return True
        return False


def _variable(name: str) -> str:
    """Return the environment variable of a catalog property: ``io-impl`` is ``CATALOG_IO__IMPL``."""
    return "CATALOG_" + name.replace("-", "__").replace(".", "_").upper()
