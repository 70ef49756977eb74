"""Which files of a merge's batches are read for keys, and which keys of them are compared: pure."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

READ_ROWS = 100_000
"""Changes of one table whose keys are read at most; of more, those of some files, chosen at random."""


def chosen_files(rows: Sequence[int], random: Random, most: int = READ_ROWS) -> list[int]:
    """Return the numbers of the files to read, in ascending order: all of them, or random ones until enough rows are among them.

    Args:
        rows: number of rows of each file.
        random: chooses.
        most: rows that are enough.
    """
    if sum(rows) <= most:
        return list(range(len(rows)))
    shuffled = random.sample(range(len(rows)), len(rows))
    chosen, total = [], 0
    for number in shuffled:
        if total >= most:
            break
        chosen.append(number)
        total += rows[number]
    return sorted(chosen)


def chosen_keys(count: int, most: int, random: Random) -> list[int]:
    """Return the numbers of the keys to compare, in ascending order: all of them, or ``most`` at random.

    Args:
        count: of the keys.
        most: that are compared.
        random: chooses.
    """
    return list(range(count)) if count <= most else sorted(random.sample(range(count), most))
