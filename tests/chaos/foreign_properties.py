"""Properties that another writer gives lake tables: merges go on, and maintenance says what they keep it from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from tests.chaos.foreign_writers import ForeignWriters
from tests.chaos.lake_side import LakeSide
from tests.chaos.steps import Broken

KEEPS = "gc.enabled"
"""Iceberg removes nothing of a table where it is false."""
PROPERTIES = {
    KEEPS: ("false", "false", "true"),
    **dict.fromkeys(("write.format.default", "write.delete.format.default"), ("orc", "avro", "parquet")),
    **dict.fromkeys(("write.delete.mode", "write.update.mode", "write.merge.mode"), ("copy-on-write", "merge-on-read")),
    **dict.fromkeys(("write.distribution-mode", "write.merge.distribution-mode"), ("none", "hash", "range")),
    "write.metadata.metrics.default": ("none", "counts", "truncate(1)"),
    "write.metadata.compression-codec": ("gzip", "none"),
    "write.metadata.delete-after-commit.enabled": ("true",),
    "write.metadata.previous-versions-max": ("1",),
    "write.parquet.compression-codec": ("gzip", "snappy"),
    "write.target-file-size-bytes": ("1000",),
    "write.delete.granularity": ("partition", "file"),
    "write.merge.isolation-level": ("snapshot", "serializable"),
    "write.object-storage.enabled": ("true", "false"),
    "write.wap.enabled": ("true", "false"),
    "history.expire.max-snapshot-age-ms": ("1",),
    "history.expire.min-snapshots-to-keep": ("1",),
    "commit.retry.num-retries": ("0",),
}
"""Values of each property."""


@dataclass
class ForeignProperties:
    """Sets properties of the lake tables of one source.

    Args:
        lake: its lake.
        foreign: the foreign writers of the run.
        random: the random generator.
        say: takes a line for each property.
    """

    lake: LakeSide
    foreign: ForeignWriters
    random: Random
    say: Callable[[str], None]

    def set_a_property(self) -> None:
        """Set one of a table; what keeps maintenance from its work must be in what it says."""
        table = self.foreign.choose(self.foreign.unchanged())
        if not table:
            return
        name = self.random.choice(list(PROPERTIES))
        value = self.random.choice(PROPERTIES[name])
        self.say(f"a foreign writer sets {name}={value} of {table}")
        self.lake.spark().sql(f"ALTER TABLE {self.lake.name(table)} SET TBLPROPERTIES ('{name}' = '{value}')")
        self.lake.events[f"foreign properties: {name}"] += 1
        if name == KEEPS:
            [done] = self.lake.maintain([table])
            if (f"{KEEPS} is false" in done.in_the_way) != (value == "false"):
                raise Broken(f"maintenance of {table}, whose {KEEPS} is {value}, says {done.in_the_way!r}")
