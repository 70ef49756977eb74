"""Compares some windows of each day through the second decoder: at random, and the same ones when a day is tried again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from itertools import islice
from random import Random

from cdc_lib.backfill.archive import acknowledged
from cdc_lib.model.batch_check import KEPT_CHECKS, BatchReport, CheckedWindow, DailyChecks, WindowCheck
from cdc_lib.model.cursor import DRAIN
from cdc_lib.store.batch_checks import change_daily_checks, daily_checks
from cdc_lib.store.manifests import load_manifest
from cdc_lib.store.windows import stored_windows
from cdc_lib.verify.batches.windows import BatchVerification, Choice, is_replayable, unreachable

LOOKED_AT = 200
"""Windows whose manifests are read at most to find some that can be decoded again."""


@dataclass(frozen=True, slots=True)
class DailyVerification:
    """Compares the windows of a day.

    Args:
        verification: compares windows.
        count: of the windows of a day: ``verify.daily_windows``.
        now: returns the time (UTC).
    """

    verification: BatchVerification
    count: int
    now: Callable[[], datetime] = lambda: datetime.now(UTC)

    def run(self) -> BatchReport:
        """Compare today's windows, without those that are found equal already, and keep the results.

        Raises:
            CdcError: see :meth:`cdc_lib.verify.batches.windows.BatchVerification.run`.
        """
        verification, day = self.verification, self.now().date()
        store, source = verification.source.store, verification.source.name
        drain = verification.source.required(DRAIN)
        keys = {w.key.split("/")[-2]: w.key for w in acknowledged(stored_windows(store, source), drain)}
        known = daily_checks(store, source)
        if known is None or known.day != day:
            found = tuple(islice(self._comparable(keys, known, day), self.count))
            known = change_daily_checks(store, source, lambda before: chosen(before, source, day, found))
        names = known.to_do if known is not None else ()
        windows = tuple(name for name in names if name in keys)
        if not windows:
            now = self.now()
            return BatchReport(source, "", now, now, ())
        return verification.run(Choice(last=None, windows=windows), self._keep)

    def _comparable(self, keys: dict[str, str], known: DailyChecks | None, day: date) -> Iterator[str]:
        """Yield windows that were not compared yet and that the server or their raw archive can give again, at random."""
        source = self.verification.source
        facts = source.facts()
        for name in shuffled(sorted(keys), known, source.name, day)[:LOOKED_AT]:
            manifest = load_manifest(source.store, keys[name])
            window = manifest.window
            if window is None:
                continue
            if is_replayable(manifest, window) or not unreachable(manifest, window, facts):
                yield name

    def _keep(self, check: WindowCheck) -> None:
        one = CheckedWindow(
            check.window, self.now(), check.equal, check.differing, check.uncomparable, check.skipped
        )  # fmt: skip

        def change(before: DailyChecks | None) -> DailyChecks:
            if before is None:
                raise AssertionError(check.window)
            others = [other for other in before.checked if other.window != one.window]
            return replace(before, checked=(*others, one)[-KEPT_CHECKS:])

        change_daily_checks(self.verification.source.store, self.verification.source.name, change)


def shuffled(names: Sequence[str], known: DailyChecks | None, source: str, day: date) -> list[str]:
    """Return those of sorted windows that were not compared yet, in an order that source and day decide."""
    compared = {one.window for one in known.checked} if known is not None else set()
    rest = [name for name in names if name not in compared]
    Random(f"{source} {day}").shuffle(rest)  # noqa: S311 - a sample, no secret
    return rest


def chosen(before: DailyChecks | None, source: str, day: date, windows: tuple[str, ...]) -> DailyChecks:
    """Return the document with the windows of a day; if another task has chosen them, its choice stays."""
    if before is not None and before.day == day:
        return before
    return DailyChecks(source, day, windows, before.checked if before is not None else ())
