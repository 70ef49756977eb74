"""How Java runs a job that lives for seconds: most of what it costs is compiling code, not running it."""

from __future__ import annotations

from cdc_lib.config.work import MergeConfig

QUICK_ROWS = 1_500_000
"""Up to so many rows the quick compiler's code is the cheaper one, compiling counted in: a million inserts from the binlog to a
new lake table took 29 CPU seconds with it and 36 with both, three million 75 and 60 (two cores)."""

SMALL_HEAP_MIB = 4096
"""Up to this heap one thread collects garbage as quickly as many, with half of their memory."""

CODE_CACHE = "-XX:ReservedCodeCacheSize=240m"
"""As much room for compiled code as Java gives both compilers: for the quick one alone it has 48 MB, which some hundred tables'
merges fill; from there on nothing is compiled any more. It is address space until it is used."""

_MIB = {"k": 1 / 1024, "m": 1, "g": 1024, "t": 1024 * 1024}


def java_options(merge: MergeConfig, rows: int) -> list[str]:
    """Return the options of the Java process in which Spark runs; none where it is only the driver of a cluster.

    Merging 100,000 changes into 5 million rows took 25.6 CPU seconds with Java's defaults and 12.0 with these (two cores,
    ``./dev bench lake``): the optimizing compiler works for longer than its code then runs.

    Args:
        merge: the source's settings.
        rows: how many rows the job goes through.
    """
    if not merge.spark_master.startswith("local"):
        return []
    options = [] if rows > QUICK_ROWS else ["-XX:TieredStopAtLevel=1", CODE_CACHE]
    return [*options, *(["-XX:+UseSerialGC"] if _mib(merge.driver_memory) <= SMALL_HEAP_MIB else [])]


def _mib(memory: str) -> float:
    """Return a size as the source file has it, a number and a unit, in MiB."""
    return int(memory[:-1]) * _MIB[memory[-1].lower()]
