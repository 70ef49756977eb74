"""Stops of docs/operations.md that single tables cause in a merge: in turn on one shop, whose tables equal the source afterwards."""

from __future__ import annotations

import pytest

from tests.harness.shop.source import Shop
from tests.harness.shop.stops import Stop, follow_all, nothing

PLAIN = "(id INT PRIMARY KEY, v VARCHAR(20), n INT)"
TABLES = {
    "routed": PLAIN,
    "shared": PLAIN,
    "second": PLAIN,
    "exchanged": "(id INT PRIMARY KEY, a VARCHAR(20), b VARCHAR(20))",
    "keyed": PLAIN,
    "left_one": PLAIN,
    "left_two": PLAIN,
    "filtered": PLAIN,
    "fit_one": PLAIN,
    "fit_two": PLAIN,
    "pool_one": PLAIN,
    "pool_two": PLAIN,
    "altered": PLAIN,
    "words": "(id VARCHAR(20) PRIMARY KEY, v VARCHAR(20), n INT)",
}
"""Each is stopped by one message."""


class MergeShop(Shop):
    """A shop with one more table for each message."""

    def __init__(self, server, database, folder, lake):
        super().__init__(server, database, folder, lake)
        for name, columns in TABLES.items():
            self.execute(f"CREATE TABLE {name} {columns}")
            values = (
                "('a', '', 1), ('b', '', 2), ('c', '', 3)"
                if name == "words"
                else "(1, 'a', 1), (2, 'b', 2), (3, 'c', 3)"
            )
            self.execute(f"INSERT INTO {name} VALUES {values}")
        self.execute("UPDATE pool_two SET id = id + 10")
        self.routes = {
            "routed": {"tables": "routed", "into": "chosen_{database}.routed", "columns": {"include": ["id", "v"]}},
            "shared": {"tables": "shared", "into": "shared", "keys": ["table"]},
            "left": {"tables": "left_*", "into": "lefts", "keys": ["table"]},
            "fit": {"tables": "fit_*", "into": "fits", "keys": ["table"]},
            "pool": {"tables": "pool_*", "into": "pool"},
        }
        self.write(
            tables={"include": [f"{database}.*"], "exclude": [f"{database}.second", f"{database}._*"]},
            filters=[{"tables": f"{database}.filtered", "where": "n < 100"}],
            modes=[{"tables": f"{database}.keyed", "mode": "soft_delete"}],
            reselect={
                "tables": [
                    {"tables": f"{database}.exchanged", "mode": "always"},
                    {"tables": f"{database}.filtered", "mode": "never"},
                    {"tables": f"{database}.words", "max_keys": 1},
                ]
            },
        )
        self.route()

    def route(self, **changed):
        """Write the source file with other routes."""
        self.routes |= changed
        into = {
            name: one["into"] if "." in one["into"] else f"{self.database}.{one['into']}"
            for name, one in self.routes.items()
        }
        self.write(
            routes=[
                {**one, "tables": f"{self.database}.{one['tables']}", "into": into[name]}
                for name, one in self.routes.items()
            ]
        )


def column_of_a_route_renamed(shop):
    shop.execute("ALTER TABLE routed RENAME COLUMN v TO w")
    shop.execute("UPDATE routed SET w = 'new' WHERE id = 2")


def new_name_in_the_route(shop):
    shop.route(routed={**shop.routes["routed"], "columns": {"include": ["id", "v", "w"]}})


def column_renamed_that_two_sources_share(shop):
    second = {**shop.settings, "tables": [f"{shop.database}.second"], "modes": [], "filters": [], "reselect": {}}
    route = {"tables": f"{shop.database}.second", "into": f"{shop.database}.shared", "keys": ["table"]}
    shop.write_as("second", {**second, "routes": [route]})
    for _ in range(2):
        shop.cdc("cdc run second")
    shop.execute("ALTER TABLE shared RENAME COLUMN v TO w")
    shop.execute("UPDATE shared SET w = 'new' WHERE id = 2")


