"""Rows erased from lake and store on real servers, in every mode, and kept away afterwards."""

from __future__ import annotations

import itertools
import json

import pytest

from cdc_lib.erase import stored
from cdc_lib.errors import MergeConflict
from cdc_lib.store import documents
from cdc_lib.store.erasures import erasures
from spark_jobs import erase as erase_job
from tests.harness.shop.source import Shop

ANN, MAIL = 4711, "ann@lind.example"
EVE, OTHER = 4712, "eve@lind.example"


@pytest.fixture
def shop(mysql_server, mysql_database, tmp_path, lake, monkeypatch):
    return Shop.on_running_spark(mysql_server, mysql_database, tmp_path, lake, monkeypatch)


def with_two_persons(shop, **settings):
    """Let both persons be in snapshots, windows and the lake; the one is deleted then."""
    shop.write(**settings)
    shop.execute(f"INSERT INTO orders VALUES ({ANN}, '{MAIL}', 1)")
    shop.runs(2)
    shop.execute(f"INSERT INTO orders VALUES ({EVE}, '{OTHER}', 2)")
    shop.execute(f"UPDATE orders SET n = n + 1 WHERE id IN ({ANN}, {EVE})")
    shop.runs(1)
    shop.execute(f"DELETE FROM orders WHERE id = {ANN}")
    shop.runs(1)


def end_of(shop):
    """Return the end of the source's binlog."""
    file, offset = shop.server.execute("SHOW BINARY LOG STATUS")[0][:2]
    return f"{file}:{offset}"


def files_of(shop):
    """Return the Parquet files of windows with rows of ``orders``, in order."""
    keys = sorted(info.key for info in shop.store.list("shop/batches/"))
    return [key for key in keys if f"/{shop.database}.orders/part-" in key]


def left_of(shop, key, mail, code):
    return json.loads(shop.cdc(f"cdc lake find shop shop.orders {key} --value {mail} --json", code=code))


LAYOUTS = {
    "mirror": {"format_version": 2},
    "mirror, values in paths": {"write_mode": "copy_on_write", "partition_by": ["v"]},
    "soft_delete": {"partition_by": ["truncate(6, v)"]},
    "scd2": {"format_version": 2},
    "scd2, rewritten": {"write_mode": "copy_on_write", "partition_by": ["bucket(4, id)"], "sort_by": ["v"]},
    "append": {},
}
"""By mode, layouts that keep values of a row in other places too."""


@pytest.mark.parametrize("named", LAYOUTS)
def test_nothing_is_left_of_an_erased_row_and_all_is_left_of_others(shop, named):
    """In the lake, its snapshots, batches, chunks and raw events; the other person, who came and changed with the first, stays as she was."""
    mode, layout = named.partition(",")[0], {"tables": "*.orders", **LAYOUTS[named]}
    with_two_persons(shop, raw_archive=True, modes=[{"tables": "*.orders", "mode": mode}], layouts=[layout])
    before = shop.sql("SELECT * FROM {t} WHERE id <> " + str(ANN))
    known = left_of(shop, EVE, OTHER, 1)
    erased = json.loads(shop.cdc(f"cdc lake erase shop shop.orders {ANN} --columns v --json").splitlines()[-1])
    assert (erased["found"], erased["unread"]) == ([], [])
    assert left_of(shop, ANN, MAIL, 0)["objects"] > 20
    assert sorted(map(str, shop.sql("SELECT * FROM {t}"))) == sorted(map(str, before))
    kinds = {one["kind"] for one in left_of(shop, EVE, OTHER, 1)["found"]}
    assert kinds >= {one["kind"] for one in known["found"]} - {"raw events"}
    if mode == "mirror":
        shop.assert_equal()
    shop.change(1)
    shop.execute(f"UPDATE orders SET n = n + 1 WHERE id = {EVE}")
    shop.runs(1)
    assert left_of(shop, ANN, MAIL, 0)["found"] == []


