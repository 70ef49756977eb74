"""Which errors quarantine tables, and which stop everything."""

from __future__ import annotations

import pytest

from cdc_lib.binlog.rows.captured_tables import tables_at_fault
from cdc_lib.errors import (
    ChecksumMismatch,
    ConfigError,
    DecodeError,
    SourceUnavailable,
    UnknownEvent,
    UnknownSchema,
    UnsupportedValue,
)


def captures(database: str, table: str) -> bool:
    """Also `*`, as the source file's patterns do."""
    return database == "shop" and not table.startswith("tmp")


@pytest.mark.parametrize("kind", [DecodeError, UnknownEvent, UnknownSchema, UnsupportedValue])
@pytest.mark.parametrize("named", ["shop.orders", "shop.orders, shop.items"])
def test_an_error_that_names_captured_tables_excludes_them(kind, named):
    """One or several."""
    assert tables_at_fault(kind("what", table=named), captures) == tuple(named.split(", "))


@pytest.mark.parametrize(
    "error",
    [
        DecodeError("a length is wrong", file="binlog.000001"),
        UnknownEvent("an event type that is not supported", event_type=200),
        UnknownEvent("a dropped database", table="shop.*"),
        UnknownEvent("two tables, one of them not captured", table="shop.orders, other.orders"),
        UnknownSchema("the definition of a database", table="shop."),
        UnsupportedValue("no table at all", table="shop"),
        UnknownSchema("a table that is not captured", table="shop.tmp_1"),
        ChecksumMismatch("the CRC32 is wrong", table="shop.orders"),
        SourceUnavailable("the server went away", table="shop.orders"),
        ConfigError("a mask cannot be followed", table="shop.orders"),
    ],
)
def test_any_other_error_stops_everything(error):
    """What is wrong may concern any table."""
    assert tables_at_fault(error, captures) == ()
