"""A schema modelled on the sample database sakila: source and lake end equal, also where foreign keys change rows.

MariaDB does not write the changes of foreign key actions to its binlog, MySQL does.
"""

from __future__ import annotations

from demo.shop.compare import compare_database, open_lake
from tests.harness.lake.ddl_source import Followed
from tests.harness.shop.sakila import CHANGES, DELETES, NEW_KEYS, ROWS, SCHEMA, TABLES


def differences(source):
    """Compare every row and column of all tables; returns those that differ."""
    capture = source.capture
    lake = open_lake(str(capture.config.lake.uri), str(capture.config.lake.warehouse))
    options = {"host": capture.server.host, "port": capture.server.port, "user": "root"}
    found = compare_database(options, capture.database, lake)
    assert [one.table for one in found] == sorted(TABLES)
    return [one for one in found if one.differences]


def settled(source):
    """Run until no requested snapshot is left."""
    for _ in range(4):
        source.round()


def test_all_tables_of_the_rental_shop_end_equal_after_cascades(any_server, database, tmp_path, lake):
    """A snapshot first; then changed keys of all parents, deletes that reach their children, and other changes around them."""
    source = Followed(any_server, database, tmp_path, lake, snapshot={"chunk_rows": 10})
    source.run(*SCHEMA, *ROWS)
    settled(source)
    assert differences(source) == []
    before = source.snapshots()
    source.run(*CHANGES, *NEW_KEYS, *DELETES, "UPDATE film SET length = length + 1")
    settled(source)
    assert differences(source) == []
    assert (source.snapshots() > before) == (any_server.flavor == "mariadb")
    assert len(source.source_rows("film_text")) == len(source.source_rows("film"))
    # Once more, through parents whose keys the cascades changed before.
    source.run(
        "UPDATE country SET country_id = 200 WHERE country_id = 101",
        "UPDATE film SET film_id = 300 WHERE film_id = 101",
    )
    settled(source)
    assert differences(source) == []
