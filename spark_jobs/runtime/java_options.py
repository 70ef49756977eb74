"""Java options for short jobs: only the C1 compiler, and the serial garbage collector."""

from __future__ import annotations

from cdc_lib.model.spark_master import is_in_one_process

QUICK_ROWS = 1_500_000
"""Up to this row count only C1 compiles: the optimizing compiler (C2) costs more CPU time than its code saves.
``./dev bench lake end-to-end`` prints the CPU seconds."""

SMALL_HEAP_MIB = 4096
"""Up to this heap size the serial garbage collector is used (``-XX:+UseSerialGC``)."""

CODE_CACHE = "-XX:ReservedCodeCacheSize=240m"
"""Java's default code cache for both compilers. With C1 alone the default is 48 MB (Oracle's guide of the ``java`` command,
``-XX:ReservedCodeCacheSize``); when it is full, compilation stops. Only address space is reserved until it is used."""

QUICK = ("-XX:TieredStopAtLevel=1", CODE_CACHE)
"""Only C1 compiles. For a Spark server too: planning one small table runs so much code that C2 is still busy after hundreds of
merges. ``./dev bench lake server`` prints the CPU seconds."""

_MIB = {"k": 1 / 1024, "m": 1, "g": 1024, "t": 1024 * 1024}


def java_options(master: str, memory: str, rows: int) -> list[str]:
    """Return the options of Spark's Java process; empty for the driver of a cluster.

    Args:
        master: where Spark runs its tasks.
        memory: of Java, such as ``2g``.
        rows: number of rows that the job reads.
    """
    if not is_in_one_process(master):
        return []
    options = [] if rows > QUICK_ROWS else QUICK
    return [*options, *(["-XX:+UseSerialGC"] if _mib(memory) <= SMALL_HEAP_MIB else [])]


def _mib(memory: str) -> float:
    """Return a size in MiB from a number with a unit, as in the source file."""
    return int(memory[:-1]) * _MIB[memory[-1].lower()]
