"""Foreign key actions, which MariaDB does not write to the binlog: source and lake end equal."""

from __future__ import annotations

from contextlib import closing

import pytest

from cdc_lib.errors import UnknownEvent
from cdc_lib.mysql.connection import connect
from cdc_lib.mysql.foreign_keys import cascades_of
from cdc_lib.mysql.server_facts import read_facts
from cdc_lib.status.overview import findings_of
from tests.harness.binlog.capture import row_metadata
from tests.harness.lake.ddl_source import Followed

TABLES = ("film", "film_actor", "inventory", "rental", "payment", "note")
SCHEMA = (
    "CREATE TABLE film (id INT PRIMARY KEY, title VARCHAR(20))",
    (
        "CREATE TABLE film_actor (film_id INT, actor INT, PRIMARY KEY (film_id, actor),"
        " CONSTRAINT fa FOREIGN KEY (film_id) REFERENCES film (id) ON DELETE CASCADE ON UPDATE CASCADE)"
    ),
    (
        "CREATE TABLE inventory (id INT PRIMARY KEY, film_id INT,"
        " CONSTRAINT inv FOREIGN KEY (film_id) REFERENCES film (id) ON DELETE CASCADE ON UPDATE CASCADE)"
    ),
    (
        "CREATE TABLE rental (id INT PRIMARY KEY, inventory_id INT,"
        " CONSTRAINT ren FOREIGN KEY (inventory_id) REFERENCES inventory (id) ON DELETE CASCADE ON UPDATE CASCADE)"
    ),
    (
        "CREATE TABLE payment (id INT PRIMARY KEY, rental_id INT, amount INT,"
        " CONSTRAINT pay FOREIGN KEY (rental_id) REFERENCES rental (id) ON DELETE SET NULL ON UPDATE CASCADE)"
    ),
    (
        "CREATE TABLE note (id INT PRIMARY KEY, film_id INT,"
        " CONSTRAINT no FOREIGN KEY (film_id) REFERENCES film (id) ON DELETE RESTRICT)"
    ),
)
ROWS = (
    "INSERT INTO film VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd')",
    "INSERT INTO film_actor VALUES (1, 1), (1, 2), (2, 1), (3, 1), (4, 1)",
    "INSERT INTO inventory VALUES (10, 1), (11, 1), (20, 2), (30, 3), (40, 4)",
    "INSERT INTO rental VALUES (100, 10), (101, 11), (200, 20), (300, 30), (400, 40)",
    "INSERT INTO payment VALUES (1000, 100, 5), (1001, 101, 5), (2000, 200, 5), (3000, 300, 5), (4000, 400, 5)",
    "INSERT INTO note VALUES (1, 4)",
)


def followed(server, database, folder, lake, **settings):
    source = Followed(server, database, folder, lake, **settings)
    source.run(*SCHEMA, *ROWS)
    return source


def cascades(source):
    capture = source.capture
    with closing(connect(capture.config.server, capture.credentials)) as connection:
        tables = [(capture.database, table) for table in TABLES]
        return cascades_of(connection, read_facts(connection, capture.config.server), tables)


def settled(source):
    """Run until all requested snapshots are merged."""
    for _ in range(4):
        source.round()


@pytest.mark.parametrize("metadata", ["FULL", "MINIMAL"])
def test_cascades_over_several_levels_end_equal(any_server, database, tmp_path, lake, metadata):
    """Deletes, SET NULL and changed keys, with other changes around them; one deleted film has no references."""
    with row_metadata(any_server, metadata):
        source = followed(any_server, database, tmp_path, lake)
        settled(source)
        source.assert_equal(*TABLES)
        for statement in (
            "DELETE FROM film WHERE id = 1",
            "UPDATE film SET id = 22 WHERE id = 2",
            "DELETE FROM rental WHERE id = 300",
            "UPDATE inventory SET id = 41 WHERE id = 40",
            "REPLACE INTO film VALUES (3, 'again')",
        ):
            source.run(
                "UPDATE payment SET amount = amount + 1",
                statement,
                "INSERT INTO film (id) SELECT MAX(id) + 1 FROM film",
            )
            settled(source)
            source.assert_equal(*TABLES)


