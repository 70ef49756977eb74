"""``drain:``, ``snapshot:`` and ``merge:`` sizes and parallelism of the work."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from pydantic import ByteSize, Field, field_validator

from cdc_lib.config.base import Duration, Section, Text, VariableName
from cdc_lib.model.spark_master import master_problem


class DrainConfig(Section):
    """Planning windows, and writing them as batches."""

    max_window_bytes: ByteSize = Field(
        default=ByteSize(256 * 1024**2),
        ge=1,
        description="size such as 256MiB: a longer backlog becomes several windows",
    )
    max_windows: int = Field(default=16, ge=1, le=1000, description="1 to 1000: windows planned at once")
    parallelism: int = Field(default=2, ge=1, le=256, description="1 to 256: units drained at the same time")
    row_group_rows: int = Field(default=131_072, ge=1, description="rows of a Parquet row group, at least 1")
    pool: str | None = Field(
        default=None,
        min_length=1,
        description="name of the Airflow pool of the drains, the same for sources of one server",
    )
    compression_level: int = Field(default=1, ge=1, le=22, description="1 to 22: zstd level of the Parquet files")


class SnapshotConfig(Section):
    """Reading tables by SELECT."""

    chunk_rows: int = Field(default=100_000, ge=1, description="rows of one chunk, at least 1")
    run_for: Duration = Field(
        default=timedelta(minutes=15),
        description="a duration such as 15m: how long a run reads snapshots before it merges the other tables; 0s: to their end",
    )
    range_bytes: ByteSize = Field(
        default=ByteSize(1024**3),
        ge=0,
        description="size such as 1GiB: a table of at least two of these is divided into ranges of its key, which are read side "
        "by side; 0: no table",
    )
    max_ranges: int = Field(default=16, ge=1, le=256, description="1 to 256: ranges of one table at most")

    lock_tables: bool = Field(
        default=False,
        description="true: a table of MySQL whose changes are kept one by one (without a key, append, scd2) and that changes all the time "
        "is locked for a moment, LOCK TABLES … READ, before it is read",
    )

    def until(self, began: datetime) -> datetime | None:
        """Return when a run that began at a time ends reading snapshots; None if it reads them to their end."""
        return began + self.run_for if self.run_for else None


class SparkServerConfig(Section):
    """A Spark server (``cdc spark serve``) that runs the jobs of a source, so that none of them starts Java."""

    url: str = Field(
        pattern=r"^(https?://[^/\s]+/?|unix:///\S+)$",
        description="its address: http://spark.internal:8998, or unix:///run/cdc/spark.sock",
    )
    token_env: VariableName | None = Field(
        default=None, description="environment variable with the token that the server asks for"
    )


class MergeConfig(Section):
    """The Spark application that merges batches into the lake."""

    spark_server: SparkServerConfig | None = Field(
        default=None,
        description="url, token_env: the server that runs the jobs; spark_master and driver_memory are then not used",
    )

    spark_master: str = Field(
        default="local[2]",
        min_length=1,
        description="local[2], spark://host:7077, yarn or k8s://https://host:6443; not Spark Connect (sc://): see spark_server",
    )
    driver_memory: str = Field(
        default="2g", pattern=r"^[1-9][0-9]*[kmgtKMGT]$", description="a number and k, m, g or t: 2g"
    )
    parallelism: int | None = Field(
        default=None,
        ge=1,
        le=256,
        description="1 to 256: tables merged at the same time; without it as many as Spark has cores, 4 to 32",
    )
    pool: str | None = Field(
        default=None, min_length=1, description="name of the Airflow pool of the tasks that run Spark"
    )
    connection: str | None = Field(
        default=None,
        min_length=1,
        description="id of an Airflow connection of the type CDC Spark server or HTTP, whose server runs the jobs, or Spark, which names "
        "their master; outside Airflow spark_server and spark_master count",
    )
    conf: dict[str, Text] = Field(default_factory=dict, description="further Spark settings, name: value")
    application_url: str | None = Field(
        default=None,
        pattern=r"^https?://[^\s@]*\{id\}[^\s@]*$",
        description="address of the page that the history server or the master has of an application, with {id} for the "
        "application's id, and without a password: http://history.internal:18080/history/{id}/",
    )

    @field_validator("spark_master")
    @classmethod
    def _master(cls, value: str) -> str:
        if problem := master_problem(value):
            raise ValueError(problem)
        return value

    @field_validator("conf")
    @classmethod
    def _no_second_master(cls, value: dict[str, str]) -> dict[str, str]:
        """Refuse the settings of Spark that would take the place of ``spark_master``."""
        if wrong := sorted({"spark.master", "spark.remote"} & set(value)):
            raise ValueError(f"{' and '.join(wrong)} must not be set here; set merge.spark_master")
        return value

    @field_validator("spark_server", mode="before")
    @classmethod
    def _none_without_address(cls, value: Any) -> Any:
        """Take ``url: ${NAME:-}`` without a value for no server, so that the environment can leave it out."""
        return None if isinstance(value, dict) and value.get("url", "") is None else value
