"""Which masters Spark takes: where a job's own Spark, or that of a Spark server, runs its tasks."""

from __future__ import annotations

import re

MASTERS = "local[N], spark://host:port, yarn or k8s://https://host:port"
"""What a user chooses from."""

_COUNT = r"([1-9]\d*|\*)"
_IN_ONE_PROCESS = re.compile(rf"local(\[{_COUNT}(\s*,\s*\d+)?\])?")
_OTHERS = re.compile(
    r"local-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]"  # of Spark's own tests
    r"|spark://[^,\s/@]+:\d+(,[^,\s/@]+:\d+)*"
    r"|yarn"
    r"|k8s://(https?://)?[^\s:/]+(:\d+)?(/\S*)?"
)


def is_in_one_process(master: str) -> bool:
    """Whether driver and tasks share one Java process, on one machine."""
    return _IN_ONE_PROCESS.fullmatch(master) is not None


def master_problem(master: str) -> str:
    """Return what is wrong with a master, in words for its user; empty if Spark takes it.

    Spark itself says it in a trace of Java, after seconds.
    """
    if is_in_one_process(master) or _OTHERS.fullmatch(master):
        return ""
    if master.startswith("sc://"):
        return (
            "Spark Connect (sc://) is not supported, because a merge needs Iceberg's Java API; "
            f"name a Spark server (cdc spark serve) in merge.spark_server, or a master: {MASTERS}"
        )
    return f"must be {MASTERS}; the address of a Spark server belongs in merge.spark_server"
