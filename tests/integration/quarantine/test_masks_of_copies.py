"""What the source file masks of a table is stored in clear under no name: RENAME, copies, and columns with other names."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest

from cdc_lib import requests
from cdc_lib.errors import MaskLost
from cdc_lib.schema_history.versions import Histories
from tests.harness.binlog.capture import Capture
from tests.harness.shop.quarantine import cursor, rounds
from tests.harness.store.stored_values import everything

SECRET = "someone@secret.example"

MOVES = {
    "a RENAME": ["RENAME TABLE customers TO bak"],
    "an ALTER": ["ALTER TABLE customers RENAME TO bak"],
    "an ALTER with another name of the column": ["ALTER TABLE customers CHANGE mail m VARCHAR(80), RENAME TO bak"],
    "two RENAMEs": ["RENAME TABLE customers TO between_", "RENAME TABLE between_ TO bak"],
    "one RENAME by way of another name": ["RENAME TABLE customers TO between_, between_ TO bak"],
    "a swap": ["CREATE TABLE bak (id INT PRIMARY KEY, mail VARCHAR(80))",
               "RENAME TABLE customers TO third, bak TO customers, third TO bak"],
    "a table left to tools": ["RENAME TABLE customers TO _customers_old", "RENAME TABLE _customers_old TO bak"],
    "LIKE": ["CREATE TABLE bak LIKE customers", "INSERT INTO bak SELECT * FROM customers"],
    "LIKE in brackets": ["CREATE TABLE bak (LIKE customers)", "INSERT INTO bak SELECT * FROM customers"],
    "LIKE of LIKE": ["CREATE TABLE between_ LIKE customers", "CREATE TABLE bak LIKE between_",
                     "INSERT INTO bak SELECT * FROM customers"],
    "a SELECT": ["CREATE TABLE bak (PRIMARY KEY (id)) AS SELECT * FROM customers"],
    "a partition": ["CREATE TABLE bak (id INT PRIMARY KEY, mail VARCHAR(80))",
                    "ALTER TABLE customers PARTITION BY RANGE (id) (PARTITION p VALUES LESS THAN (9))",
                    "ALTER TABLE customers EXCHANGE PARTITION p WITH TABLE bak"],
}  # fmt: skip


def capturing(server, database, folder, **settings):
    """Capture `customers`, whose mail is masked, `other`, and every table that comes later but `between_` and `third`."""
    masks = [{"tables": f"{database}.customers", "columns": ["mail"], "mask": "redact"}]
    tables = {"include": [f"{database}.*"], "exclude": [f"{database}.third"]}
    capture = Capture(server, database, folder, **{"masks": masks, "tables": tables, **settings})
    capture.execute("CREATE TABLE customers (id INT PRIMARY KEY, mail VARCHAR(80))")
    capture.execute("CREATE TABLE other (id INT PRIMARY KEY)")
    capture.execute(f"INSERT INTO customers VALUES (1, '{SECRET}')")
    rounds(capture, 2)
    return capture


def quarantined(capture):
    return {record.table.pair[1]: record.fault for record in cursor(capture).quarantined_tables}


@pytest.mark.parametrize("start", ["snapshot", "latest"])
@pytest.mark.parametrize("how", MOVES)
def test_rows_of_a_masked_table_are_stored_in_clear_under_no_other_name(any_server, database, tmp_path, how, start):
    """Neither the old rows, which a snapshot would read, nor new ones; the other tables go on, with every `on_error`."""
    capture = capturing(any_server, database, tmp_path, start=start)
    for statement in MOVES[how]:
        capture.execute(statement)
    capture.execute(f"INSERT INTO bak VALUES (2, '{SECRET}')")
    capture.execute("INSERT INTO other VALUES (7)")
    before = cursor(capture).position
    rounds(capture, 3)
    assert before < cursor(capture).position
    assert SECRET not in everything(capture.store)
    fault = quarantined(capture)["bak"]
    assert fault.code == "mask_lost"
    assert "mail" in fault.reason
    assert f"{database}.bak" in fault.hint
    assert "other" not in quarantined(capture)


OVER = {
    "a swap": ["RENAME TABLE customers TO third, bak TO customers, third TO bak"],
    "a swap in steps": ["RENAME TABLE customers TO third", "RENAME TABLE bak TO customers", "RENAME TABLE third TO bak"],
    "a RENAME": ["DROP TABLE bak", "RENAME TABLE customers TO bak"],
    "a partition": ["ALTER TABLE customers PARTITION BY RANGE (id) (PARTITION p VALUES LESS THAN (9))",
                    "ALTER TABLE customers EXCHANGE PARTITION p WITH TABLE bak"],
    "a SELECT": ["DROP TABLE bak", "CREATE TABLE bak (PRIMARY KEY (id)) AS SELECT * FROM customers"],
}  # fmt: skip


def planned_with_bak(server, database, folder, seconds):
    """Make tables, some seconds apart, whose snapshots are planned and not read; a second is the least that servers tell apart."""
    masks = [{"tables": f"{database}.customers", "columns": ["mail"], "mask": "redact"}]
    tables = {"include": [f"{database}.*"], "exclude": [f"{database}.third"]}
    capture = Capture(server, database, folder, masks=masks, tables=tables, snapshot={"chunk_rows": 1})
    time.sleep(1 - time.time() % 1)
    capture.execute("CREATE TABLE customers (id INT PRIMARY KEY, mail VARCHAR(80))")
    time.sleep(seconds)
    capture.execute("CREATE TABLE bak (id INT PRIMARY KEY, mail VARCHAR(80))")
    capture.execute(f"INSERT INTO customers VALUES (1, '{SECRET}'), (2, '{SECRET}'), (3, '{SECRET}')")
    capture.execute("INSERT INTO bak VALUES (1, 'public'), (2, 'public'), (3, 'public')")
    time.sleep(1.1)
    return capture, {unit.table: unit for unit in capture.pipeline.plan(by="test")}


@pytest.mark.parametrize("seconds", [0, 1.1], ids=["made at once", "made later"])
@pytest.mark.parametrize("chunks", [0, 1])
@pytest.mark.parametrize("how", OVER)
def test_a_snapshot_that_was_planned_before_reads_no_masked_rows(any_server, database, tmp_path, how, chunks, seconds):
    """Neither its first chunk nor a later one; a later plan, which knows the statement, changes nothing."""
    capture, units = planned_with_bak(any_server, database, tmp_path, seconds)
    if chunks:
        capture.pipeline.drain(units["bak"], until=datetime.now(UTC))
    for statement in OVER[how]:
        capture.execute(statement)
    capture.pipeline.drain(units["bak"])
    assert SECRET not in everything(capture.store)
    capture.pipeline.ack_drain(by="test")
    assert quarantined(capture)["bak"].code == "mask_lost"
    rounds(capture, 3)
    assert SECRET not in everything(capture.store)
    assert quarantined(capture)["bak"].code == "mask_lost"


@pytest.mark.parametrize("how", OVER)
def test_a_masked_table_alone_that_was_defined_again_is_known_to_the_next_plan(any_server, database, tmp_path, how):
    """An EXCHANGE PARTITION leaves the time of the other table as it is."""
    capture, _ = planned_with_bak(any_server, database, tmp_path, 1.1)
    for statement in OVER[how]:
        capture.execute(statement)
    time.sleep(1.1)
    rounds(capture, 3)
    assert SECRET not in everything(capture.store)
    assert quarantined(capture)["bak"].code == "mask_lost"


def test_the_binlog_is_not_read_for_tables_that_stayed_as_they_were(any_server, database, tmp_path, monkeypatch):
    capture, units = planned_with_bak(any_server, database, tmp_path, 1.1)
    monkeypatch.setattr(Histories, "statements", None)
    assert [capture.pipeline.drain(unit).rows for unit in units.values()] == [3, 3]


@pytest.mark.parametrize("how", ["a RENAME", "LIKE", "a SELECT"])
def test_a_copy_that_the_file_masks_goes_on(any_server, database, tmp_path, how):
    """Once the file covers it, `cdc quarantine resume` brings it, masked."""
    capture = capturing(any_server, database, tmp_path)
    for statement in MOVES[how]:
        capture.execute(statement)
    rounds(capture, 2)
    assert quarantined(capture)["bak"].code == MaskLost.code
    masks = [{"tables": f"{database}.{name}", "columns": ["mail"], "mask": "redact"} for name in ("customers", "bak")]
    capture = Capture(any_server, database, tmp_path, masks=masks)
    requests.resume_table(capture.pipeline, f"{database}.bak", by="test")
    rounds(capture, 2)
    assert quarantined(capture).keys() <= {"between_"}
    text = everything(capture.store)
    assert SECRET not in text
    tasks = [task for task in cursor(capture).snapshots if task.table == "bak" and task.chunks]
    assert [row["mail"] for task in tasks for chunk in capture.chunks(task) for row in capture.rows(chunk, "bak")] == [
        None
    ]


def test_a_table_that_gets_its_name_back_goes_on(any_server, database, tmp_path):
    """Its rule covers it again, and so does a pattern that covers both names."""
    masks = [{"tables": f"{database}.cust*", "columns": ["mail*"], "mask": "redact"}]
    capture = capturing(any_server, database, tmp_path, masks=masks)
    capture.execute("RENAME TABLE customers TO custom")
    capture.execute(f"INSERT INTO custom VALUES (2, '{SECRET}')")
    rounds(capture, 2)
    capture.execute("RENAME TABLE custom TO customers")
    capture.execute(f"INSERT INTO customers VALUES (3, '{SECRET}')")
    rounds(capture, 2)
    assert quarantined(capture) == {}
    assert SECRET not in everything(capture.store)


@pytest.mark.parametrize("on_error", ["stop", "quarantine"])
@pytest.mark.parametrize("start", ["snapshot", "latest"])
def test_a_masked_column_with_another_name_stops_its_table_alone(any_server, database, tmp_path, on_error, start):
    """Named exactly, or by a pattern that its new name does not match; also when the table moves afterwards."""
    masks = [{"tables": f"{database}.{name}", "columns": [columns], "mask": "redact"}
             for name, columns in (("customers", "mail"), ("wide", "mail*"), ("bak", "mail*"))]  # fmt: skip
    capture = capturing(any_server, database, tmp_path, masks=masks, on_error=on_error, start=start)
    capture.execute("CREATE TABLE wide (id INT PRIMARY KEY, mail VARCHAR(80))")
    rounds(capture, 2)
    for table in ("customers", "wide"):
        capture.execute(f"ALTER TABLE {table} CHANGE mail m VARCHAR(80)")
        capture.execute(f"INSERT INTO {table} VALUES (2, '{SECRET}')")
    capture.execute("INSERT INTO other VALUES (7)")
    before = cursor(capture).position
    rounds(capture, 2)
    assert before < cursor(capture).position
    assert {name: fault.code for name, fault in quarantined(capture).items()} == dict.fromkeys(
        ("customers", "wide"), "mask_lost"
    )
    capture.execute("RENAME TABLE wide TO bak")
    capture.execute(f"INSERT INTO bak VALUES (3, '{SECRET}')")
    rounds(capture, 2)
    assert "bak" in quarantined(capture)
    assert SECRET not in everything(capture.store)