@pytest.mark.parametrize("version", [2, 3])
def test_the_bounds_of_a_removed_file_go_with_it(shop, version):
    """One commit wrote the file of a row's past and the file of another row: their manifest stays, and named the removed one."""
    layout = {"tables": "*.orders", "format_version": version}
    shop.write(modes=[{"tables": "*.orders", "mode": "scd2"}], layouts=[layout])
    shop.runs(2)
    shop.execute(f"INSERT INTO orders VALUES ({ANN}, '{MAIL}', 1), ({EVE}, '{OTHER}', 2)")
    shop.execute(f"DELETE FROM orders WHERE id = {ANN}")
    shop.runs(1)
    shop.cdc(f"cdc lake erase shop shop.orders --where \"v = '{MAIL}'\" --value {MAIL} --yes")
    assert left_of(shop, ANN, MAIL, 0)["found"] == []
    shop.execute(f"UPDATE orders SET n = n + 1 WHERE id = {EVE}")
    shop.runs(1)
    assert shop.sql(f"SELECT n FROM {{t}} WHERE id = {EVE} AND _is_current") == [(3,)]
    shop.cdc("cdc verify shop")


@pytest.mark.parametrize("mode", ["append", "soft_delete"])
def test_an_erased_row_does_not_come_back(shop, mode):
    """By no rewind, backfill or refill; and a new row of the same key comes, and stays."""
    begin = end_of(shop)
    with_two_persons(shop, raw_archive=True, modes=[{"tables": "*.orders", "mode": mode}])
    shop.cdc(f"cdc lake erase shop shop.orders {ANN} --value {MAIL} --yes")
    shop.cdc("cdc backfill shop shop.orders")
    assert left_of(shop, ANN, MAIL, 0)["found"] == []
    shop.lose(files_of(shop)[0])
    shop.cdc("cdc batches refill shop")
    shop.cdc("cdc verify windows shop")
    assert left_of(shop, ANN, MAIL, 0)["found"] == []
    shop.cdc(f"cdc cursor rewind shop --position {begin} --why test")
    shop.runs(2)
    assert left_of(shop, ANN, MAIL, 0)["found"] == []
    assert shop.sql(f"SELECT count(*) FROM {{t}} WHERE id = {EVE}")[0][0]
    shop.execute(f"INSERT INTO orders VALUES ({ANN}, 'again', 3)")
    shop.runs(1)
    assert shop.sql(f"SELECT v, n FROM {{t}} WHERE id = {ANN}") == [("again", 3)]
    assert left_of(shop, EVE, OTHER, 1)["found"]


def test_what_is_not_erased_says_why_and_what_to_do(shop, monkeypatch):
    """While the source has the row, the lake has not merged its delete, or the table has no key."""
    shop.write()
    shop.execute(f"INSERT INTO orders VALUES ({ANN}, '{MAIL}', 1)")
    shop.execute("CREATE TABLE notes (v VARCHAR(20))")
    shop.execute("INSERT INTO notes VALUES ('x')")
    shop.runs(2)
    refused = shop.cdc(f"cdc lake erase shop shop.orders {ANN} --yes", code=2)
    assert "the source still has 1 row of these" in refused
    assert erasures(shop.store, "shop") == []
    shop.execute(f"DELETE FROM orders WHERE id = {ANN}")
    waits = shop.cdc(f"cdc lake erase shop shop.orders {ANN} --yes", code=1)
    assert "not merged up to" in waits
    assert "cdc run shop" in waits
    shop.runs(1)
    with monkeypatch.context() as patched:
        patched.setattr(stored.StoredRowsEraser, "remove", lambda *_: 0)
        left = shop.cdc(f"cdc lake erase shop shop.orders {ANN} --value {MAIL} --yes", code=1)
    assert "left something: let a run merge, then run the same command again" in " ".join(left.split())
    shop.change(1)
    assert "not merged up to" in shop.cdc(f"cdc lake erase shop shop.orders {ANN} --yes", code=1), "it begins later now"
    shop.runs(1)
    done = shop.cdc(f"cdc lake erase shop shop.orders {ANN} --value {MAIL} --yes")
    assert "0 places of" in done
    assert len(erasures(shop.store, "shop")) == 1, "each command went on with the erasure of the first"
    keyless = shop.cdc(f"cdc lake erase shop {shop.database}.notes --where \"v = 'x'\" --yes", code=2)
    assert "the lake table has no key" in keyless
    shop.assert_equal()


