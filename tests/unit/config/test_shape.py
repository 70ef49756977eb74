from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_lib.config import Credentials, SourceConfig, mask_key_from_environment
from cdc_lib.config.shape import masks_column, projection_of, stored_as, stored_comments, targets_of
from cdc_lib.errors import ConfigError
from cdc_lib.model.comments import TableComments
from cdc_lib.model.mask import Mask
from cdc_lib.model.schema import Column, SourceType, TableSchema

INT, TEXT = SourceType("int", width=4), SourceType("string", width=40, charset="utf8mb4")
CUSTOMERS = TableSchema(
    "shop", "customers", (Column("id", INT), Column("Mail", TEXT), Column("pin", INT), Column("note", TEXT)), ("id",)
)


LAKE = {"type": "jdbc", "uri": "jdbc:sqlite:/c.db", "warehouse": "file:///l"}


def config(**sections) -> SourceConfig:
    """Return a source with these sections."""
    return SourceConfig(
        source="crm",
        server={"host": "h", "user": "u", "password_env": "P"},
        store={"url": "file:///s"},
        **{"lake": LAKE, "tables": {"include": ["*.*"]}, "mask_key_env": "KEY", **sections},
    )


def test_comments_of_columns_that_are_not_stored_as_they_are_stay_at_the_source():
    """A comment may show values: `for example jo@x.example`."""
    rules = config(
        masks=[{"tables": "*.customers", "columns": ["mail"], "mask": "hash"}],
        columns=[{"tables": "*.*", "exclude": ["pin"]}],
    )
    comments = TableComments(CUSTOMERS.name, "all", {"id": "a", "Mail": "b", "pin": "c", "note": "d"})
    assert stored_comments(rules, comments) == replace(comments, columns={"id": "a", "note": "d"})


def test_without_rules_a_table_stays_as_it_is():
    """Nothing is copied and nothing is asked for."""
    projection = projection_of(config(), CUSTOMERS)
    assert projection.schema is CUSTOMERS
    assert projection.kept == (0, 1, 2, 3)


def test_columns_compare_without_their_case_and_an_exclusion_wins():
    """As MySQL takes `MAIL` and `Mail` for one column; several rules all have to keep a column."""
    rules = [
        {"tables": "shop.*", "exclude": ["MAIL"]},
        {"tables": "*.customers", "include": ["id", "p*", "/^no/", "mail"]},
    ]
    projection = projection_of(config(columns=rules), CUSTOMERS)
    assert [column.name for column in projection.schema.columns] == ["id", "pin", "note"]
    assert projection.kept == (0, 2, 3)


def test_the_first_mask_of_a_column_counts_and_the_lake_gets_text():
    """A null keeps the type that the column had."""
    masks = [
        {"tables": "shop.customers", "columns": ["pin"], "mask": "redact"},
        {"tables": "shop.*", "columns": ["pin", "m*"], "mask": "hash"},
    ]
    projection = projection_of(config(masks=masks), CUSTOMERS)
    assert projection.masks == (None, Mask("hash"), Mask("redact"), None)
    assert [column.type.lake_type for column in projection.schema.columns] == ["int", "string", "int", "string"]
    assert projection.masked == {"Mail", "pin"}
    assert projection.source.columns[2].type == INT


@pytest.mark.parametrize(
    ("sections", "says"),
    [
        ({"columns": [{"tables": "*.*", "exclude": ["id"]}]}, "column id belongs to the primary key"),
        ({"columns": [{"tables": "*.*", "include": ["none"]}]}, "column id belongs"),
        ({"masks": [{"tables": "*.*", "columns": ["i?"], "mask": "redact"}]}, "mask redact on column id"),
        (
            {"masks": [{"tables": "*.*", "columns": ["id"], "mask": "truncate", "characters": 3}]},
            "truncate 3 on column id",
        ),
        (
            {"masks": [{"tables": "shop.customers", "columns": ["email"], "mask": "redact"}]},
            "column email, which the table",
        ),
    ],
)
def test_what_cannot_be_done_to_a_table_names_the_table_and_the_column(sections, says):
    """Rows without their key cannot be merged, and a misspelt mask would hide nothing."""
    with pytest.raises(ConfigError) as caught:
        projection_of(config(**sections), CUSTOMERS)
    assert says in str(caught.value)
    assert caught.value.context["table"] == "shop.customers"


def test_a_column_that_a_pattern_masks_need_not_be_there():
    """One rule for many tables would be of no use otherwise."""
    masks = [
        {"tables": "*.customers", "columns": ["email"], "mask": "redact"},
        {"tables": "shop.customers", "columns": ["email*"], "mask": "redact"},
    ]
    assert projection_of(config(masks=masks), CUSTOMERS).masked == frozenset()


