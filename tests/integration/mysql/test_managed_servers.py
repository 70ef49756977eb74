"""Managed and foreign servers. None of them runs here: each is a stand-in, and the docstring of its test says what it is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_lib.config import TablesConfig
from cdc_lib.doctor.examine import examine_server
from cdc_lib.errors import UnsupportedServer
from cdc_lib.model.cursor import DRAIN
from cdc_lib.mysql.binlog_retention import binlog_expiry, lengthen
from cdc_lib.mysql.preflight import judge
from cdc_lib.mysql.rds_retention import RdsRetention
from cdc_lib.status.overview import findings_of
from tests.harness.binlog.capture import SOURCE, Capture
from tests.harness.lake.merging import drain_all
from tests.harness.servers import MariaDbServer


@pytest.mark.parametrize(("version", "name"), [("8.0.11-TiDB-v7.5.0", "TiDB"), ("8.0.30-Vitess", "Vitess")])
def test_plan_and_doctor_refuse_a_foreign_server_before_anything_is_written(version, name, tmp_path):
    """A stand-in: a MariaDB that is started with the version text of the other server."""
    with MariaDbServer(settings={"version": version}, cdc_password="secret") as server:
        capture = Capture(server, "shop", tmp_path)
        with pytest.raises(UnsupportedServer, match=f"the server is {name}"):
            capture.pipeline.plan(by="test")
        found = examine_server(capture.config.server, TablesConfig(include=["shop.*"]), capture.credentials)
    assert {finding.level for finding in found} == {"error"}
    assert all(f"the server is {name}" in finding.what for finding in found)
    assert not (tmp_path / "store").exists() or not list((tmp_path / "store").rglob("*.json"))


@pytest.fixture
def rds(mysql_server, mysql_database, tmp_path):
    """A source over a stand-in of Amazon RDS: a MySQL with a table mysql.rds_configuration, made as the documents show it."""
    mysql_server.execute(
        "CREATE TABLE mysql.rds_configuration (name VARCHAR(100) NOT NULL, value VARCHAR(100), description VARCHAR(300))"
    )
    mysql_server.execute(
        "INSERT INTO mysql.rds_configuration VALUES ('binlog retention hours', NULL, ''), ('target delay', '0', '')"
    )
    mysql_server.execute("CREATE TABLE t (id INT PRIMARY KEY)", database=mysql_database)
    try:
        yield Capture(mysql_server, mysql_database, tmp_path, start="latest")
    finally:
        mysql_server.execute("DROP TABLE mysql.rds_configuration")


def test_the_retention_of_rds_comes_from_its_table_and_not_from_the_variable(rds):
    """A stand-in of RDS: see the fixture. NULL purges at once, which a variable of 30 days hides; a number counts as hours."""
    drain_all(rds)
    assert rds.facts().rds == RdsRetention(None)
    (found,) = [finding for finding in judge(rds.facts()) if finding.level != "ok"]
    assert "'binlog retention hours' is NULL" in found.what
    assert found.hint == "CALL mysql.rds_set_configuration('binlog retention hours', 168);"
    assert any("no step needs SUPER" in finding.what for finding in judge(rds.facts()))
    warned = [f for f in findings_of(rds.pipeline) if "where the drain cursor is" in f.what]
    assert [(f.level, "rds_set_configuration" in f.hint) for f in warned] == [("warning", True)]
    rds.server.execute("UPDATE mysql.rds_configuration SET value = '72' WHERE name = 'binlog retention hours'")
    assert binlog_expiry(rds.facts()).seconds == 72 * 3600
    assert any("for 3.0 days" in finding.what for finding in judge(rds.facts()))
    assert rds.pipeline.cursors.load(SOURCE, DRAIN) is not None


def test_a_user_who_may_not_read_the_table_is_told_so_at_rds_alone(mysql_server, mysql_database, tmp_path):
    """Stand-ins of the variables. Any other server has no such table, and a hidden one there means nothing."""
    facts = Capture(mysql_server, mysql_database, tmp_path).facts()
    assert facts.rds is None
    hidden = replace(facts, rds=RdsRetention(None, hidden=True, most_hours=2160))
    (found,) = [finding for finding in judge(hidden) if finding.level != "ok"]
    assert "may not read mysql.rds_configuration" in found.what
    assert "GRANT SELECT ON mysql.rds_configuration" in found.hint
    assert lengthen(hidden, 3600 * 24 * 90).endswith("2160);")