def names_exchanged_before_rows_are_read(shop):
    shop.execute("UPDATE exchanged SET a = 'new' WHERE id = 2")
    shop.drain()
    shop.execute("ALTER TABLE exchanged RENAME COLUMN a TO b, RENAME COLUMN b TO a")
    shop.execute("ALTER TABLE exchanged MODIFY COLUMN a VARCHAR(20) AFTER id")
    for command in ("cdc step merge shop", "cdc step ack lake shop"):
        shop.cdc(command)
    shop.execute("UPDATE exchanged SET a = 'newer' WHERE id = 3")


def other_key(shop):
    shop.execute("ALTER TABLE keyed DROP PRIMARY KEY, ADD PRIMARY KEY (v)")
    shop.execute("UPDATE keyed SET n = 7 WHERE id = 2")
    shop.runs(1)  # leaves the table out; the next plan reads it


def mode_of_one(shop):
    shop.write(modes=[*shop.settings["modes"], {"tables": f"{shop.database}.left_one", "mode": "soft_delete"}])
    shop.execute("UPDATE left_one SET v = 'new' WHERE id = 2")


def mode_of_both(shop):
    shop.write(modes=shop.settings["modes"][:1])


def row_without_some_columns(shop):
    with shop.server.connect(database=shop.database) as session, session.cursor() as cursor:
        cursor.execute("SET SESSION binlog_row_image = 'MINIMAL'")
        cursor.execute("UPDATE filtered SET v = 'new' WHERE id = 2")
        session.commit()


def types_that_do_not_fit(shop):
    shop.execute("ALTER TABLE fit_two MODIFY n VARCHAR(20)")
    shop.execute("UPDATE fit_two SET n = 'text' WHERE id = 2")
    shop.cdc("cdc run shop")  # asks for a snapshot: the values may be others


def separate_tables(shop):
    shop.route(
        fit={"tables": "fit_one", "into": "fits", "keys": ["table"]}, fit_two={"tables": "fit_two", "into": "fit_two"}
    )


def one_of_two_emptied(shop):
    shop.execute("TRUNCATE pool_one")
    shop.execute("INSERT INTO pool_one VALUES (5, 'e', 5)")


def keys_for_the_pool(shop):
    shop.route(pool={"tables": "pool_*", "into": "pools", "keys": ["table"]})


def column_with_an_expression(shop):
    for statement in (
        "CREATE TABLE _altered_gho LIKE altered",
        "ALTER TABLE _altered_gho ADD COLUMN w VARCHAR(40) DEFAULT (CONCAT('x', 1 + 1))",
        "INSERT INTO _altered_gho (id, v, n) SELECT id, v, n FROM altered",
        "RENAME TABLE altered TO _altered_del, _altered_gho TO altered",
        "DROP TABLE _altered_del",
    ):
        shop.execute(statement)


def range_of_texts(shop):
    shop.cdc(f"cdc snapshot shop {shop.database}.words --key-from b --key-to b")
    shop.cdc("cdc step plan shop")


def catalog_that_is_a_folder(shop):
    """The file of the catalog cannot be opened."""
    (shop.folder / "catalog").mkdir()
    settings = {**shop.settings, "tables": [f"{shop.database}.second"]}
    for name in ("modes", "filters", "reselect", "routes"):
        del settings[name]
    lake = {**settings["lake"], "catalog": "other", "uri": f"jdbc:sqlite:{shop.folder}/catalog"}
    shop.write_as("third", {**settings, "lake": lake})


def catalog_that_is_a_file(shop):
    (shop.folder / "catalog").rmdir()


def name_that_is_no_folder(shop):
    """A catalog that makes folders of names, and a table whose name is not safe as one."""
    settings = {**shop.settings, "tables": [f"{shop.database}.second"]}
    for name in ("modes", "filters", "reselect"):
        del settings[name]
    lake = {"catalog": f"plain_{shop.database}", "type": "hadoop", "warehouse": f"file://{shop.folder}/plain"}
    shop.fourth = {**settings, "lake": lake}
    shop.write_as(
        "fourth", {**shop.fourth, "routes": [{"tables": f"{shop.database}.second", "into": "{database}.a b"}]}
    )


