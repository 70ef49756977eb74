"""What a run asks of each table, it asks again only when the table was defined again."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from cdc_lib.errors import ConfigError
from cdc_lib.status.overview import findings_of
from cdc_lib.store import layout
from cdc_lib.store.observations import last_tables
from tests.harness.binlog.capture import SOURCE, Capture, row_metadata
from tests.harness.binlog.general_log import statements_of

TABLES = 20


@pytest.fixture(params=["FULL", "MINIMAL"])
def capture(mariadb_server, mariadb_database, tmp_path, request):
    """A source with some tables, one of them with a foreign key that the binlog does not show, that plans have looked at."""
    with row_metadata(mariadb_server, request.param):
        capture = Capture(mariadb_server, mariadb_database, tmp_path, start="latest")
        capture.execute("CREATE TABLE parent (id INT PRIMARY KEY, v INT)")
        capture.execute("CREATE TABLE child (id INT PRIMARY KEY, p INT REFERENCES parent (id))")
        capture.execute("ALTER TABLE child ADD CONSTRAINT f FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE")
        for number in range(TABLES):
            capture.execute(f"CREATE TABLE t{number} (id INT PRIMARY KEY, p INT)")
        capture.execute("DO SLEEP(1.1)")
        run(capture)
        yield capture


def run(capture):
    """Plan, drain and acknowledge; returns the manifests."""
    units = capture.pipeline.plan(by="test")
    for unit in units:
        capture.pipeline.drain(unit)
    capture.pipeline.ack_drain(by="test")
    return [capture.manifest(layout.manifest_key(unit)) for unit in units if hasattr(unit, "stop")]


def asked(capture):
    """Return the tables that a run with a window asks the server about, by their names."""
    capture.execute("INSERT INTO parent SELECT COALESCE(MAX(id), 0) + 1, 1 FROM parent")
    texts = statements_of(capture.server, lambda: run(capture))
    names = ["parent", "child", *(f"t{number}" for number in range(TABLES))]
    shown = [text for text in texts if not text.startswith(("INSERT", "TRUNCATE"))]
    return {name for name in names if any(f"`{name}`" in text or f"'{name}'" in text for text in shown)} - {"parent"}


def children(capture):
    """Return the tables that foreign keys change, as the last plan left them."""
    return {key.child[1] for key in last_tables(capture.store, SOURCE).cascades.keys}


def test_a_run_asks_about_no_table_that_is_as_it_was(capture):
    """Neither the plan nor the window; the foreign keys of before are kept."""
    assert asked(capture) == set()
    assert children(capture) == {"child"}


def test_a_run_asks_about_the_tables_that_were_defined_again(capture):
    """A new foreign key is found, one that is dropped is forgotten, and the others are kept."""
    capture.execute("ALTER TABLE t3 ADD CONSTRAINT g FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE")
    assert asked(capture) == {"t3"}
    assert children(capture) == {"child", "t3"}
    capture.execute("ALTER TABLE child DROP FOREIGN KEY f")
    capture.execute("DO SLEEP(1.1)")
    run(capture)
    assert children(capture) == {"t3"}
    run(capture)
    assert asked(capture) == set()


def test_a_window_knows_a_foreign_key_that_the_plan_found(capture):
    """A row is deleted by it right after it was made: its table is read again."""
    capture.execute("INSERT INTO parent VALUES (7, 7)")
    capture.execute("INSERT INTO t5 VALUES (1, 7)")
    run(capture)
    capture.execute("ALTER TABLE t5 ADD CONSTRAINT h FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE")
    capture.execute("DELETE FROM parent WHERE id = 7")
    (manifest,) = run(capture)
    assert f"{capture.database}.t5" in [one.table for one in manifest.quarantined]


def test_doctor_asks_about_no_table_that_a_plan_has_looked_at(capture):
    """It sends SHOW CREATE TABLE only for those that were defined again since."""
    capture.execute("ALTER TABLE t3 ADD COLUMN q INT")
    texts = statements_of(capture.server, partial(findings_of, capture.pipeline))
    assert {text.rpartition(".")[2] for text in texts if text.startswith("SHOW CREATE TABLE")} == {"`t3`"}


@pytest.fixture
def shaped(any_server, database, tmp_path):
    """A source with a rule about the columns of all tables."""
    rules = [{"tables": f"{database}.*", "exclude": ["secret"]}]
    shaped = Capture(any_server, database, tmp_path, start="latest", columns=rules)
    for name in ("parent", *(f"t{number}" for number in range(TABLES))):
        shaped.execute(f"CREATE TABLE {name} (id INT PRIMARY KEY, v INT, secret INT)")
    shaped.execute("DO SLEEP(1.1)")
    run(shaped)
    return shaped


def planned(capture):
    """Return the tables whose columns a plan reads."""
    texts = statements_of(capture.server, lambda: capture.pipeline.plan(by="test"))
    names = [f"t{number}" for number in range(TABLES)]
    return {name for name in names if any(f"`{name}`" in text or f"'{name}'" in text for text in texts)}


def test_the_rules_of_a_file_are_checked_once_for_each_definition(shaped):
    """Those of another file are checked for all tables."""
    assert planned(shaped) == set()
    shaped.execute("ALTER TABLE t3 ADD COLUMN w INT")
    assert planned(shaped) == {"t3"}
    rules = ({"tables": f"{shaped.database}.*", "exclude": ["secret", "w"]},)
    config = type(shaped.config).model_validate({**shaped.config.model_dump(), "columns": rules})
    shaped.pipeline = replace(shaped.pipeline, config=config)
    assert planned(shaped) == {f"t{number}" for number in range(TABLES)}


def test_a_table_that_does_not_fit_is_refused_at_each_plan(shaped):
    """It is not noted as checked."""
    rules = ({"tables": f"{shaped.database}.t1", "exclude": ["id"]},)
    config = type(shaped.config).model_validate({**shaped.config.model_dump(), "columns": rules})
    shaped.pipeline = replace(shaped.pipeline, config=config)
    for _ in range(2):
        with pytest.raises(ConfigError, match="id"):
            shaped.pipeline.plan(by="test")
