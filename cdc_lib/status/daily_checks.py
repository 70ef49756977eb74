"""What the comparisons of windows with a second decoder say of a source: pure."""

from __future__ import annotations

from collections.abc import Iterator

from cdc_lib.model.batch_check import DailyChecks
from cdc_lib.model.finding import Finding
from cdc_lib.model.pace import counted


def daily_findings(source: str, checks: DailyChecks | None) -> Iterator[Finding]:
    """Yield a finding for each window whose batch differs from what the second decoder read.

    Args:
        source: its name.
        checks: the windows that were compared; None before the first.
    """
    for one in checks.checked if checks is not None else ():
        if one.differing:
            yield Finding(
                "error",
                f"the batch of window {one.window} differs from the binlog in {counted(one.differing, 'change')}, found {one.at:%Y-%m-%d %H:%M:%S} UTC",
                f"cdc verify windows {source} --window {one.window} shows them. Report it: one of the decoders is wrong.",
            )
