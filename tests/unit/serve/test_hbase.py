"""Rows and scans by the paths of HBase's REST server, over a real server."""

from __future__ import annotations

import re
from base64 import b64decode
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import httpx
import pytest

from cdc_lib.config import load_source
from cdc_lib.serve.app import make_app
from cdc_lib.serve.catalog import CutCatalog
from cdc_lib.store.objects.open import open_store
from tests.harness.docs.pages import ROOT
from tests.harness.lake.archived_source import Source, time, with_every_kind
from tests.harness.lake.batches import START_TIME
from tests.harness.lake.small_lake import SmallLake, row
from tests.harness.store.rest_catalog import serving

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
SOURCE = """
server: {{host: 127.0.0.1, user: cdc, password_env: SHOP_PASSWORD}}
tables: ["shop.*"]
store: {{url: "file://{folder}/store"}}
lake: {{type: jdbc, uri: "jdbc:sqlite:{folder}/cat.db", warehouse: "file://{folder}/lake"}}
"""


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Three tables in two cuts; the key of ``changes`` is a text, one of them with a slash; ``people`` have batches."""
    folder = tmp_path_factory.mktemp("hbase")
    (folder / "shop.yaml").write_text(SOURCE.format(folder=folder))
    (folder / "cat.db").touch()
    source = Source(folder, load_source(folder / "shop.yaml"))
    with_every_kind(source)
    lake = source.lake
    orders = lake.make("orders", [row("de", 2, "zwei"), row("de", 10, "größer"), row("at", 5, None)])
    words = [row("b", 1, "old", 5), row("b", 2, "new", 9), row("a/c", 1, "slash"), row("a", 1, "y")]
    changes = lake.make("changes", words, "append", key=("country",))
    lake.cut(1, NOON, orders, changes)
    lake.add(orders, [row("fr", 1, "later")])
    lake.cut(2, NOON + timedelta(hours=1), orders, changes, source.table)
    with serving(make_app({"shop": CutCatalog(lake.config, open_store(lake.config.store), lake.catalog)}, "x")) as url:
        yield url
    lake.catalog.close()


@pytest.fixture
def get(address):
    """Ask for a path below the source's address."""

    def ask(path, accept="application/json", token="x"):
        headers = {"Accept": accept, "Authorization": f"Bearer {token}"}
        return httpx.get(f"{address}/hbase/shop/{path}", headers=headers)

    return ask


def cells(answer):
    """The cells of each row of an answer, decoded, by row key."""
    assert answer.status_code == 200, answer.text
    return [
        (b64decode(one["key"]), [(b64decode(cell["column"]), b64decode(cell["$"])) for cell in one["Cell"]])
        for one in answer.json()["Row"]
    ]


def path(table, key, rest=""):
    return f"{table}/{quote(key, safe='')}{rest}"


def test_a_row_has_its_cells_in_base64(get):
    """All columns, sorted; one column; a family; NULL has no cell."""
    answer = get(path("shop.orders", '["de",2]'))
    [(key, found)] = cells(answer)
    assert key == b'["de",2]'
    assert [cell for cell in found if cell[0].startswith(b"d:")] == [
        (b"d:country", b"de"), (b"d:id", b"2"), (b"d:name", b"zwei"), (b"d:raw", b"\x00\xff"),
    ]  # fmt: skip
    assert found == sorted(found)
    assert answer.json()["Row"][0]["Cell"][0].keys() == {"column", "timestamp", "$"}
    [(_, found)] = cells(get(path("shop.orders", '["de",10]', "/d:name,cdc:offset")))
    assert found == [(b"cdc:offset", b"1"), (b"d:name", "größer".encode())]
    assert {name for name, _ in cells(get(path("shop.orders", '["at",5]', "/d")))[0][1]} == {
        b"d:country", b"d:id", b"d:raw",
    }  # fmt: skip


def test_a_row_that_does_not_exist_is_not_found(get):
    """Also a cell that is NULL, and a table or source that is not there."""
    for one in (path("shop.orders", '["de",3]'), path("shop.orders", '["at",5]', "/d:name"), "shop.none/1"):
        assert get(one).status_code == 404


def test_versions_come_newest_first(get):
    """As many as ``v`` says, one without it; a row key may hold a slash; times are milliseconds."""
    names = [value for _, value in cells(get("shop.changes/b/d:name?v=5"))[0][1]]
    assert names == [b"new", b"old"]
    assert [value for _, value in cells(get("shop.changes/b/d:name"))[0][1]] == [b"new"]
    assert cells(get(path("shop.changes", "a/c", "/d:name")))[0][1] == [(b"d:name", b"slash")]
    first, last = (int(time(second).timestamp() * 1000) for second in (5, 9))
    assert [value for _, value in cells(get(f"shop.changes/b/d:name/{first},{last}?v=5"))[0][1]] == [b"old"]
    assert len(cells(get(f"shop.changes/b/d:name/{first},{last + 1}?v=5"))[0][1]) == 2
    assert get(f"shop.changes/b/d:name/{last + 1},{last + 5}").status_code == 404