def test_changes_without_foreign_key_actions_need_no_snapshot(any_server, database, tmp_path, lake):
    """Updates of other columns, inserts, and deletes of tables that nothing refers to."""
    source = followed(any_server, database, tmp_path, lake)
    settled(source)
    before = source.snapshots()
    source.run(
        "UPDATE film SET title = 'x'",
        "INSERT INTO film VALUES (9, 'z')",
        "DELETE FROM film_actor WHERE film_id = 1",
        "DELETE FROM payment WHERE id = 1000",
        "UPDATE rental SET inventory_id = 11 WHERE id = 100",
    )
    settled(source)
    source.assert_equal(*TABLES)
    assert source.snapshots() == before


@pytest.mark.parametrize("image", ["MINIMAL", "NOBLOB"])
def test_partial_images_are_enough_to_detect_cascades(mariadb_server, mariadb_database, tmp_path, lake, image):
    """The columns that a key refers to are in the after image when they change."""
    source = followed(mariadb_server, mariadb_database, tmp_path, lake)
    settled(source)
    before = source.snapshots()
    source.run(f"SET SESSION binlog_row_image = '{image}'", "UPDATE film SET title = 'x' WHERE id = 1")
    settled(source)
    if image == "MINIMAL":
        assert source.snapshots() == before
    source.run(
        f"SET SESSION binlog_row_image = '{image}'",
        "UPDATE film SET id = 7, title = 'y' WHERE id = 1",
        "DELETE FROM film WHERE id = 2",
    )
    settled(source)
    source.assert_equal(*TABLES)


def test_a_parent_that_is_not_captured_is_watched(any_server, database, tmp_path, lake):
    """And so is a table between parent and child."""
    source = followed(
        any_server, database, tmp_path, lake,
        tables={"include": [f"{database}.*"], "exclude": [f"{database}.film", f"{database}.inventory"]},
    )  # fmt: skip
    settled(source)
    source.run("DELETE FROM film WHERE id = 1")
    settled(source)
    source.assert_equal("film_actor", "rental", "payment")


def test_a_foreign_key_that_was_dropped_later_is_respected(any_server, database, tmp_path, lake):
    """The server does not have it any more when the window is read."""
    source = followed(any_server, database, tmp_path, lake)
    settled(source)
    source.run(
        "DELETE FROM film WHERE id = 1", "ALTER TABLE inventory DROP FOREIGN KEY inv", "DELETE FROM film WHERE id = 2"
    )
    settled(source)
    source.assert_equal(*TABLES)


def test_a_source_with_cascades_stop_names_the_tables(mariadb_server, mariadb_database, tmp_path, lake):
    """Nothing is acknowledged."""
    source = followed(mariadb_server, mariadb_database, tmp_path, lake, cascades="stop")
    settled(source)
    source.run("DELETE FROM rental WHERE id = 300")
    with pytest.raises(UnknownEvent, match="foreign keys") as caught:
        source.drain()
    assert caught.value.context["table"] == f"{mariadb_database}.payment"


def test_doctor_and_each_run_name_the_tables(any_server, database, tmp_path, lake, caplog):
    """If the server does not log foreign key actions."""
    source = followed(any_server, database, tmp_path, lake)
    result = cascades(source)
    assert result.logged == (any_server.flavor == "mysql")
    assert bool(result.keys) != result.logged
    source.round()
    findings = [finding.what for finding in findings_of(source.capture.pipeline) if "foreign keys" in finding.what]
    logged = [record.getMessage() for record in caplog.records if "foreign keys" in record.getMessage()]
    assert bool(findings) == bool(logged) == (not result.logged)
    if findings:
        assert f"{database}.payment (with {database}.film, {database}.inventory, {database}.rental)" in findings[0]
        assert "note" not in findings[0]
