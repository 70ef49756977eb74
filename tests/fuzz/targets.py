"""What is fuzzed, and how much of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tests.fuzz import boundaries, images, packed, prepared, readers, transactions, values, walks

Run = Callable[[int, int, int, np.ndarray], None]


@dataclass(frozen=True, slots=True)
class Target:
    """One thing to fuzz.

    Args:
        run: takes a seed, the first case, how many, and an array whose first element it sets to the case that it runs.
        share: of all cases; the kernels run a million cases in the time of a thousand streams.
        at_once: cases of one call; a call cannot be interrupted.
    """

    run: Run
    share: float
    at_once: int = 50_000


TARGETS = {
    "scan": Target(walks.scan, 0.16),
    "locate": Target(walks.locate, 0.1),
    "partial": Target(walks.partial, 0.1),
    "text_rows": Target(walks.text_rows, 0.05),
    "json": Target(values.json, 0.15),
    "members": Target(values.members, 0.03),
    "numbers": Target(values.numbers, 0.04),
    "times": Target(values.times, 0.05),
    "decimals": Target(values.decimals, 0.05),
    "texts": Target(values.texts, 0.05),
    "doubles": Target(values.doubles, 0.03),
    "charsets": Target(values.charsets, 0.02, 20_000),
    "fronts": Target(packed.fronts, 0.04),
    "payload_events": Target(packed.events_inside, 0.06),
    "inflate_buffer": Target(packed.moved_rows, 0.05),
    "control_events": Target(readers.control_events, 0.008, 2_000),
    "documents": Target(images.documents, 0.004, 1_000),
    "diffs": Target(images.differences, 0.002, 400),
    "images": Target(images.images, 0.001, 200),
    "xa": Target(prepared.prepared, 0.002, 400),
    "payload": Target(transactions.payload, 0.001, 200),
    "deflated": Target(transactions.deflated, 0.001, 200),
    "reader": Target(readers.reader, 0.001, 200),
    "boundaries": Target(boundaries.boundaries, 0.004, 400),
}
