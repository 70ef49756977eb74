"""How Java runs a job that ends soon: compiled by the quick compiler alone, and with one thread that collects garbage."""

from __future__ import annotations

from cdc_lib.config.work import MergeConfig

QUICK_ROWS = 1_500_000
"""Up to so many rows only the quick compiler (C1) runs: the optimizing one (C2) needs CPU time before its code is of use.
``./dev bench lake end-to-end`` prints the CPU seconds."""

SMALL_HEAP_MIB = 4096
"""Up to this heap one thread collects garbage (``-XX:+UseSerialGC``)."""

CODE_CACHE = "-XX:ReservedCodeCacheSize=240m"
"""As much room for compiled code as Java gives both compilers. For one alone it has 48 MB (Oracle's guide of the ``java`` command,
``-XX:ReservedCodeCacheSize``); when that is full, nothing is compiled any more. It is address space until it is used."""

_MIB = {"k": 1 / 1024, "m": 1, "g": 1024, "t": 1024 * 1024}


def java_options(merge: MergeConfig, rows: int) -> list[str]:
    """Return the options of the Java process in which Spark runs; none where it is only the driver of a cluster.

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
