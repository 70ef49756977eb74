"""Random backfill requests: a period with stored batches, some tables, into lake tables or copies."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from random import Random

from cdc_lib.model.backfill import BackfillRequest, Period


def any_backfill(random: Random, times: Sequence[datetime], tables: Sequence[str]) -> BackfillRequest:
    """Draw a backfill request.

    Args:
        random: the random generator.
        times: commit times of changes that are stored.
        tables: source tables that the lake has.
    """
    since = random.choice([None, *times]) if random.random() < 0.8 else None
    later = [time for time in times if since is None or time > since]
    until = random.choice(later) if later and random.random() < 0.5 else None
    chosen = random.sample(tables, min(len(tables), random.randint(1, 3)))
    return BackfillRequest(Period(since, until), tuple(chosen), "copy" if random.random() < 0.25 else "live")


def to_text(request: BackfillRequest) -> str:
    """Return a request as the text of :attr:`Job.argument`."""
    times = [time.isoformat() if time is not None else None for time in (request.period.since, request.period.until)]
    return json.dumps([*times, request.tables, request.into])


def from_text(text: str) -> BackfillRequest:
    """Parse the result of :func:`to_text`."""
    since, until, tables, into = json.loads(text)
    period = Period(*(datetime.fromisoformat(time) if time else None for time in (since, until)))
    return BackfillRequest(period, tuple(tables), into)
