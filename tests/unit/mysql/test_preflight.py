"""What the doctor says of a server's settings."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_lib.model.position import Position
from cdc_lib.model.server_identity import ServerIdentity
from cdc_lib.mysql.preflight import judge
from cdc_lib.mysql.server_facts import ServerFacts

GOOD = {
    "binlog_format": "ROW",
    "binlog_row_image": "FULL",
    "binlog_row_metadata": "FULL",
    "binlog_expire_logs_seconds": "2592000",
}


def facts_with(**variables):
    return ServerFacts(
        ServerIdentity("mysql", "uuid", 1), (9, 7, 0), {**GOOD, **variables}, Position("binlog.000001", 4), "", ()
    )


def findings(**variables):
    return list(judge(facts_with(**variables)))


def test_preflight_finds_nothing_wrong_with_a_good_server():
    """All is ok."""
    assert {finding.level for finding in findings()} == {"ok"}


@pytest.mark.parametrize(
    ("image", "options", "levels"),
    [
        ("FULL", "PARTIAL_JSON", []),
        ("FULL_NODUP", "", []),
        ("NOBLOB", "", ["warning"]),
        ("MINIMAL", "PARTIAL_JSON", ["warning", "warning"]),
        ("", "", ["error"]),
    ],
)
def test_images_without_all_columns_are_reported_with_their_effect(image, options, levels):
    """A warning does not keep a source from being planned; what is not known does."""
    found = [f for f in findings(binlog_row_image=image, binlog_row_value_options=options) if f.level != "ok"]
    assert [finding.level for finding in found] == levels
    assert all(finding.hint == "SET PERSIST binlog_row_image = 'FULL';" for finding in found)


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("ON", "continues exactly, by GTIDs"),
        ("ON_PERMISSIVE", "by GTIDs where all transactions have one; else a failover goes back by"),
        ("OFF_PERMISSIVE", ": a failover goes back by failover.fallback_interval"),
        ("OFF", ": a failover goes back by failover.fallback_interval"),
    ],
)
def test_the_mode_of_gtids_is_shown_with_what_it_means_for_a_failover(mode, words):
    """No mode is an error: all of them are read."""
    (found,) = [finding for finding in findings(gtid_mode=mode) if "gtid_mode" in finding.what]
    assert found.level == "ok"
    assert words in found.what


@pytest.mark.parametrize("name", ["log_replica_updates", "log_slave_updates"])
@pytest.mark.parametrize(("replicates", "level"), [(False, "ok"), (True, "error"), (None, "error")])
def test_replicated_changes_outside_the_binlog_are_an_error_unless_nothing_is_replicated(name, replicates, level):
    """What is not known counts as a replica."""
    facts = replace(facts_with(**{name: "OFF"}), replicates=replicates)
    (found,) = [finding for finding in judge(facts) if name in finding.what]
    assert found.level == level
    assert [finding.level for finding in judge(facts)].count("error") == (level == "error")
    assert ("GRANT SLAVE MONITOR" in found.hint) == (replicates is None)
