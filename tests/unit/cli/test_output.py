"""Values of documents as JSON."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime

from cdc_lib.cli.output import plain
from cdc_lib.model.batch_check import CheckedWindow, DailyChecks


def test_documents_with_days_and_times_are_json():
    """Of a day without its time, of a moment with its zone."""
    at = datetime(2026, 1, 31, 6, tzinfo=UTC)
    checks = DailyChecks("shop", date(2026, 1, 31), ("w1",), (CheckedWindow("w1", at, 3, 0, 0, ""),))
    found = json.loads(json.dumps(plain(checks)))
    assert (found["day"], found["checked"][0]["at"]) == ("2026-01-31", "2026-01-31T06:00:00+00:00")