def test_the_keys_of_many_rows_are_in_a_file(shop):
    """A mirror has forgotten them: no condition finds them. Rows whose keys differ in one part stay."""
    name, keys = f"{shop.database}.members", shop.folder / "left.csv"
    shop.write(raw_archive=True)
    shop.execute("CREATE TABLE members (country VARCHAR(20), id INT, v VARCHAR(40), PRIMARY KEY (country, id))")
    everybody = [(country, number) for country in ("de", "fr, it") for number in (1, 2, 3)]
    rows = ", ".join(f"('{country}', {number}, '{country}.{number}@lind.example')" for country, number in everybody)
    shop.execute(f"INSERT INTO members VALUES {rows}")
    shop.runs(2)
    shop.execute("DELETE FROM members WHERE (country, id) IN (('de', 1), ('fr, it', 2))")
    shop.runs(1)
    keys.write_text('\ufeffde,1\n\n"fr, it",2\n', encoding="utf-8")
    assert json.loads(shop.cdc(f"cdc lake find shop {name} --keys {keys} --json", code=1))["found"]
    assert "is complete" in shop.cdc(f"cdc lake erase shop {name} --keys {keys} --yes --columns v")
    assert json.loads(shop.cdc(f"cdc lake find shop {name} --keys {keys} --json"))["found"] == []
    assert [len(one.digests) for one in erasures(shop.store, "shop")] == [2]
    left = [one for one in everybody if one not in {("de", 1), ("fr, it", 2)}]
    assert sorted(shop.lake.rows(name, "country", "id")) == sorted(left)
    for text, message in (("", "has no key"), ("de", "the key has 2 parts, not 1: de"), ("de,x", "takes")):
        keys.write_text(text, encoding="utf-8")
        assert message in shop.cdc(f"cdc lake erase shop {name} --keys {keys} --yes", code=2)
    keys.unlink()
    assert "cannot be read: No such file" in shop.cdc(f"cdc lake erase shop {name} --keys {keys} --yes", code=2)
    assert "Give one of them" in shop.cdc(f"cdc lake erase shop {name} de 1 --keys {keys} --yes", code=2)
    shop.assert_equal()


def test_a_row_that_the_source_keeps_goes_from_the_lake_alone(shop):
    shop.write()
    shop.execute(f"INSERT INTO orders VALUES ({ANN}, '{MAIL}', 1)")
    shop.runs(2)
    shop.cdc(f"cdc lake erase shop shop.orders --where \"v = '{MAIL}'\" --columns v --lake-only --yes")
    assert left_of(shop, ANN, MAIL, 0)["found"] == []
    shop.runs(1)
    assert left_of(shop, ANN, MAIL, 0)["found"] == []
    assert shop.sql(f"SELECT count(*) FROM {{t}} WHERE id = {ANN}")[0][0] == 0


KEYS = {
    "BIGINT UNSIGNED": ("18446744073709551615", "7"),
    "DECIMAL(20, 4)": ("12.5000", "12.5001"),
    "VARCHAR(40) COLLATE utf8mb4_bin": ("'ann lind'", "'ANN lind'"),
    "DATETIME(3)": ("'2026-01-02 03:04:05.678'", "'2026-01-02 03:04:05.679'"),
    "TIMESTAMP(6)": ("'2026-01-02 03:04:05.678901'", "'2026-01-02 03:04:05.678902'"),
    "DATE": ("'1969-12-31'", "'1970-01-01'"),
    "BINARY(4)": ("X'00FF0000'", "X'00FF0001'"),
    "BIT(9)": ("b'100000001'", "b'1'"),
    "ENUM('a', 'b')": ("'b'", "'a'"),
    "TINYINT(1)": ("1", "0"),
    "YEAR": ("1999", "2000"),
    "TIME(2)": ("'-12:34:56.78'", "'12:34:56.78'"),
}
"""By type, the part of a key that is erased, and one that stays."""


