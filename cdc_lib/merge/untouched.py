"""Which of the lake tables that a merge does not change it looks at; pure.

The cut names the newest snapshot of each table, also if maintenance, a repair or another source wrote it. But a source may have thousands
of tables, and the cost of a merge follows its changes. So a merge looks at a bounded number of them, others each time.
"""

from __future__ import annotations

from collections.abc import Collection
from hashlib import blake2b

AT_ONCE = 500
"""Most tables that one merge looks at without need. Each takes 1.5 ms on a local disk, and some requests to the catalog and S3."""


def looked_at(merge_id: str, lake_tables: Collection[str], due: Collection[str]) -> frozenset[str]:
    """Return the lake tables to look at: the same ones each time that a merge is repeated.

    Args:
        merge_id: of the plan.
        lake_tables: those that the merge does not change.
        due: those that it must look at, such as tables that it does change, for other source tables, and tables that were at fault before.
    """
    tables = set(lake_tables)
    others = sorted(tables.difference(due), key=lambda name: blake2b(f"{merge_id} {name}".encode()).digest())
    return frozenset(others[:AT_ONCE]) | tables.intersection(due)
