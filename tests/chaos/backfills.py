"""What somebody asks to be merged again, at random: a time that is stored, some tables, the lake tables or tables beside them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from random import Random

from cdc_lib.model.backfill import BackfillRequest, Period


def any_backfill(random: Random, times: Sequence[datetime], tables: Sequence[str]) -> BackfillRequest:
    """Draw one.

    Args:
        random: decides.
        times: commit times of changes that are stored.
        tables: that the lake has.
    """
    since = random.choice([None, *times]) if random.random() < 0.8 else None
    later = [one for one in times if since is None or one > since]
    until = random.choice(later) if later and random.random() < 0.5 else None
    chosen = random.sample(tables, min(len(tables), random.randint(1, 3)))
    return BackfillRequest(Period(since, until), tuple(chosen), "copy" if random.random() < 0.25 else "live")


def to_text(wanted: BackfillRequest) -> str:
    """Return it as a job has it."""
    times = [time.isoformat() if time is not None else None for time in (wanted.period.since, wanted.period.until)]
    return json.dumps([*times, wanted.tables, wanted.into])


def from_text(text: str) -> BackfillRequest:
    """Read it back."""
    since, until, tables, into = json.loads(text)
    period = Period(*(datetime.fromisoformat(time) if time else None for time in (since, until)))
    return BackfillRequest(period, tuple(tables), into)
