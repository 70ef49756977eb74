"""After a merge the rows that it changed are compared with the source by their keys, and nothing else is."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from cdc_airflow.operators.merge import MergeOperator
from cdc_airflow.operators.spark_job import SparkJobOperator
from cdc_lib.cli import job as cli_job
from cdc_lib.config.verify import VerifyConfig
from cdc_lib.model.table_name import TableName
from cdc_lib.store.after_merge import last_after_merge
from cdc_lib.store.cuts import last_cut
from cdc_lib.store.objects.local import LocalStore
from tests.harness.lake.verify import Compared
from tests.harness.shop.source import Shop
from tests.integration.drain.test_drain_types import COLUMNS
from tests.integration.spark.test_verify import filled


@pytest.fixture
def source(any_server, database, tmp_path, lake):
    return Compared(any_server, database, tmp_path, lake, verify={"after_merge": 1000})


def wrong(found):
    return sorted((row.kind, *row.key.values(), *row.columns) for row in found.differences)


def test_rows_of_every_type_are_equal_and_one_changed_cell_of_each_type_is_found(source):
    """Each with its key, its column, the merge, and the batch that brought the row; a later merge keeps the record."""
    declared = ", ".join(f"{name} {kind}" for name, (kind, _) in COLUMNS.items())
    source.execute(f"CREATE TABLE a (id INT PRIMARY KEY, {declared})")
    source.round()
    rows = len(COLUMNS)
    values = [", ".join(cells[i] for _, cells in COLUMNS.values()) for i in (0, 1)]
    for number in range(1, 2 * rows + 1):
        source.execute(f"INSERT INTO a VALUES ({number}, {values[number > rows]})")
    source.execute(f"INSERT INTO a (id) VALUES ({2 * rows + 1})")
    source.unlogged(
        *(f"UPDATE a SET {name} = {two} WHERE id = {i}" for i, (name, (_, (_, two))) in enumerate(COLUMNS.items(), 1))
    )
    found = source.checked("a")
    assert (found.skipped, found.compared, found.equal, found.in_flight) == ("", 2 * rows + 1, rows + 1, 0)
    assert (found.changes, found.sampled, found.equal_at) == (2 * rows + 1, False, None)
    assert wrong(found) == sorted(("different", str(i), name) for i, name in enumerate(COLUMNS, 1))
    cut = last_cut(source.capture.store, "shop")
    (batch,) = {row.batch for row in found.differences}
    assert source.capture.manifest(batch).window.stop == cut.position
    assert {(row.merge_id, row.position) for row in found.differences} == {(cut.merge_id, cut.position)}
    assert (found.position, found.gtid_set) == (cut.position, cut.gtid_set)

    source.execute(f"UPDATE a SET i8 = 1 WHERE id = {2 * rows + 1}")
    later = source.checked("a")
    assert (later.compared, later.equal, later.differences) == (1, 1, found.differences)
    assert later.equal_position == later.position != found.position


def test_rows_with_every_kind_of_key_are_found_and_deleted_ones_are_missing_on_both_sides(source):
    """A row that only one side lacks is wrong; a table without a key is left to the comparison of the whole table."""
    filled(source)
    source.execute("DELETE FROM tenants WHERE id IN (25, 26)")
    source.execute("UPDATE tenants SET v = 'x', t = 9 WHERE id = 31")
    source.execute("DELETE FROM texts WHERE v = 7")
    source.execute("INSERT INTO texts VALUES ('Ü', 1)")
    source.execute("UPDATE bytes SET v = -v WHERE k = CHAR(35, 0)")
    source.execute("UPDATE days SET v = 0 WHERE d = '2024-02-29'")
    source.execute("DELETE FROM list WHERE a = 3")
    source.unlogged(
        "INSERT INTO tenants VALUES (1, 26, 'back')", "DELETE FROM texts WHERE v = 1 AND k = 'Ü'",
        "UPDATE bytes SET v = 0 WHERE k = CHAR(35, 0)", "UPDATE days SET v = 7 WHERE d = '2024-02-29'",
    )  # fmt: skip
    source.drain()
    after = source.merge_and_check()
    tables = {one.table.pair[1]: one for one in after.tables}
    assert {name: (one.compared, wrong(one)) for name, one in tables.items() if not one.skipped} == {
        "tenants": (4, [("missing", "1", "26")]),
        "texts": (2, [("extra", "Ü")]),
        "bytes": (1, [("different", "2300", "v")]),
        "days": (1, [("different", "2024-02-29", "v")]),
    }
    assert tables["list"].skipped == "it has no key by which its rows could be found"


def test_a_row_that_changes_after_the_cut_is_in_flight_and_a_wrong_one_is_found_with_the_merges_that_follow(source):
    """While the source never rests, so that the lake is never at its position."""
    source.execute("CREATE TABLE a (id INT PRIMARY KEY, v INT)")
    source.execute("CREATE TABLE busy (id INT AUTO_INCREMENT PRIMARY KEY)")
    source.round()
    source.execute("INSERT INTO a VALUES (1, 1), (2, 2), (3, 3), (4, 4)")
    source.unlogged("UPDATE a SET v = 20 WHERE id = 2")

    def more():
        source.execute("INSERT INTO busy VALUES ()")

    def later_changes():
        source.execute("UPDATE a SET v = 10 WHERE id = 1")
        source.execute("DELETE FROM a WHERE id = 3")
        more()

    first = source.checked("a", between=later_changes)
    assert (first.compared, first.in_flight, first.wrong) == (4, 3, 0)
    brought = {row.batch for row in first.open_rows}
    second = source.checked("a", between=more)
    assert (second.compared, second.in_flight, wrong(second)) == (3, 0, [("different", "2", "v")])
    assert {row.batch for row in second.differences} == brought
    # A missing row shows no change: only two looks can say that it is wrong.
    source.execute("DELETE FROM a WHERE id = 4")
    source.unlogged("INSERT INTO a VALUES (4, 4)")
    found = []
    for _ in range(3):
        more()  # so that no look meets the source at rest
        found.append(source.checked("a", between=more))
    assert [(one.in_flight, one.wrong) for one in found] == [(1, 0), (1, 0), (0, 1)]
    assert wrong(found[-1]) == [("different", "2", "v"), ("missing", "4")]


def test_at_most_so_many_rows_are_compared_as_the_source_file_says(source):
    """At random; a merge that is compared again compares the same ones. Without any, nothing is read."""
    source.execute("CREATE TABLE a (id INT PRIMARY KEY, v INT)")
    source.round()
    source.execute(f"INSERT INTO a VALUES {', '.join(f'({n}, {n})' for n in range(60))}")
    config = source.capture.config
    few = config.model_copy(update={"verify": VerifyConfig(after_merge=7)})
    source.unlogged("UPDATE a SET v = -1")
    found = source.checked("a", config=few)
    assert (found.compared, found.wrong, found.sampled, found.changes) == (7, 7, True, 60)
    none = config.model_copy(update={"verify": VerifyConfig(after_merge=0)})
    source.execute("UPDATE a SET v = 9")
    source.drain()
    assert source.merge_and_check(config=none) is None
    assert last_after_merge(source.capture.store, "shop").by_table[found.table, found.lake_table] == found


def test_a_merge_ends_well_when_its_rows_cannot_be_compared(source):
    """Without a source that answers; the reason is kept, and what was found before stays."""
    source.execute("CREATE TABLE a (id INT PRIMARY KEY, v INT)")
    source.round()
    source.execute("INSERT INTO a VALUES (1, 1)")
    found = source.checked("a")
    config = source.capture.config
    away = config.model_copy(update={"server": config.server.model_copy(update={"password_env": "X", "port": 1})})
    source.execute("UPDATE a SET v = 2")
    source.drain()
    after = source.merge_and_check(config=away)
    assert "the server cannot be reached" in after.not_checked
    assert after.tables == (found,)
    assert last_after_merge(source.capture.store, "shop") == after
    assert source.table("a").clean


def test_modes_routes_and_masks_are_compared_as_a_whole_table_is(any_server, database, tmp_path, lake):
    """Hidden rows and past versions do not count; what cannot be compared says why."""
    source = Compared(
        any_server, database, tmp_path, lake, verify={"after_merge": 1000}, mask_key_env="UNUSED",
        modes=[{"tables": f"*.{mode}", "mode": mode} for mode in ("soft_delete", "scd2", "append")],
        masks=[{"tables": "*.masked", "columns": ["mail"], "mask": "redact"}],
        filters=[{"tables": "*.filtered", "where": "id > 1"}],
        routes=[{"tables": "*.part_*", "into": f"{database}.parts", "keys": ["table"]}],
    )  # fmt: skip
    names = ("soft_delete", "scd2", "append", "masked", "filtered", "part_1", "part_2")
    for name in names:
        source.execute(f"CREATE TABLE {name} (id INT PRIMARY KEY, mail VARCHAR(9), v INT)")
        source.execute(f"INSERT INTO {name} VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3)")
    source.round()
    for name in names:
        source.execute(f"UPDATE {name} SET v = 9 WHERE id = 2")
        source.execute(f"DELETE FROM {name} WHERE id = 3")
        source.execute(f"INSERT INTO {name} VALUES (4, 'd', 4)")
    source.unlogged("UPDATE masked SET mail = '' WHERE id = 2", *(f"UPDATE {n} SET v = 8 WHERE id = 4" for n in names))
    source.drain()
    after = source.merge_and_check()
    tables = {one.table.pair[1]: one for one in after.tables}
    assert {name: (one.compared, one.equal, wrong(one)) for name, one in tables.items() if not one.skipped} == {
        name: (3, 2, [("different", "4", "v")]) for name in ("soft_delete", "scd2", "masked", "part_1", "part_2")
    }
    assert tables["append"].skipped == "every change is kept (append), so that a key has many rows"
    assert "a filter says which rows the lake keeps" in tables["filtered"].skipped


def test_a_run_names_the_wrong_row_and_the_status_shows_it_until_it_is_repaired(
    any_server, database, tmp_path, lake, monkeypatch
):
    """With the command that repairs it. The run itself succeeds."""
    shop = Shop.on_running_spark(any_server, database, tmp_path, lake, monkeypatch)
    shop.write(verify={"wait": "0s", "after_merge": 10})
    shop.runs(1)
    shop.execute("UPDATE orders SET v = 'new' WHERE id IN (1, 2)")
    with any_server.connect(database=database) as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_log_bin = 0")
        cursor.execute("UPDATE orders SET v = 'other' WHERE id = 2")
        connection.commit()
    said = " ".join(shop.cdc("cdc run shop").split())
    assert f"{database}.orders: compared all 2 rows that this merge changed with the source: 1 equal" in said
    assert f"{database}.orders: row id=2 is different in v" in said
    assert "manifest.json changed it last" in said
    status = " ".join(shop.cdc("cdc status shop").split())
    assert f"{database}.orders has wrong rows that merges changed (1): id=2 is different in v" in status
    assert f"cdc verify shop {database}.orders --repair" in status
    wrong, right = (
        json.loads(shop.cdc(f"cdc explain shop {database}.orders {key} --json"))["versions"][0]["checks"]
        for key in (2, 1)
    )
    assert [(one["by"], one["note"]) for one in wrong] == [("wrong", "different: v")]
    assert right == []  # of a merge with a wrong row nothing is said of the others
    assert "never found equal; 1 row wrong since" in " ".join(shop.cdc("cdc lake tables shop").split())
    shop.cdc(f"cdc verify shop {database}.orders --repair")
    (cut,) = json.loads(shop.cdc("cdc lake cuts shop --limit 1 --json"))
    known = {one["table"]: one for one in cut["verified"]}
    assert known[f"{database}.orders"]["where"] == "at"
    assert known[f"{database}.orders"]["equal"]["position"] == cut["position"]
    assert [one["where"] for one in known.values()].count("at") == 1
    status = " ".join(shop.cdc("cdc status shop").split())
    assert "wrong rows" not in status
    assert "rows of 2 tables that merges changed last equal the source" in status


def test_the_merge_task_compares_rows_and_ends_well_without_a_log_in(any_server, database, tmp_path, lake, monkeypatch):
    """The merge itself asks nothing of the source."""
    shop = Shop.on_running_spark(any_server, database, tmp_path, lake, monkeypatch)
    shop.write(verify={"after_merge": 10})
    shop.runs(1)
    store = LocalStore(tmp_path / "store")
    file = tmp_path / "sources" / "shop.yaml"
    task = SimpleNamespace(dag_id="cdc_shop", run_id="r", task_id="merge", map_index=-1, try_number=1)

    def run_job(_operator, _context, job, *_arguments, **_more):
        cli_job.run_job(job, SimpleNamespace(path=file))

    monkeypatch.setattr(SparkJobOperator, "run_job", run_job)
    for number, password in enumerate((any_server.cdc_password, None), 1):
        shop.execute(f"UPDATE orders SET v = 'new{number}' WHERE id = {number}")
        for step in ("plan", "drain", "ack drain"):
            shop.cdc(f"cdc step {step} shop")
        with monkeypatch.context() as environment:
            if password is None:
                environment.delenv("WAYS_PASSWORD")
            MergeOperator(task_id="merge", source_file=str(file)).execute({"ti": task})
        shop.cdc("cdc step ack lake shop")
        found = last_after_merge(store, "shop").by_table[TableName(database, "orders"), f"lake.{database}.orders"]
        assert (found.compared, found.equal) == (1, 1)
        assert (found.position == last_cut(store, "shop").position) == (password is not None)
