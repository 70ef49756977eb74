"""Tasks do not fail because a table is quarantined: they warn of it."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from cdc_airflow.operators import AckDrainOperator
from cdc_lib.model.position import Position
from cdc_lib.model.quarantine import Fault, QuarantineRecord
from cdc_lib.model.results import AckResult
from cdc_lib.model.table_name import TableName

START, STOP = Position("binlog.000007", 4), Position("binlog.000007", 99)


def test_an_ack_that_quarantines_a_table_warns(capsys):
    """By name, place and reason, with the way back; what it returns is fit for an XCom."""
    fault = Fault(Position("binlog.000007", 50), "unknown_event", "a statement whose effect is not shown")
    record = QuarantineRecord(
        TableName("shop", "orders"), 1, START, START, STOP, fault, None, datetime(2026, 11, 21, tzinfo=UTC)
    )
    result = AckResult("drain", START, STOP, 1, 0, 0, (record,))
    summary = AckDrainOperator(task_id="ack_drain", source_file="shop.yaml").summary(result)
    text = "".join(line for line in capsys.readouterr().out.splitlines() if "warning" in line)
    assert "shop.orders is quarantined; its lake table is as of binlog.000007:4" in text
    assert "binlog.000007:50" in text
    assert "cdc quarantine resume" in text
    assert json.loads(json.dumps(summary))["quarantined"] == ["shop.orders"]
