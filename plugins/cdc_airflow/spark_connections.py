"""Connections that say where the Spark jobs of a source run: on a Spark server, or in a Spark of their own on a master."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from airflow.sdk.log import mask_secret

from cdc_airflow.connection_answer import TestedConnectionHook
from cdc_airflow.connection_fields import checked, lacking, named_connection
from cdc_airflow.connection_forms import with_form
from cdc_airflow.get_provider_info import SPARK_TYPE
from cdc_lib.config.work import MergeConfig, SparkServerConfig
from cdc_lib.errors import ConfigError
from cdc_lib.model.spark_master import MASTERS

if TYPE_CHECKING:
    from airflow.sdk import Connection

    from cdc_lib.config import SourceConfig
    from cdc_lib.jobs.client import SparkServer
    from cdc_lib.model.finding import Finding

MASTER_TYPE = "spark"
"""Airflow's own type of connections to Spark."""

SERVER_TYPES = (SPARK_TYPE, "http", "https")

TOKEN = "CDC_CONNECTION_SPARK_TOKEN"
"""Name under which the client of a server finds the token of a connection; the environment never has it."""

_TAKE = (
    "Take a connection to a Spark server (https://HOST with a port, the token as its password), or one of the type Spark whose host, "
    f"with its port, is {MASTERS}."
)


@with_form
class SparkServerConnectionHook(TestedConnectionHook):
    """A connection of the type "CDC Spark server": its address and token, and a test that asks it for its status."""

    default_conn_name = "cdc_spark_default"
    conn_type = SPARK_TYPE
    hook_name = "CDC Spark server"

    def _findings(self, connection: Connection) -> Iterable[Finding]:
        """Ask the server for its status."""
        from cdc_lib.doctor.spark_check import check_spark_server

        spark = _server_of(connection)
        assert spark.server is not None
        return check_spark_server(spark.server, spark.environ)


@dataclass(frozen=True, slots=True)
class JobSpark:
    """Where the Spark jobs of a source run; its text never shows a token.

    Args:
        server: the Spark server that runs them; None if each starts a Spark of its own.
        master: where that Spark runs its tasks; None for ``merge.spark_master`` of the source file.
        environ: has the token of the server.
    """

    server: SparkServerConfig | None
    master: str | None = None
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)

    def applied_to(self, config: SourceConfig) -> SourceConfig:
        """Return a source whose file would say so itself."""
        master = self.master if self.master is not None else config.merge.spark_master
        merge = config.merge.model_copy(update={"spark_server": self.server, "spark_master": master})
        return config.model_copy(update={"merge": merge})

    def client(self) -> SparkServer | None:
        """Return a client of the server; None without a server.

        Raises:
            ConfigError: the variable with its token is not set.
        """
        from cdc_lib.jobs.client import SparkServer

        return None if self.server is None else SparkServer(self.server, self.environ)


def spark_of(merge: MergeConfig) -> JobSpark:
    """Return where jobs run: as the connection says that the source file names, else as the file itself does.

    Raises:
        ConfigError: there is no such connection, or it names neither a Spark server nor a master.
    """
    if merge.connection is None:
        return JobSpark(merge.spark_server, None, os.environ)
    connection = named_connection(merge.connection)
    if connection.conn_type == MASTER_TYPE:
        return JobSpark(None, _master_of(connection))
    if connection.conn_type in SERVER_TYPES:
        return _server_of(connection)
    raise ConfigError(
        f"the Airflow connection {connection.conn_id} of the type {connection.conn_type} names no Spark", hint=_TAKE
    )


def _server_of(connection: Connection) -> JobSpark:
    """Return the server of a connection, whose host may begin with ``https://``; a schema says the same, as in Airflow's type HTTP."""
    if not connection.host:
        raise lacking(connection, "host")
    scheme, separator, host = connection.host.rpartition("://")
    scheme = scheme if separator else connection.schema or ("https" if connection.conn_type == "https" else "http")
    if scheme not in ("http", "https"):
        raise ConfigError(
            f"the Airflow connection {connection.conn_id} names no Spark server: {connection.host}", hint=_TAKE
        )
    url = f"{scheme}://{host.rstrip('/')}{f':{connection.port}' if connection.port else ''}"
    given = {"url": url, "token_env": TOKEN if connection.password else None}
    server = checked(SparkServerConfig, given, connection)
    if not connection.password:
        return JobSpark(server)
    mask_secret(connection.password)
    return JobSpark(server, environ={TOKEN: connection.password})


def _master_of(connection: Connection) -> str:
    """Return the master of a connection of Airflow's type Spark, as Airflow's own operators read it."""
    if not connection.host:
        raise lacking(connection, "host")
    master = f"{connection.host}:{connection.port}" if connection.port else connection.host
    return checked(MergeConfig, {"spark_master": master}, connection).spark_master
