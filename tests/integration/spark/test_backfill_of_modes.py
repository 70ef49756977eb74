"""Tables that keep deleted rows, and every version, when archived batches are merged into them again."""

from __future__ import annotations

import secrets

import pytest

from cdc_lib import requests
from cdc_lib.config.start import StartAt
from cdc_lib.model.backfill import COPY_SUFFIX, BackfillRequest, Period
from cdc_lib.model.cursor import DRAIN
from spark_jobs.backfill import backfill
from tests.harness.lake.verify import Compared

MODES = {"s": "soft_delete", "h": "scd2"}


@pytest.fixture
def source(mysql_server, tmp_path, lake):
    database = f"kept_{secrets.token_hex(4)}"
    mysql_server.execute(f"CREATE DATABASE {database}")
    modes = [{"tables": f"{database}.{name}", "mode": mode} for name, mode in MODES.items()]
    source = Compared(mysql_server, database, tmp_path, lake, modes=modes, reselect={"mode": "never"})
    for name in MODES:
        source.execute(f"CREATE TABLE {name} (id INT PRIMARY KEY, v VARCHAR(20), n INT)")
        source.execute(f"INSERT INTO {name} VALUES (1, 'begun', 0), (2, 'begun', 0), (3, 'begun', 0)")
    source.round()
    yield source
    mysql_server.execute(f"DROP DATABASE {database}")


def lives(source, *statements, image="FULL"):
    """Do the same to both tables, and merge it."""
    with source.server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"USE {source.database}")
        cursor.execute(f"SET SESSION binlog_row_image = '{image}'")
        for text in statements:
            for name in MODES:
                cursor.execute(text.format(t=name))
            connection.commit()
    source.round()


def rows(source, name, suffix=""):
    found = source.lake.spark.sql(f"SELECT * FROM lake.{source.database}.{name}{suffix}").collect()
    return sorted((row.asDict() for row in found), key=repr)


def merged_again(source, into="live"):
    """Backfill everything that is stored and return what the tables, or those beside them, hold."""
    backfill(
        source.lake.spark,
        source.capture.config,
        source.capture.pipeline,
        BackfillRequest(Period(), (), into),
        source.said.append,
    )
    return {name: rows(source, name, COPY_SUFFIX if into == "copy" else "") for name in MODES}


def purge(source):
    source.execute("FLUSH BINARY LOGS")
    source.round()
    newest = source.execute("SHOW BINARY LOGS")[-1][0]
    source.execute(f"PURGE BINARY LOGS TO '{newest}'")


def test_a_backfill_restores_every_row_and_version_also_in_copies(source):
    """With rows that lack cells, a TRUNCATE, and an epoch that brought changes again; when the server has purged its binlog."""
    lives(
        source,
        "UPDATE {t} SET n = 1 WHERE id = 1",
        "DELETE FROM {t} WHERE id = 2",
        "INSERT INTO {t} VALUES (4, 'x', 4)",
    )
    since = source.capture.pipeline.cursors.load(source.capture.config.source, DRAIN).position
    lives(
        source, "UPDATE {t} SET n = 2 WHERE id = 1", "UPDATE {t} SET v = 'moved', id = 5 WHERE id = 4", image="MINIMAL"
    )
    requests.rewind(source.capture.pipeline, StartAt(position=str(since)), by="test", why="to see it twice")
    lives(source, "UPDATE {t} SET n = 3 WHERE id IN (1, 5)", "INSERT INTO {t} VALUES (2, 'again', 2)", image="MINIMAL")
    lives(
        source,
        "TRUNCATE TABLE {t}",
        "INSERT INTO {t} VALUES (1, 'late', 9), (6, 'late', 9)",
        "DELETE FROM {t} WHERE id = 6",
    )
    purge(source)
    before = {name: rows(source, name) for name in MODES}
    assert {row["_is_deleted"] for row in before["s"]} == {True, False}
    assert {row["_epoch"] for row in before["h"]} == {1, 2}

    live, history = (f"lake.{source.database}.{name}" for name in MODES)
    source.lake.spark.sql(f"DELETE FROM {live} WHERE id IN (2, 5)")
    source.lake.spark.sql(f"UPDATE {live} SET _is_deleted = NOT _is_deleted WHERE id IN (1, 3, 6)")
    source.lake.spark.sql(f"DELETE FROM {history} WHERE n IN (1, 3)")
    source.lake.spark.sql(
        f"UPDATE {history} SET v = 'wrong', _valid_to = NULL, _is_current = true WHERE v IN ('x', 'late')"
    )
    source.lake.spark.sql(f"INSERT INTO {history} SELECT * FROM {history} WHERE v = 'again'")
    assert merged_again(source) == before
    assert merged_again(source, "copy") == before
    lives(source, "UPDATE {t} SET n = 10 WHERE id = 1")
    assert [row["n"] for row in rows(source, "h") if row["_is_current"]] == [10]
    assert [row["n"] for row in rows(source, "s") if not row["_is_deleted"]] == [10]
