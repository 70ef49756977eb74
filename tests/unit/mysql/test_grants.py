"""Grants as servers write them."""

from __future__ import annotations

import pytest

from cdc_lib.mysql.grants import missing_grants, parse_grants

ME = "'cdc'@'%'"
REPLICATION = "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO `cdc`@`%`"


def missing(*lines, flavor="mysql", tables=(("shop", "orders"),)):
    """The statements that a user with these grants lacks."""
    return list(missing_grants(parse_grants(lines), ME, flavor, tables))


def test_a_user_without_grants_is_given_all_statements():
    """Ready to be run."""
    assert missing("GRANT USAGE ON *.* TO `cdc`@`%`") == [
        f"GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO {ME};",
        f"GRANT SELECT ON `shop`.`orders` TO {ME};",
    ]


@pytest.mark.parametrize(
    "line",
    [
        "GRANT SELECT ON *.* TO `cdc`@`%`",
        "GRANT ALL PRIVILEGES ON `shop`.* TO `cdc`@`%` WITH GRANT OPTION",
        "GRANT INSERT, SELECT ON `shop`.* TO `cdc`@`%`",
        "GRANT SELECT ON `sh%`.* TO `cdc`@`%`",
        "GRANT SELECT ON `shop`.`orders` TO `cdc`@`%`",
    ],
)
def test_a_privilege_may_come_from_any_level(line):
    """Server, database, pattern of databases, table."""
    assert missing(REPLICATION, line) == []


@pytest.mark.parametrize(
    "line",
    [
        "GRANT SELECT ON `shop2`.* TO `cdc`@`%`",
        "GRANT SELECT ON `sh\\_p`.* TO `cdc`@`%`",
        "GRANT SELECT (`id`) ON `shop`.`orders` TO `cdc`@`%`",
        "GRANT SELECT ON `shop`.`orders2` TO `cdc`@`%`",
        "GRANT SELECT ON *.* TO `cdc`@`%`\nREVOKE SELECT ON `shop`.* FROM `cdc`@`%`",
        "GRANT PROXY ON ``@`` TO `cdc`@`%`",
        "GRANT `reader`@`%` TO `cdc`@`%`",
    ],
)
def test_a_privilege_on_something_else_does_not_count(line):
    """Columns alone, other names, and what was revoked of a database."""
    assert missing(REPLICATION, *line.splitlines()) == [f"GRANT SELECT ON `shop`.`orders` TO {ME};"]


def test_mariadb_has_another_name_for_the_binlog_privilege():
    """REPLICATION CLIENT is its older name."""
    select = (
        "GRANT SELECT, REPLICATION SLAVE ON *.* TO `cdc`@`%` IDENTIFIED BY PASSWORD '*94BDCEBE19083CE2A1F959FD02F964C7'"
    )
    assert missing(select, flavor="mariadb") == [f"GRANT BINLOG MONITOR ON *.* TO {ME};"]
    assert missing(select, "GRANT BINLOG MONITOR ON *.* TO `cdc`@`%`", flavor="mariadb") == []


def test_names_are_quoted_in_statements():
    """A name may hold anything."""
    assert missing(REPLICATION, tables=[("a`b", None)]) == [f"GRANT SELECT ON `a``b`.* TO {ME};"]
