"""Stops of docs/operations.md that the binlog causes: in turn on one shop, whose tables equal the source afterwards.

The server writes each file; then events in it are edited, cut off or removed, as by a defect of the server or its disk. The file is
written back as it was afterwards, for the tests that follow on the same server.
"""

from __future__ import annotations

import json
from itertools import count

import pytest

from cdc_lib.store import layout
from tests.harness.binlog import xa
from tests.harness.binlog.edited_binlogs import (
    END,
    GTIDS,
    HEADER,
    INCIDENT,
    INSERTS,
    TABLE_MAP,
    XID,
    close_file,
    edit_bytes,
    edit_file,
    event_of,
    first,
    inserted,
    offset_of,
    query_of,
    removed,
    replaced,
    with_text,
)
from tests.harness.shop.binlog import BinlogShop
from tests.harness.shop.stops import Stop, nothing

PAYLOAD = {40}
"""The event of a compressed transaction."""
OF_ZSTD, OF_A_NEWER_RELEASE = b"\2\1\0", b"\2\1\7"
"""The field of a compressed transaction that names its compression."""
DRAIN = "cdc step drain shop"
DRAINED = (DRAIN, "cdc step ack drain shop", DRAIN, "cdc step ack drain shop")


def edited(edit):
    """Return what changes the tables in a file whose events are then edited."""

    def happens(shop):
        edit_file(shop.server, shop.changed_file(next(shop.numbers)), edit)

    return happens


def prepared(edit):
    """Return the same for an XA transaction, which is committed afterwards."""

    def happens(shop):
        close_file(shop.server)
        shop.xid = f"'x{next(shop.numbers)}'"
        xa.prepare(shop.server, shop.database, shop.xid, f"UPDATE orders SET v = {shop.xid} WHERE id = 1")
        edit_file(shop.server, shop.closed_file(), edit)

    return happens


def committed(shop):
    xa.commit(shop.server, shop.xid)


def incident(events):
    words = b"events were lost"
    at = first(events, GTIDS)
    return inserted(events, at, event_of(INCIDENT, b"\1\0" + bytes([len(words)]) + words, events[at]))


def short_image(events):
    at = first(events, INSERTS)
    return replaced(events, at, events[at][:-1])


def cut_in_a_transaction(events):
    return removed(events, max(at for at, event in enumerate(events) if event[4] in XID))


def unknown_savepoint(events):
    at = first(events, XID)
    return inserted(events, at, query_of(b"ROLLBACK TO `s`", events[at]))


def unknown_xa_statement(events):
    at = with_text(events, b"XA START")
    return replaced(events, at, events[at].replace(b"XA START X'", b"XA BEGIN X'"))


def xa_transaction_that_ends_otherwise(events):
    at = with_text(events, b"XA END")
    return [*events[:at], event_of(END, bytes(8), events[at]), *events[at + 2 :]]


def wrong_compressed_rows(events):
    at = first(events, INSERTS)
    return replaced(events, at, events[at][:-6] + bytes(6))


def unknown_compression(events):
    at = first(events, PAYLOAD)
    fields = events[at][HEADER:]
    assert OF_ZSTD in fields[:20]
    return replaced(events, at, events[at][:HEADER] + fields.replace(OF_ZSTD, OF_A_NEWER_RELEASE, 1))


def payload(shop):
    shop.execute("SET GLOBAL binlog_transaction_compression = ON")
    edited(unknown_compression)(shop)
    shop.execute("SET GLOBAL binlog_transaction_compression = OFF")


def compressed(shop):
    shop.execute("SET GLOBAL log_bin_compress = ON")
    shop.execute("SET GLOBAL log_bin_compress_min_len = 10")
    edited(wrong_compressed_rows)(shop)
    shop.execute("SET GLOBAL log_bin_compress = OFF")


def other_bytes(shop):
    def flip(data):
        data[data.index(b"added")] ^= 1

    edit_bytes(shop.server, shop.changed_file(next(shop.numbers)), flip)


def missing_transaction(shop):
    def cut(data):
        del data[start:stop]

    shop.changed_file(next(shop.numbers))
    start, stop = (offset_of(shop.server, shop.file, GTIDS, number) for number in (2, 3))
    edit_bytes(shop.server, shop.file, cut)


def dropped_before(shop):
    """The table map names no columns, and the file has a DROP of the table before."""
    shop.execute("SET GLOBAL binlog_row_metadata = 'MINIMAL'")
    shop.execute("FLUSH TABLES")
    shop.changed_file(next(shop.numbers))
    shop.execute("SET GLOBAL binlog_row_metadata = 'FULL'")
    shop.execute("FLUSH TABLES")
    dropped = f"DROP TABLE `{shop.database}`.`orders`".encode()
    edit_file(
        shop.server, shop.file, lambda events: inserted(events, first(events, GTIDS), query_of(dropped, events[1]))
    )


def shorter_after_the_plan(shop):
    close_file(shop.server)
    shop.change(next(shop.numbers))
    shop.cdc("cdc step plan shop")
    shop.closed_file()
    end = offset_of(shop.server, shop.file, GTIDS, 2)
    edit_bytes(shop.server, shop.file, lambda data: data.__delitem__(slice(end, None)))


def file_removed(shop):
    shop.changed_file(next(shop.numbers))
    shop.path.unlink()


def without_table_map(events):
    return removed(events, first(events, TABLE_MAP))


def without_xa_start(events):
    return removed(events, with_text(events, b"XA START"))


