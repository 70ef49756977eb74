"""What a server's error number is about."""

from __future__ import annotations

import pymysql
import pytest

from cdc_lib.config import ServerConfig
from cdc_lib.errors import SourceError, SourceUnavailable, TableUnreadable, UnsupportedServer
from cdc_lib.model.refusals import refused_for
from cdc_lib.mysql.connection import translated

SERVER = ServerConfig(host="db", port=3306, user="cdc", password_env="UNUSED")


@pytest.mark.parametrize("number", [1142, 1143, 1168, 1814, 1194, 1932, 1356, 1146])
def test_an_error_about_a_table_names_it_and_no_other_try_helps(number):
    """The driver calls most of them operational, as it does a broken connection."""
    found = translated(pymysql.err.OperationalError(number, "no"), SERVER, "shop.orders")
    assert isinstance(found, TableUnreadable)
    assert (found.retryable, found.context["table"]) == (False, "shop.orders")
    assert "reached" not in str(found)


@pytest.mark.parametrize("number", [1205, 1213, 1412, 3572, 3024, 1969])
def test_refusals_by_a_lock_or_a_running_change_are_retryable(number):
    """The table is named, and the task is tried again."""
    found = refused_for("shop.orders", number, "wait")
    assert isinstance(found, SourceUnavailable)
    assert found.context["table"] == "shop.orders"
    assert "reached" not in str(found)


@pytest.mark.parametrize("number", [2003, 2006, 2013, 1040, 1053, 1158, 1927, 4031])
def test_an_error_of_the_connection_is_not_about_the_table(number):
    """Whatever was asked when it came."""
    found = translated(pymysql.err.OperationalError(number, "gone"), SERVER, "shop.orders")
    assert isinstance(found, SourceUnavailable)
    assert "cannot be reached" in str(found)
    assert isinstance(refused_for("shop.orders", number, "gone"), SourceUnavailable)


def test_an_error_about_no_table_is_the_servers_answer():
    """The server can be reached; a refused login is reported as such."""
    found = translated(pymysql.err.OperationalError(1105, "odd"), SERVER)
    assert type(found) is SourceError
    assert "answers with an error: odd (1105)" in str(found)
    assert isinstance(translated(pymysql.err.OperationalError(1045, "denied"), SERVER), UnsupportedServer)
    assert isinstance(translated(OSError("no route"), SERVER), SourceUnavailable)
