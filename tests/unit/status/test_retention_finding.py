"""The finding about the time until the server purges what is drained next, and the statement that fixes it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from cdc_lib.model.position import Position
from cdc_lib.model.retention_forecast import BinlogExpiry, FileTimes
from cdc_lib.model.server_identity import ServerIdentity
from cdc_lib.mysql.binlog_retention import binlog_expiry
from cdc_lib.mysql.preflight import judge
from cdc_lib.mysql.server_facts import ServerFacts
from cdc_lib.plan.retention_forecast import retention_forecast
from cdc_lib.status.retention_check import judge_retention

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
FILES = (("binlog.000007", 1000), ("binlog.000008", 500))
HEAD = Position("binlog.000008", 500)


def facts(flavor="mysql", version=(9, 7, 4), **variables):
    return ServerFacts(ServerIdentity(flavor, "uuid", 1), version, variables, HEAD, "", FILES)


def found(server, *, hours_since_its_end=1.0, rate=None, at="binlog.000007"):
    """The finding about a cursor in the older of two files."""
    keeping = binlog_expiry(server)
    ended = NOW - timedelta(hours=hours_since_its_end)
    made = ended - timedelta(hours=1)
    one = retention_forecast(Position(at, 4), FILES, HEAD, keeping, FileTimes(made, ended, NOW), rate=rate)
    return judge_retention(server, keeping, one, timedelta(hours=24))


@pytest.mark.parametrize(
    ("server", "keeping"),
    [
        (facts(binlog_expire_logs_seconds="3600", expire_logs_days="0"), BinlogExpiry(3600)),
        (facts(binlog_expire_logs_seconds="3600", binlog_expire_logs_auto_purge="OFF"), BinlogExpiry(None)),
        (facts(binlog_expire_logs_seconds="0", expire_logs_days="2"), BinlogExpiry(172_800)),
        (facts(binlog_expire_logs_seconds="0"), BinlogExpiry(None)),
        (facts("mariadb", (10, 5, 0), expire_logs_days="0.5"), BinlogExpiry(43_200)),
        (facts("mariadb", binlog_expire_logs_seconds="0", max_binlog_total_size="0"), BinlogExpiry(None)),
        (
            facts("mariadb", binlog_expire_logs_seconds="0", max_binlog_total_size="4096", binlog_space_limit="4096"),
            BinlogExpiry(None, 4096, "max_binlog_total_size"),
        ),
        (facts(binlog_expire_logs_seconds="9", binlog_space_limit="4096"), BinlogExpiry(9, 4096, "binlog_space_limit")),
    ],
)
def test_the_variables_of_each_server_say_what_it_purges(server, keeping):
    """By age, by size, both or neither; 0 means never."""
    assert binlog_expiry(server) == keeping


def test_a_server_that_does_not_show_its_retention_keeps_nothing_for_sure():
    """It is distinguished from a server that never purges, in both findings."""
    hidden = facts()
    assert "neither binlog_expire_logs_seconds nor expire_logs_days" in binlog_expiry(hidden).unknown
    assert found(hidden).level == "warning"
    assert "it is unknown when the server purges binlog.000007" in found(hidden).what
    assert "it is unknown how long binlog files are kept" in [f.what.split(":")[0] for f in judge(hidden)]


def test_enough_time_is_ok_and_has_no_hint():
    """In days, with what is not drained."""
    finding = found(facts(binlog_expire_logs_seconds="604800"))
    assert (finding.level, finding.hint) == ("ok", "")
    assert finding.what.startswith("in 7.0 days the server may purge binlog.000007, where the drain cursor is")
    assert found(facts(binlog_expire_logs_seconds="0")).level == "ok"


@pytest.mark.parametrize(
    ("server", "statement"),
    [
        (facts(binlog_expire_logs_seconds="7200"), "SET PERSIST binlog_expire_logs_seconds = 612000;"),
        (
            facts("mariadb", (11, 4, 5), binlog_expire_logs_seconds="7200"),
            "SET GLOBAL binlog_expire_logs_seconds = 612000; and the same in the server's configuration file.",
        ),
        (
            facts("mariadb", (10, 5, 9), expire_logs_days="1"),
            "SET GLOBAL expire_logs_days = 8; and the same in the server's configuration file.",
        ),
        (
            facts("mariadb", (11, 4, 5), binlog_expire_logs_seconds="7200", max_binlog_total_size="1600"),
            "SET GLOBAL max_binlog_total_size = 3200; and the same in the server's configuration file.",
        ),
        (
            facts(binlog_expire_logs_seconds="0", binlog_space_limit="1400"),
            "Put binlog_space_limit = 2800 into the server's configuration file, and restart it.",
        ),
    ],
)
def test_a_short_retention_is_warned_of_with_what_lengthens_it(server, statement):
    """Age or size, whichever is sooner, in the words of each server."""
    finding = found(server)
    assert finding.level == "warning"
    assert finding.hint.endswith(statement)


def test_a_day_and_more_is_short_where_catching_up_takes_a_third_of_it():
    """1500 bytes at a hundredth of a byte per second take 42 hours."""
    server = facts(binlog_expire_logs_seconds=str(5 * 86_400))
    assert found(server, rate=1.0).level == "ok"
    finding = found(server, rate=0.01)
    assert finding.level == "warning"
    assert "41.6 hours of work at the rate of the last backlog" in finding.what


def test_a_file_that_is_due_or_purged_is_reported_as_such():
    """The next rotation takes the one; the other is lost already, which is an error."""
    server = facts(binlog_expire_logs_seconds="1800")
    assert found(server).what.startswith("with its next rotation the server may purge binlog.000007")
    purged = found(server, at="binlog.000006")
    assert (purged.level, purged.what.split(",")[0]) == ("error", "the server no longer has binlog.000006")