def test_versions_of_a_mirror_are_those_that_batches_have(get):
    """A delete has no cells and does not count; of a table without batches it is one."""
    asked = path("shop.people", '["de",1]', "/d:name")
    for count, names in ((1, [b"new"]), (2, [b"new", b"updated"]), (9, [b"new", b"updated", b"read"])):
        assert [value for _, value in cells(get(f"{asked}?v={count}"))[0][1]] == names
    until = int(time(130).timestamp() * 1000)
    assert [value for _, value in cells(get(f"{asked}/{until}?v=9"))[0][1]] == [b"updated", b"read"]
    assert len(cells(get(path("shop.orders", '["de",2]', "/d:name?v=9")))[0][1]) == 1


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("shop.orders/*", ['["at",5]', '["de",2]', '["de",10]', '["fr",1]']),
        ("shop.orders/*?limit=2", ['["at",5]', '["de",2]']),
        ('shop.orders/*?startrow=["de",10]', ['["de",10]', '["fr",1]']),
        ('shop.orders/*?startrow=["de",2]&endrow=["fr",1]', ['["de",2]', '["de",10]']),
        ("shop.orders/*?reversed=true&limit=1", ['["fr",1]']),
        ("shop.orders/*?column=d:name&limit=2", ['["de",2]', '["de",10]']),
        ('shop.orders/["de"]*', ['["de",2]', '["de",10]']),
        ("shop.changes/a*", ["a", "a/c"]),
        ('shop.orders/*?cut=2026-01-31T12:30:00Z&startrow=["fr",1]', []),
    ],
)  # fmt: skip
def test_a_scan_is_in_the_order_of_the_lake(get, asked, expected):
    """By a prefix or between two rows; rows without the asked columns do not count; as of a cut."""
    assert [key.decode() for key, _ in cells(get(asked))] == expected


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("shop.orders", "the path is not table/row/columns/timestamps"),
        ("shop.orders/*?filter=x", "a scan has no parameter filter"),
        ("shop.orders/*?limit=0", "limit is a number from 1 on"),
        ("shop.orders/*?limit=100001", "one scan returns at most 100000 rows"),
        ("shop.changes/a*?startrow=a", "either a prefix or rows at which it starts and ends"),
        ("shop.changes/b?v=x", "v is a number from 1 on"),
        (f"shop.changes/b?v=1{'0' * 21}", "v is a number from 1 on"),
        (f"shop.changes/b?v={'1' * 5000}", "v is a number from 1 on"),
        (f"shop.orders/*?limit={'1' * 5000}", "limit is a number from 1 on"),
        (f"shop.changes/b/d/{'1' * 5000}", "is not a timestamp"),
        ("shop.changes/b/d/now", "is not a timestamp"),
        ("shop.changes/b/e:name", "Families are d and cdc"),
        ("shop.changes/%FF/d:name", "is not UTF-8"),
        ("%FF/b", "is not UTF-8"),
        ("shop.changes/b/d/%FF", "is not UTF-8"),
        ("shop.orders/*?cut=noon", "has no cut"),
    ],
)
def test_a_wrong_request_says_why(get, asked, message):
    answer = get(asked)
    assert answer.status_code == 400
    assert message in answer.json()["error"]["message"]


def test_only_json_is_answered_and_only_with_the_token(get, address):
    """Writes are refused."""
    assert get("shop.changes/b", accept="text/xml").status_code == 406
    assert get("shop.changes/b", accept="text/xml, */*;q=0.1").status_code == 200
    assert get("shop.changes/b", token="y").status_code == 401
    written = httpx.put(f"{address}/hbase/shop/shop.changes/b", headers={"Authorization": "Bearer x"})
    assert written.status_code == 406
    assert "can be read, and nothing else" in written.json()["error"]["message"]


def test_a_scan_that_is_too_large_is_refused_and_not_cut_off(get, monkeypatch):
    """Without a limit no row is left out in silence."""
    monkeypatch.setattr("cdc_lib.serve.hbase.MOST_ROWS", 3)
    answer = get("shop.orders/*")
    assert answer.status_code == 400
    assert "one scan returns at most" in answer.json()["error"]["message"]
    assert len(cells(get("shop.orders/*?limit=3"))) == 3


OF_THE_GUIDE = re.findall(r"^GET (\S+)", (ROOT / "docs" / "guides" / "reading.md").read_text(), re.MULTILINE)


@pytest.fixture(scope="module")
def guide(tmp_path_factory):
    """The table of the guide, whose column ``state`` is here ``name``; its rows were committed between the two times of the guide."""
    folder = tmp_path_factory.mktemp("guide")
    (folder / "shop.yaml").write_text(SOURCE.format(folder=folder))
    (folder / "cat.db").touch()
    lake = SmallLake(load_source(folder / "shop.yaml"))
    since = int(1_769_862_000 - START_TIME.timestamp())
    rows = [row("de", number, "sent", since + number) for number in (42, 500, 599, 600)]
    orders = lake.make("orders", [*rows, row("de", 42, "new", since)], "append", key=("id",))
    lake.cut(1, NOON, orders)
    with serving(make_app({"shop": CutCatalog(lake.config, open_store(lake.config.store), lake.catalog)}, "x")) as url:
        yield url
    lake.catalog.close()


@pytest.mark.parametrize("asked", OF_THE_GUIDE)
def test_a_path_of_the_guide_is_answered(guide, asked):
    """As it is printed there."""
    answer = httpx.get(f"{guide}{asked}".replace("d:state", "d:name"), headers={"Authorization": "Bearer x"})
    assert answer.status_code == 200, answer.text
    assert [cell for one in answer.json()["Row"] for cell in one["Cell"]]


def test_there_are_paths_of_the_guide_to_ask_for():
    assert len(OF_THE_GUIDE) == 6