def test_tables_go_where_their_routes_say_and_else_to_their_own_name():
    """Filters hold for every lake table, a route's predicate for its own."""
    made = config(
        routes=[
            {
                "tables": "/^shop_\\d+\\.orders$/",
                "into": "shop.orders",
                "keys": ["table", "schema", "table"],
                "where": "a",
            },
            {"tables": "shop_1.orders", "into": "{source}.{database}_{table}"},
            {"tables": "*.orders", "into": "shop.orders"},
        ],
        filters=[{"tables": "*.orders", "where": " b "}],
    )
    first, second = targets_of(made, "shop_1", "orders")
    assert (first.name, first.keys, first.where) == ("shop.orders", ("table", "schema"), ("b", "a"))
    assert first.constants("crm", "shop_1", "orders") == {"_source_schema": "shop_1", "_source_table": "orders"}
    assert (second.name, second.keys, second.where) == ("crm.shop_1_orders", (), ("b",))
    [own] = targets_of(made, "shop_1", "items")
    assert (own.name, own.routed, own.where) == ("shop_1.items", False, ())


@pytest.mark.parametrize(
    ("sections", "key", "says"),
    [
        ({"masks": [{"tables": "a.b", "columns": ["c"], "mask": "hash"}], "mask_key_env": None}, "", "mask_key_env"),
        ({"masks": [{"tables": "a.b", "columns": ["c"], "mask": "keep_last"}]}, "masks.0", "needs characters"),
        (
            {"masks": [{"tables": "a.b", "columns": ["c"], "mask": "hash", "characters": 2}]},
            "masks.0",
            "takes no characters",
        ),
        ({"masks": [{"tables": "a.b", "columns": ["c"], "mask": "hash", "text": "x"}]}, "masks.0", "takes no text"),
        ({"masks": [{"tables": "ab", "columns": ["c"], "mask": "hash"}]}, "masks.0.tables", "database.table"),
        ({"columns": [{"tables": "a.b", "exclude": [""]}]}, "columns.0.exclude", "name of a column"),
        ({"columns": [{"tables": "a.b", "exclude": ["/(/"]}]}, "columns.0.exclude", "not a regular expression"),
        ({"routes": [{"tables": "a.b", "into": "b"}]}, "routes.0.into", "database.table"),
        ({"routes": [{"tables": "a.b", "into": "a.{column}"}]}, "routes.0.into", "{database}, {table} and {source}"),
        ({"routes": [{"tables": "a.b", "into": "a.{"}]}, "routes.0.into", "not a name"),
        ({"filters": [{"tables": "a.b", "where": "WHERE x"}]}, "filters.0.where", "without WHERE"),
        ({"filters": [{"tables": "a.b", "where": "  "}]}, "filters.0.where", "Spark SQL"),
    ],
)
def test_a_wrong_rule_is_refused_when_the_file_is_read(sections, key, says):
    """With the place in the file and what is allowed."""
    with pytest.raises(ValueError) as caught:
        config(**sections)
    [error] = caught.value.errors()
    assert ".".join(map(str, error["loc"])) == key
    assert says in error["msg"]


def test_the_key_of_the_hashes_comes_from_the_environment_and_is_never_shown():
    """A source without hashes needs none."""
    hashed = {"masks": [{"tables": "a.b", "columns": ["c"], "mask": "hash"}]}
    assert mask_key_from_environment(config(), {}) == ""
    assert mask_key_from_environment(config(**hashed), {"KEY": "long and secret"}) == "long and secret"
    with pytest.raises(ConfigError, match="KEY is not set"):
        mask_key_from_environment(config(**hashed), {})
    with pytest.raises(ConfigError, match="only Airflow knows"):
        mask_key_from_environment(config(**hashed, mask_key_env=None, mask_key_connection="c"), {})
    assert "secret" not in repr(Credentials("u", "p", "secret"))


def test_booleans_are_tinyint_columns_without_a_mask():
    """Of any display width, which the binlog does not have; a column of another type stays as it is."""
    tiny = SourceType("int", width=1, text="tinyint(4)")
    columns = (
        Column("id", INT),
        Column("is_on", tiny),
        Column("is_old", tiny),
        Column("is_text", TEXT),
        Column("n", tiny),
    )
    flags = TableSchema("shop", "flags", columns, ("id",))
    rules = [
        {"tables": "shop.*", "columns": ["IS_ON"], "other_values": "as_true"},
        {"tables": "*.*", "columns": ["is_*"]},
    ]
    masks = [{"tables": "shop.*", "columns": ["is_old"], "mask": "hash"}]
    projection = projection_of(config(booleans=rules, masks=masks), flags)
    assert [one.type.lake_type for one in projection.schema.columns] == ["int", "boolean", "string", "string", "int"]
    assert [one.type.as_boolean for one in projection.source.columns] == [None, "as_true", None, None, None]
    with pytest.raises(ConfigError, match="column n belongs to the primary key and cannot be a boolean"):
        projection_of(
            config(booleans=[{"tables": "*.*", "columns": ["n"]}]), TableSchema("a", "b", columns, ("id", "n"))
        )


def test_a_column_is_stored_as_a_boolean_by_its_name_alone():
    """Statements that rename or add columns are judged before their types are known."""
    both = config(
        booleans=[{"tables": "shop.*", "columns": ["is_*"]}], columns=[{"tables": "*.*", "exclude": ["is_x"]}]
    )
    assert [stored_as(both, "shop", "t", name) for name in ("is_on", "on", "is_x")] == ["boolean", "", None]
    assert not masks_column(both, "shop", "t", "is_on")