def test_a_row_is_found_by_a_key_of_any_type_wherever_it_is(shop):
    """In chunks and windows keys may have other types than in the lake. Rows whose keys differ in one part stay."""
    shop.write(modes=[{"tables": "*.*", "mode": "append"}])
    columns = ", ".join(f"k{number} {kind}" for number, kind in enumerate(KEYS))
    parts = [f"k{number}" for number in range(len(KEYS))]
    shop.execute(f"CREATE TABLE typed ({columns}, v VARCHAR(20), PRIMARY KEY ({', '.join(parts)}))")
    erased = [one for one, _ in KEYS.values()]
    others = [[*erased[:number], stays, *erased[number + 1 :]] for number, (_, stays) in enumerate(KEYS.values())]
    values = [(*erased, f"'{MAIL}'"), *((*key, f"'{number}'") for number, key in enumerate(others))]
    rows = ", ".join("(" + ", ".join(row) + ")" for row in values)
    shop.execute(f"INSERT INTO typed VALUES {rows}")
    shop.runs(2)
    of_erased = " AND ".join(f"{name} = {value}" for name, value in zip(parts, erased, strict=True))
    shop.execute(f"UPDATE typed SET v = '{MAIL}2' WHERE {of_erased}")
    shop.execute(f"DELETE FROM typed WHERE {of_erased}")
    shop.runs(1)
    name = f"{shop.database}.typed"
    shop.cdc(f"cdc lake erase shop {name} --where \"v = '{MAIL}'\" --value {MAIL} --yes")
    assert sorted(shop.lake.rows(name, "v")) == sorted((str(number),) for number in range(len(KEYS)))


def test_an_erasure_that_is_killed_anywhere_goes_on_when_it_is_run_again(shop, monkeypatch):
    """At each point at which something is written: what was done stays, and no point loses another row."""
    with_two_persons(shop, raw_archive=True, modes=[{"tables": "*.orders", "mode": "soft_delete"}])
    before = sorted(map(str, shop.sql(f"SELECT * FROM {{t}} WHERE id <> {ANN}")))
    command = f"cdc lake erase shop shop.orders {ANN} --value {MAIL} --yes"
    for module, name, call in KILLED_AT:
        with monkeypatch.context() as patched:
            patched.setattr(module, name, killed(getattr(module, name), call))
            assert "killed" in shop.cdc(command, code=1)
    shop.execute(f"UPDATE orders SET n = n + 1 WHERE id = {EVE}")
    shop.runs(1)
    assert left_of(shop, ANN, MAIL, 1)["found"]
    assert "0 places of" in shop.cdc(command)
    assert left_of(shop, ANN, MAIL, 0)["found"] == []
    now = sorted(map(str, shop.sql(f"SELECT * FROM {{t}} WHERE id <> {ANN}")))
    assert len(now) == len(before)
    assert len(erasures(shop.store, "shop")) == 1
    assert shop.rows("orders") == shop.source_rows("orders")


KILLED_AT = (
    (erase_job, "maintain", 1),
    (erase_job, "_publish", 1),
    (stored, "batch_writer", 2),
    (documents, "changed", 2),
)
"""Module, function, and the number of the call that is not reached."""


def killed(function, call):
    """Return a function whose call of a number ends like a process that is killed."""
    calls = itertools.count(1)

    def work(*arguments, **named):
        if next(calls) == call:
            raise MergeConflict("killed", hint="")
        return function(*arguments, **named)

    return work


def test_of_tables_that_share_a_lake_table_one_loses_the_row(shop):
    """The other one has a row of that key, which stays; the key in the lake has a column more."""
    route = {"tables": f"{shop.database}.*", "into": f"{shop.database}.all_rows", "keys": ["table"]}
    shop.write(routes=[route], modes=[{"tables": "*.*", "mode": "soft_delete"}])
    shop.execute(f"INSERT INTO orders VALUES ({ANN}, '{MAIL}', 1)")
    shop.execute(f"INSERT INTO `lines` VALUES ({ANN}, 'stays', 1)")
    shop.runs(2)
    shop.execute(f"DELETE FROM orders WHERE id = {ANN}")
    shop.runs(1)
    shop.cdc(f"cdc lake erase shop shop.orders --where \"v = '{MAIL}'\" --value {MAIL} --yes")
    name = f"{shop.database}.all_rows"
    rows = shop.lake.rows(name, "id", "v")
    assert [row for row in rows if row[0] == ANN] == [(ANN, "stays")]
    assert len(rows) == len(shop.source_rows("orders")) + len(shop.source_rows("lines"))
