"""Servers that speak the protocol of MySQL and have no binlog that can be read."""

from __future__ import annotations

import pytest

from cdc_lib.errors import UnsupportedServer
from cdc_lib.mysql.unsupported import foreign_server, refuse_unreadable, unreadable_binlog


@pytest.mark.parametrize(
    ("version", "comment", "name", "instead"),
    [
        ("8.0.11-TiDB-v7.5.0", "TiDB Server (Apache License 2.0)", "TiDB", "TiCDC"),
        ("5.7.25-TiDB-v6.1.0", "", "TiDB", "TiCDC"),
        ("8.0.30-Vitess", "Version: 17.0.0", "Vitess (also PlanetScale)", "VStream"),
        ("8.0.21-vitess-19.0.4", "", "Vitess (also PlanetScale)", "VStream"),
        ("8.0.34", "PlanetScale", "Vitess (also PlanetScale)", "VStream"),
    ],
)
def test_tidb_and_vitess_are_refused_by_name_with_what_to_use_instead(version, comment, name, instead):
    """The texts are those of the documents of both; no such server ran."""
    with pytest.raises(UnsupportedServer, match="is not supported") as refused:
        refuse_unreadable({"version": version, "version_comment": comment})
    assert name in refused.value.message
    assert instead in refused.value.hint


@pytest.mark.parametrize(
    "version", ["9.7.4", "8.0.15-log", "11.4.5-MariaDB-log", "5.5.5-10.11.18-MariaDB-deb12", "8.0.36-28"]
)
def test_mysql_mariadb_and_percona_are_not_refused(version):
    """Their versions name none of the others."""
    assert foreign_server(version, "MySQL Community Server - GPL") is None
    assert unreadable_binlog({"version": version, "innodb_read_only": "ON", "binlog_storage_engine": ""}) is None


def test_an_innodb_binlog_of_mariadb_is_refused_with_the_setting_that_avoids_it():
    """A stand-in of the variable: no server of 12.3 ran. Such a binlog has GTIDs and no positions."""
    what, hint = unreadable_binlog({"version": "12.3.1-MariaDB", "binlog_storage_engine": "innodb"})
    assert "binlog_storage_engine is innodb" in what
    assert "Remove binlog_storage_engine" in hint


@pytest.mark.parametrize("marker", ["aurora_version", "aurora_server_id"])
def test_a_reader_of_aurora_is_refused_and_its_writer_is_not(marker):
    """A stand-in of the variables: no Aurora ran."""
    reader = {"version": "8.0.28", marker: "3.04.0", "innodb_read_only": "ON"}
    with pytest.raises(UnsupportedServer, match="reader of an Aurora cluster") as refused:
        refuse_unreadable(reader)
    assert "cluster endpoint" in refused.value.hint
    refuse_unreadable({**reader, "innodb_read_only": "OFF"})
