"""Engines that read lake tables, and the layout that each reads rightly. Pure: facts with their sources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from cdc_lib.model.layout import DEFAULT_LAYOUT, FormatVersion, Layout, WriteMode

ReaderName = Literal[
    "athena", "bigquery", "clickhouse", "databricks", "duckdb", "other", "pyiceberg", "redshift", "snowflake", "spark", "starrocks",
    "trino",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """What an engine reads.

    Args:
        source: who says so: an address, or the test of this project.
        date: when that was so.
        format_version: the highest of Iceberg's that it reads.
        write_mode: the mode with which it reads every row.
        since: the version or the way from which on it does; empty for any.
    """

    source: str
    date: str
    format_version: FormatVersion = 3
    write_mode: WriteMode = "merge_on_read"
    since: str = ""

    def faults(self, layout: Layout) -> Iterator[str]:
        """Yield what of a layout the engine does not read."""
        if layout.format_version > self.format_version:
            yield f"format_version {layout.format_version}: it reads {self.format_version}"
        if self.write_mode == "copy_on_write" and layout.write_mode != self.write_mode:
            yield f"write_mode merge_on_read: it needs {self.write_mode}"


_ENGINES, _DUCKDB = (f"tests/integration/spark/test_{name}.py" for name in ("engines", "duckdb_reader"))
_AWS = "https://docs.aws.amazon.com/prescriptive-guidance/latest/apache-iceberg-on-aws/table-spec-v3.html"
_NOVEMBER = "2026-11-28"

READERS: dict[ReaderName, EngineFacts] = {
    "athena": EngineFacts(_AWS, _NOVEMBER, 2),
    "bigquery": EngineFacts(
        "https://docs.cloud.google.com/lakehouse/docs/use-iceberg-v3-binary-deletion-vectors", _NOVEMBER, since="Lakehouse runtime catalog",
    ),
    "clickhouse": EngineFacts("https://clickhouse.com/docs/engines/table-engines/integrations/iceberg", _NOVEMBER, 2),
    "databricks": EngineFacts("https://docs.databricks.com/iceberg/iceberg-v3", _NOVEMBER, since="Runtime 18.0"),
    "duckdb": EngineFacts(_DUCKDB, _NOVEMBER, write_mode="copy_on_write"),
    "other": EngineFacts("any engine reads format 2", _NOVEMBER, 2),
    "pyiceberg": EngineFacts(_ENGINES, _NOVEMBER, since="0.12.0"),
    "redshift": EngineFacts(_AWS, _NOVEMBER, 2),
    "snowflake": EngineFacts(
        "https://docs.snowflake.com/en/release-notes/2026/other/2026-05-07-iceberg-v3-ga.html", "2026-05-07"
    ),
    "spark": EngineFacts(_ENGINES, _NOVEMBER, since="4.1.4"),
    "starrocks": EngineFacts("https://www.starrocks.io/blog/announcing-starrocks-version-3.1", "2023-08-30", 2, since="3.1"),
    "trino": EngineFacts(_ENGINES, _NOVEMBER, since="483"),
}  # fmt: skip
"""By the name that ``lake.readers`` has. The page ``docs/reference/readers.md`` is generated from them."""


def layout_for(readers: Iterable[ReaderName]) -> Layout:
    """Return the fastest layout that all of some engines read; the default one without engines."""
    known = [READERS[name] for name in readers]
    return Layout(
        format_version=min((one.format_version for one in known), default=DEFAULT_LAYOUT.format_version),
        write_mode="copy_on_write" if any(one.write_mode == "copy_on_write" for one in known) else "merge_on_read",
    )


def unread(layout: Layout, readers: Iterable[ReaderName]) -> Iterator[str]:
    """Yield, for each of some engines, what of a layout it does not read, with the source of that fact."""
    for name in readers:
        known = READERS[name]
        for fault in known.faults(layout):
            yield f"{name} does not read {fault} ({known.source}, {known.date})"
