"""py4j ports of the server's Java process, one for each job.

Java keeps every object that it returned to Python until Python releases it. A job that is killed releases nothing. With a port of
its own, all its objects go when the port is closed. Java also goes on with the statement that the killed job waited for: when the port
is closed, py4j interrupts that thread, so that it starts no further work.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Gateway:
    """One port, on the loopback address.

    Args:
        port: of TCP.
        secret: what a client has to send first.
    """

    port: int
    secret: str = field(repr=False)

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables by which pyspark finds the port."""
        return {"PYSPARK_GATEWAY_PORT": str(self.port), "PYSPARK_GATEWAY_SECRET": self.secret}


@contextmanager
def open_gateway(spark: SparkSession) -> Iterator[Gateway]:
    """Open a port for the block; Java releases all objects of its client at the end, and stops its work."""
    of_spark: Any = spark
    context = spark.sparkContext._jsc.sc()  # noqa: SLF001 - no public way to it
    # Spark's own class for this: it opens a port of the kind that pyspark connects to.
    server = of_spark._jvm.org.apache.spark.api.python.Py4JServer(context.conf())  # noqa: SLF001 - as above
    server.start()
    try:
        yield Gateway(int(server.getListeningPort()), str(server.secret()))
    finally:
        server.shutdown()
