from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from cdc_airflow.airflow_versions import AirflowFailException
from cdc_airflow.operators.second_decoder import DecodeAgainOperator
from cdc_lib.model.batch_check import BatchReport, WindowCheck
from cdc_lib.model.position import Position
from cdc_lib.verify.batches.daily import DailyVerification

AT = datetime(2026, 1, 1, tzinfo=UTC)
START, STOP = Position("binlog.000001", 4), Position("binlog.000001", 400)
PURGED = WindowCheck("a", START, STOP, skipped="binlog purged")


@pytest.mark.parametrize(
    ("windows", "fails"),
    [((), False), ((PURGED,), True), ((PURGED, WindowCheck("b", START, STOP, equal=1)), False)],
)
def test_a_day_of_which_no_window_was_compared_fails_the_task(
    sources: Path, monkeypatch: pytest.MonkeyPatch, windows: tuple[WindowCheck, ...], fails: bool
):
    """A day whose windows were all compared before has none left, and succeeds."""
    path = sources / "shop.yaml"
    path.write_text(f"{path.read_text()}verify: {{daily_windows: 2}}\n")
    monkeypatch.setenv("CDC_TEST_PASSWORD", "secret")
    monkeypatch.setattr(DailyVerification, "run", lambda _: BatchReport("shop", "", AT, AT, windows))
    task = DecodeAgainOperator(task_id="decode_again", source_file=str(path))
    if not fails:
        assert list(task.execute({})) == [one.window for one in windows]
        return
    with pytest.raises(AirflowFailException, match="no window was compared") as failed:
        task.execute({})
    assert "binlog purged" in str(failed.value)
