"""The days of a source that are complete in the lake, and which of them are announced.

A day is sealed when the lake has every commit up to its midnight and ``sealed_days.delay`` more. Who announces days asks first
what is announced already: a document in the store says so of all days up to one, Airflow's own events of the days after it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime

from cdc_lib.model.cursor import DRAIN, LAKE
from cdc_lib.model.merge_plan import Cut
from cdc_lib.model.sealed_days import AnnouncedDays, days_after, last_ended
from cdc_lib.source import Source
from cdc_lib.status.day_progress import DayProgress, merged_to
from cdc_lib.store.announced_days import announced_days
from cdc_lib.store.complete import last_complete
from cdc_lib.store.cuts import last_cut


@dataclass(frozen=True, slots=True)
class SealedDays:
    """What is known of the days of a source.

    Args:
        cut: the last published cut; None before the first.
        merged_to: the time (UTC) up to which the lake has every commit; None if it is unknown.
        sealed: last day that is complete; None if it is unknown.
        announced: what is noted of the announcements; None before the first look.
    """

    cut: Cut | None
    merged_to: datetime | None
    sealed: date | None
    announced: AnnouncedDays | None

    @property
    def through(self) -> date | None:
        """The last day that is known to be announced, and all before it; None before the first look."""
        return self.announced.through if self.announced is not None else None

    @property
    def waiting(self) -> tuple[date, ...]:
        """The days that are complete and not known to be announced, in order."""
        return days_after(self.through, self.sealed) if self.through is not None and self.sealed is not None else ()

    @property
    def needs_a_look(self) -> bool:
        """Whether a day waits, or nobody has noted yet from which day on they are announced."""
        return bool(self.waiting) or (self.through is None and self.sealed is not None)


def sealed_days_of(source: Source) -> SealedDays:
    """Return what the store knows of the days of a source; the server is not asked."""
    store, name = source.store, source.name
    cut = last_cut(store, name)
    reached = merged_to(DayProgress(cut, source.cursor(DRAIN), source.cursor(LAKE), last_complete(store, name)))
    rule, known = source.config.sealed_days, announced_days(store, name)
    sealed = last_ended(reached - rule.delay, rule.zone) if reached is not None else None
    return SealedDays(cut, reached, sealed, known)


def day_ended(source: Source, now: datetime) -> bool:
    """Whether a day has ended that is not known to be announced; False before the first look at the days.

    Args:
        source: the source; its server is not asked.
        now: by this machine's clock (UTC).
    """
    known, rule = announced_days(source.store, source.name), source.config.sealed_days
    return known is not None and known.through < last_ended(now - rule.delay, rule.zone)
