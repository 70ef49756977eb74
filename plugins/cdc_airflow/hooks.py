"""From a source file to a pipeline, with the log-in from Airflow's connection or the environment."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseHook
from airflow.sdk.log import mask_secret

from cdc_airflow.connections import credentials_of, store_keys_of
from cdc_airflow.spark_connections import JobSpark, spark_of
from cdc_lib.config import (
    Credentials,
    SourceConfig,
    load_source,
    mask_key_from_environment,
)
from cdc_lib.config.credentials import handed_on, store_keys_handed_on
from cdc_lib.errors import ConfigError

if TYPE_CHECKING:
    from cdc_lib.pipeline import Pipeline


class CdcHook(BaseHook):
    """What the tasks of one source work with.

    The file is read again by each task, so that a task that is retried sees a corrected file. Secrets are handed to
    Airflow's masker before anything is done with them.

    Args:
        source_file: the source's YAML file.
        conn_id: id of the connection with the source's log-in; over ``server.connection`` of the file.
        store_conn_id: id of the connection with the store's keys; over ``store.connection`` of the file.
        spark_conn_id: id of the connection with the Spark of its jobs; over ``merge.connection`` of the file.
    """

    def __init__(
        self,
        source_file: str | Path,
        conn_id: str | None = None,
        store_conn_id: str | None = None,
        spark_conn_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.source_file = Path(source_file)
        self.conn_id = conn_id
        self.store_conn_id = store_conn_id
        self.spark_conn_id = spark_conn_id

    @cached_property
    def config(self) -> SourceConfig:
        """What the file says, with the connections that the task names.

        Raises:
            ConfigError: with everything that is wrong in it.
        """
        config = load_source(self.source_file)
        if self.conn_id:
            if config.server.rds_iam is not None:
                raise ConfigError(
                    f"the task names the connection {self.conn_id}, and server.rds_iam makes the password",
                    hint="Leave out one of them.",
                    source=config.source,
                )
            server = config.server.model_copy(update={"connection": self.conn_id})
            config = config.model_copy(update={"server": server})
        if self.store_conn_id:
            store = config.store.model_copy(update={"connection": self.store_conn_id})
            config = config.model_copy(update={"store": store})
        if self.spark_conn_id:
            merge = config.merge.model_copy(update={"connection": self.spark_conn_id})
            config = config.model_copy(update={"merge": merge})
        return config

    @cached_property
    def credentials(self) -> Credentials:
        """The source's log-in: of the connection that the file names, else from the environment.

        Raises:
            ConfigError: the connection has no user or no password, or the variable is not set.
        """
        return credentials_of(self.config.server, self.config.addresses)

    @cached_property
    def mask_key(self) -> str:
        """The key of the hashes: of the connection that the file names, else from the environment; may be empty.

        Raises:
            ConfigError: the connection has no password, or the variable is not set.
        """
        config = self.config
        if not config.hashes or config.mask_key_connection is None:
            key = mask_key_from_environment(config)
        else:
            key = self.get_connection(config.mask_key_connection).password or ""
            if not key:
                raise ConfigError(
                    f"the Airflow connection {config.mask_key_connection} has no password",
                    hint="The key of the hashes is its password: add it under Admin → Connections.",
                    source=config.source,
                )
        if key:
            mask_secret(key)
        return key

    @cached_property
    def spark(self) -> JobSpark:
        """Where the jobs of the source run: as the connection says that the file names, else as the file does.

        Raises:
            ConfigError: there is no such connection, or it names neither a Spark server nor a master.
        """
        return spark_of(self.config.merge)

    def handed_on(self) -> dict[str, str]:
        """Return the variables by which a job gets the secrets that only Airflow knows."""
        hop = self.config.server.hop
        connections = (self.config.server.connection, self.config.mask_key_connection, hop and hop.connection)
        if not any(connections):
            return self.store_handed_on()
        return {**handed_on(replace(self.credentials, mask_key=self.mask_key)), **self.store_handed_on()}

    def store_handed_on(self) -> dict[str, str]:
        """Return the variables by which a job that asks nothing of the source gets the keys that only Airflow knows."""
        keys = store_keys_of(self.config)
        return store_keys_handed_on(keys) if keys is not None else {}

    def pipeline(self) -> Pipeline:
        """Open the pipeline with the source's log-in and the key of its hashes."""
        return self._open(replace(self.credentials, mask_key=self.mask_key))

    def lake_pipeline(self) -> Pipeline:
        """Open the pipeline for what reads and writes the store alone: no log-in to the source goes along."""
        return self._open(Credentials("", ""))

    def _open(self, credentials: Credentials) -> Pipeline:
        # Numba, Arrow and boto3 come with it: time that the parsing of DAG files must not take.
        from cdc_lib.pipeline import Pipeline

        store = self.config.store
        for name in store.secret_names:
            if os.environ.get(name):
                mask_secret(os.environ[name])
        return Pipeline.open(self.config, credentials, store_keys_of(self.config))
