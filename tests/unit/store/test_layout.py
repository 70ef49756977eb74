"""Keys are where the layout says, for tables of any name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_lib.errors import ConfigError
from cdc_lib.model.folder import LONGEST_FOLDER
from cdc_lib.model.position import Position
from cdc_lib.model.window import SnapshotTask, TaskRange, Window
from cdc_lib.store import layout
from cdc_lib.store.objects.keys import check_key

WINDOW = Window("shop", 1, Position("binlog.000012", 4), Position("binlog.000013", 126))
TASK = SnapshotTask("shop", 1, "000012.000000000004", "shop", "orders")


def test_a_window_has_one_folder_with_its_manifest():
    """The data files lie beside it, by table."""
    manifest = layout.manifest_key(WINDOW)
    folder = "shop/batches/000001/000001-000012.000000000004-000013.000000000126"
    assert manifest == f"{folder}/manifest.json"
    assert layout.beside(manifest, layout.part_path("shop.orders", 3)) == f"{folder}/shop.orders/part-00003.parquet"
    assert manifest.startswith(layout.batches_prefix("shop"))
    assert manifest.startswith(layout.batches_prefix("shop", 1))


def test_a_chunk_has_one_folder_with_its_manifest_and_parts():
    """Chunks of a table are listed in their order."""
    manifest = layout.chunk_manifest_key(TASK, 7)
    folder = "shop/snapshots/000012.000000000004/shop.orders/000007"
    assert manifest == f"{folder}/manifest.json"
    assert layout.beside(manifest, layout.chunk_part_path(0)) == f"{folder}/part-00000.parquet"
    assert manifest.startswith(layout.chunks_prefix(TASK))


def test_the_chunks_of_a_range_have_its_number():
    """No two ranges, and no undivided snapshot, share a name; the key says which chunk of which it is."""
    ranges = (TaskRange(None, ("5",), chunks=1), TaskRange(("5",), ("9",)), TaskRange(("9",), None, chunks=2))
    task = replace(TASK, ranges=ranges)
    folder = "shop/snapshots/000012.000000000004/shop.orders"
    last = task.parts[2]
    assert layout.chunk_manifest_key(last, 7) == f"{folder}/002-000007/manifest.json"
    assert layout.chunk_of(layout.chunk_manifest_key(last, 7)) == (layout.range_prefix(last), 7)
    assert layout.chunk_of(layout.chunk_manifest_key(TASK, 7)) == (layout.range_prefix(TASK), 7)
    assert layout.chunk_manifest_key(last, 7).startswith(layout.chunks_prefix(TASK))
    acknowledged = [layout.chunk_manifest_key(task, number) for number in range(3)]
    assert [key.split("/")[-2] for key in acknowledged] == ["000-000000", "002-000000", "002-000001"]


def test_cursors_and_cuts_are_one_document_each():
    """Named by consumer and by merge."""
    assert layout.cursor_key("shop", "drain") == "shop/cursors/drain.json"
    assert layout.cut_key("shop", "m-1") == "shop/cuts/m-1.json"


@pytest.mark.parametrize(
    ("table", "folder"),
    [
        ("shop.orders", "shop.orders"),
        ("Shop-1.order_lines$x", "Shop-1.order_lines$x@-1"),
        ("shop.a/b", "shop.a@002fb"),
        ("shop.a b", "shop.a@0020b"),
        ("shop.[ab]*?", "shop.@005bab@005d@002a@003f"),
        ("店.注文", "@5e97.@6ce8@6587"),
        ("shop.`..`", "shop.@002e@002e"),
        ("w.`y.z`", "w.y@002ez"),
        ("`w.y`.z", "w@002ey.z"),
        ("_hidden.t", "@005fhidden.t"),
        ("a@b.c", "a@0040b.c"),
    ],
)
def test_a_table_with_any_name_is_one_part_of_a_key(table, folder):
    """No pattern, no folder, nothing hidden, and two tables never share one."""
    assert layout.table_folder(table) == folder
    assert check_key(folder) == folder


def test_long_names_are_cut_and_stay_apart():
    """Sixty-four characters each, which no file name could hold when they are escaped."""
    one, other = (layout.table_folder("店" * 64 + "." + "注" * 63 + last) for last in "文章")
    assert one != other
    assert len(one) <= LONGEST_FOLDER
    assert check_key(one) == one


@pytest.mark.parametrize("name", ["", "a/b", "..", ".x", "a b", "ä", "x" * 151])
def test_names_that_are_no_names_are_refused(name):
    """Those of sources, consumers, snapshots and merges."""
    for key in (
        lambda: layout.batches_prefix(name),
        lambda: layout.cursor_key("shop", name),
        lambda: layout.cut_key("shop", name),
        lambda: layout.chunks_prefix(SnapshotTask("shop", 1, name, "shop", "orders")),
    ):
        with pytest.raises(ConfigError):
            key()