def edited_cursor(further):
    """Return what sets the drain cursor by hand to an event inside a transaction, or to bytes inside that event."""

    def happens(shop):
        (shop.folder / "shop-cursors.json").write_text(shop.cdc("cdc cursor export shop"))
        shop.changed_file(next(shop.numbers))
        document = shop.cursor("drain")
        document["position"] = {"file": shop.file, "offset": offset_of(shop.server, shop.file, INSERTS) + further}
        (shop.folder / "store" / layout.cursor_key("shop", "drain")).write_text(json.dumps(document))

    return happens


CONTINUED = ("cdc cursor rewind shop --position {after}", "cdc snapshot shop '*.*'", *DRAINED)
RESTORED = ("cdc cursor restore shop --file {folder}/shop-cursors.json", *DRAINED)
NEXT_FILE = "cdc cursor rewind shop --position {after}, then cdc snapshot shop '*.*'"

STOPS = {
    "incident": Stop(
        "an event type that is not supported: …", edited(incident), DRAIN, nothing, then=CONTINUED, hint=NEXT_FILE
    ),
    "row_image": Stop("a row image is wrong: …", edited(short_image), DRAIN, nothing, then=CONTINUED, hint=NEXT_FILE),
    "cut_in_a_transaction": Stop(
        "a binlog file ends inside a transaction", edited(cut_in_a_transaction), DRAIN, nothing, then=CONTINUED,
        hint=NEXT_FILE,
    ),
    "savepoint": Stop(
        "a ROLLBACK TO of the savepoint …, which its transaction did not set", edited(unknown_savepoint), DRAIN, nothing,
        then=CONTINUED, hint=NEXT_FILE,
    ),
    "checksum": Stop("the CRC32 of a … event is wrong", other_bytes, DRAIN, nothing, then=CONTINUED, hint=NEXT_FILE),
    "checksum_on_the_way": Stop("the CRC32 of a … event is wrong", other_bytes, DRAIN, BinlogShop.put_back, then=DRAINED),
    "missing_transaction": Stop(
        "the stream does not follow the format: a length or a position is wrong", missing_transaction, DRAIN, nothing,
        then=CONTINUED, hint=NEXT_FILE,
    ),
    "dropped_before": Stop(
        "rows of a table that was dropped before", dropped_before, DRAIN, nothing, then=CONTINUED, hint="then cdc snapshot",
    ),
    "shorter_restored": Stop(
        "the file ended before the window's end …", shorter_after_the_plan, DRAIN, BinlogShop.put_back, then=DRAINED
    ),
    "shorter_continued": Stop(
        "the file ended before the window's end …", shorter_after_the_plan, DRAIN, nothing, then=CONTINUED, hint=NEXT_FILE
    ),
    "file_restored": Stop(
        "the server refused to send the binlog: … (error …)", file_removed, DRAIN, BinlogShop.put_back, then=DRAINED
    ),
    "rows_without_table_map": Stop(
        "rows without a table map event before them", edited(without_table_map), DRAIN, nothing, then=CONTINUED,
        hint=NEXT_FILE,
    ),
    "cursor_before_rows": Stop(
        "rows without a table map event before them", edited_cursor(0), DRAIN, nothing, then=RESTORED,
        hint="cdc cursor restore",
    ),
    "cursor_inside_an_event": Stop(
        "… is not the beginning of an event", edited_cursor(7), DRAIN, nothing, then=RESTORED, hint="cdc cursor restore",
    ),
}  # fmt: skip
OF_MYSQL = {
    "compression": Stop(
        "a transaction with an unknown compression (type …)", payload, DRAIN, nothing, then=CONTINUED, hint=NEXT_FILE
    ),
    "xa_statement": Stop(
        "an XA statement that is not understood: …", prepared(unknown_xa_statement), DRAIN, committed, then=CONTINUED,
        hint=NEXT_FILE,
    ),
    "xa_end": Stop(
        "an XA transaction that does not end in XA PREPARE", prepared(xa_transaction_that_ends_otherwise), DRAIN,
        committed, then=CONTINUED, hint=NEXT_FILE,
    ),
    "xa_prepare": Stop(
        "an XA PREPARE of … without the beginning of its transaction", prepared(without_xa_start), DRAIN, committed,
        then=CONTINUED, hint=NEXT_FILE,
    ),
}  # fmt: skip

OF_MARIADB = {
    "compressed_rows": Stop(
        "compressed rows cannot be read: …", compressed, DRAIN, nothing, then=CONTINUED, hint=NEXT_FILE
    ),
}


@pytest.mark.parametrize("flavor", ["mysql", "mariadb"])
def test_what_the_page_says_ends_each_stop_of_the_binlog_and_the_tables_are_equal_afterwards(
    request, flavor, tmp_path, lake, monkeypatch, subtests
):
    """Each prints its message with the commands of its hint, which succeed; the next file is read."""
    server, database = (request.getfixturevalue(f"{flavor}_{one}") for one in ("server", "database"))
    shop = BinlogShop.on_running_spark(server, database, tmp_path, lake, monkeypatch)
    shop.numbers = count(1)
    shop.runs(2)
    for name, stop in (STOPS | (OF_MYSQL if flavor == "mysql" else OF_MARIADB)).items():
        with subtests.test(name):
            try:
                stop.follow(shop)
            finally:
                shop.put_back()
    shop.change(90)
    shop.runs(1)
    while shop.cursor("lake")["position"] != shop.cursor("drain")["position"]:  # each epoch is a merge
        shop.runs(1)
    shop.assert_equal()
