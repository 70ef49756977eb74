"""The search for a row over a real server and lake, after it was deleted; and the commands that remove it."""

from __future__ import annotations

import json
import time

import pytest

from tests.harness.shop.source import Shop

ANN, MAIL = 4711, "ann@lind.example"


@pytest.mark.parametrize("mode", ["mirror", "scd2", "append", "soft_delete"])
def test_a_deleted_row_is_found_in_each_place_that_has_it(
    mysql_server, mysql_database, tmp_path, lake, monkeypatch, mode
):
    """In lake files and their manifests, batches and raw events, by its key and by what it held; the rows beside it are not."""
    shop = Shop.on_running_spark(mysql_server, mysql_database, tmp_path, lake, monkeypatch)
    shop.write(raw_archive=True, modes=[{"tables": "*.orders", "mode": mode}])
    shop.runs(2)
    shop.execute(f"INSERT INTO orders VALUES ({ANN}, '{MAIL}', 1), (4712, 'eve@lind.example', 2)")
    shop.execute(f"INSERT INTO `lines` VALUES ({ANN}, 'x', 1)")
    shop.runs(1)
    shop.execute(f"DELETE FROM orders WHERE id = {ANN}")
    shop.runs(1)
    found = json.loads(shop.cdc(f"cdc lake find shop shop.orders {ANN} --columns v --json", code=1))
    assert found["unread"] == []
    places = {(one["kind"], one["place"].rpartition(".")[2]) for one in found["found"]}
    assert {("lake", "parquet"), ("lake", "avro"), ("batch", "parquet"), ("raw events", "zst")} <= places
    assert not any("lines" in one["place"] for one in found["found"])
    events = [one for one in found["found"] if one["kind"] == "raw events"]
    assert "bytes of events" in {one["what"] for one in events}
    assert [one["what"] for one in events if "row," in one["what"]] == ["1 row, 1 cell of events"] * 2
    by_key = json.loads(shop.cdc(f"cdc lake find shop shop.orders {ANN} --json", code=1))
    assert {one["place"] for one in by_key["found"]} == {one["place"] for one in found["found"]}
    nothing = shop.cdc("cdc lake find shop shop.orders 4713")
    assert nothing.startswith("0 places of ")
    by_condition = json.loads(shop.cdc("""cdc lake find shop shop.orders --where "v LIKE 'eve@%'" --json""", code=1))
    assert len(by_condition["found"]) > 3
    assert "no row" not in shop.cdc("cdc lake find shop shop.orders --value eve@lind.example", code=1)
    shop.cdc("cdc lake find shop shop.orders", code=2)
    shop.cdc("cdc lake find shop shop.orders 1 2", code=2)
    shop.cdc("""cdc lake find shop shop.orders --where "v = 'nobody'" """, code=2)


def test_a_deleted_row_is_nowhere_after_purges_and_retention(mysql_server, mysql_database, tmp_path, lake, monkeypatch):
    """Its file is written again, a later merge lets its snapshots go, its batches are removed; no other row is lost."""
    shop = Shop.on_running_spark(mysql_server, mysql_database, tmp_path, lake, monkeypatch)
    shop.write(
        store={"url": f"file://{tmp_path}/store", "keep_batches_for": "1s"},
    )
    shop.execute(f"INSERT INTO orders VALUES ({ANN}, '{MAIL}', 1)")
    shop.runs(2)
    shop.execute(f"DELETE FROM orders WHERE id = {ANN}")
    shop.runs(1)
    asked = f"cdc lake find shop shop.orders {ANN} --value {MAIL} --json"
    shop.cdc("cdc lake maintain shop shop.orders")
    assert _lake_files(shop.cdc(asked, code=1)), "a daily maintenance leaves a row of a file of forty"
    shop.cdc("cdc lake maintain shop shop.orders --purge")
    assert _lake_files(shop.cdc(asked, code=1)), "the last merge's snapshot has it"
    shop.cdc("cdc snapshot shop shop.orders --key-from 1 --key-to 1")
    shop.runs(2)
    shop.cdc("cdc lake maintain shop shop.orders --purge")
    assert not _lake_files(shop.cdc(asked, code=1))
    time.sleep(2)
    shop.cdc("cdc batches gc shop --yes")
    left = json.loads(shop.cdc(asked))
    assert (left["found"], left["unread"]) == ([], [])
    assert left["objects"] > 20
    shop.assert_equal()


def _lake_files(answer):
    return [one["place"] for one in json.loads(answer)["found"] if one["kind"] == "lake"]
