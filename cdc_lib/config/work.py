"""``drain:``, ``snapshot:`` and ``merge:`` how much work is done at once."""

from __future__ import annotations

from pydantic import ByteSize, Field

from cdc_lib.config.base import Section, Text


class DrainConfig(Section):
    """How the binlog is cut into windows and written as batches."""

    max_window_bytes: ByteSize = Field(
        default=ByteSize(256 * 1024**2),
        ge=1,
        description="size such as 256MiB: a longer backlog becomes several windows",
    )
    max_windows: int = Field(default=16, ge=1, le=1000, description="1 to 1000: windows planned at once")
    parallelism: int = Field(default=2, ge=1, le=256, description="1 to 256: units drained at the same time")
    row_group_rows: int = Field(default=131_072, ge=1, description="rows of a Parquet row group, at least 1")
    compression_level: int = Field(default=1, ge=1, le=22, description="1 to 22: zstd level of the Parquet files")


class SnapshotConfig(Section):
    """How tables are read by SELECT."""

    chunk_rows: int = Field(default=100_000, ge=1, description="rows of one chunk, at least 1")


class MergeConfig(Section):
    """The Spark application that merges batches into the lake."""

    spark_master: str = Field(
        default="local[2]", min_length=1, description="local[2], spark://host:7077, yarn, k8s://..."
    )
    driver_memory: str = Field(
        default="2g", pattern=r"^[1-9][0-9]*[kmgtKMGT]$", description="a number and k, m, g or t: 2g"
    )
    parallelism: int = Field(default=4, ge=1, le=256, description="1 to 256: tables merged at the same time")
    conf: dict[str, Text] = Field(default_factory=dict, description="further Spark settings, name: value")