def name_that_is_one(shop):
    shop.write_as("fourth", {**shop.fourth, "routes": [{"tables": f"{shop.database}.second", "into": "{database}.ab"}]})


def more_keys(shop):
    shop.write(reselect={"tables": shop.settings["reselect"]["tables"][:2]})


TWICE = ("cdc run shop", "cdc run shop")
STOPS = {
    "column_of_a_route": Stop(
        "a route keeps column …, which is now called …, and not …", column_of_a_route_renamed, "cdc run shop",
        new_name_in_the_route, 2,
    ),
    "shared_column": Stop(
        "column … is now called … at the source, and … share it in the lake", column_renamed_that_two_sources_share,
        "cdc run shop", nothing, then=("cdc snapshot shop {database}.shared", *TWICE), hint="cdc snapshot",
    ),
    "exchanged_names": Stop(
        "columns were renamed (…) while rows of the table were read, and it is unknown which names these rows use",
        names_exchanged_before_rows_are_read, "cdc run shop", nothing,
        then=("cdc snapshot shop {database}.exchanged", *TWICE), hint="cdc snapshot",
    ),
    "other_key": Stop(
        "the primary key changed from (…) to (…)", other_key, "cdc run shop", nothing,
        then=("cdc snapshot shop {database}.keyed --replace", *TWICE), hint="--replace",
    ),
    "modes": Stop(
        "tables that share a lake table have different modes: …", mode_of_one, "cdc run shop", mode_of_both, 2
    ),
    "row_that_lacks_columns": Stop(
        "some changes lack columns, so predicates cannot be evaluated for them", row_without_some_columns, "cdc run shop",
        nothing, then=("cdc snapshot shop {database}.filtered", *TWICE), hint="binlog_row_image = 'FULL'",
    ),
    "types": Stop(
        "… share one lake table and are not compatible: …", types_that_do_not_fit, "cdc run shop", separate_tables,
        then=("cdc snapshot shop {database}.fit_two", *TWICE),
    ),
    "emptied": Stop(
        "rows of a table must be deleted, because of a statement (such as TRUNCATE) or a late snapshot",
        one_of_two_emptied, "cdc run shop", keys_for_the_pool,
        then=("cdc snapshot shop {database}.pool_one {database}.pool_two", *TWICE),
    ),
    "online_schema_change": Stop(
        "an online schema change changed values in rows that its statements do not show (…)", column_with_an_expression,
        "cdc run shop", nothing, 0, TWICE, hint="read again",
    ),
    "catalog": Stop(
        "could not …: the catalog's file cannot be opened: …", catalog_that_is_a_folder, "cdc run third",
        catalog_that_is_a_file, 2, ("cdc run third", "cdc run third", "cdc verify third"), hint="chown",
    ),
    "name_of_a_folder": Stop(
        "a … catalog makes the folder of a table from its name, and … is not safe as one", name_that_is_no_folder,
        "cdc run fourth", name_that_is_one, 2, ("cdc run fourth", "cdc run fourth", "cdc verify fourth"),
        hint="Route the table to another name",
    ),
    "range_of_texts": Stop(
        "which rows of … were deleted must be asked of the source, and …", range_of_texts, "cdc run shop", more_keys,
    ),
}  # fmt: skip


@pytest.fixture
def shop(any_server, database, tmp_path, lake, monkeypatch):
    shop = MergeShop.on_running_spark(any_server, database, tmp_path, lake, monkeypatch)
    shop.runs(2)
    return shop


def test_what_the_page_says_ends_each_stop_of_a_merge_and_the_tables_are_equal_afterwards(shop, subtests):
    """Each prints its message; what its row says ends it."""
    follow_all(shop, STOPS, subtests, last_change=9)
