"""A lake table whose files are lost: the other tables go on, and a new snapshot makes the table again."""

from __future__ import annotations

import shutil
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from cdc_lib.doctor.dropped_tables import check_dropped_tables
from cdc_lib.errors import CorruptBatch
from cdc_lib.lake.catalog import drop_table
from cdc_lib.model.lake_table import LakeName
from cdc_lib.status.overview import findings_of
from cdc_lib.store.cuts import last_cut
from spark_jobs.iceberg.lake_table import IcebergTable
from tests.harness.binlog.capture import SOURCE
from tests.harness.processes.sqlite_connections import every_connection_closed
from tests.integration.spark.test_foreign_changes import Shop, any_server, begun  # noqa: F401 - fixtures


def folder(shop):
    return Path(urlsplit(str(shop.lake.target(f"{shop.database}.t")._java().location())).path)


def data_files(shop):
    for path in folder(shop).rglob("*.parquet"):
        path.unlink()


def ends_of_data_files(shop):
    for path in folder(shop).rglob("*.parquet"):
        path.write_bytes(path.read_bytes()[:-100])


def metadata_file(shop):
    current = shop.lake.target(f"{shop.database}.t")._java().operations().current().metadataFileLocation()
    Path(urlsplit(str(current)).path).unlink()


def manifests(shop):
    for path in folder(shop).rglob("*.avro"):
        path.unlink()


def everything(shop):
    shutil.rmtree(folder(shop))


LOST = [data_files, ends_of_data_files, metadata_file, manifests, everything]


@pytest.mark.parametrize("lost", LOST)
def test_a_new_snapshot_makes_a_table_again_whose_files_are_lost(begun: Shop, lost):  # noqa: F811 - the fixture
    """The hint of the error is the way out; the other table is merged meanwhile."""
    lost(begun)
    begun.change(3)
    with pytest.raises(CorruptBatch) as raised:
        begun.round()
    assert f"cdc snapshot {SOURCE} {begun.database}.t" in str(raised.value.hint)
    assert begun.rows("other") == begun.source_rows("other")
    begun.take_again()
    begun.rounds()
    begun.change(4)
    begun.round()
    begun.assert_equal()
    assert begun.errors() == []


@pytest.mark.parametrize("lost", [manifests, metadata_file, everything])
def test_a_merge_leaves_the_table_that_another_one_has_made_again(begun: Shop, monkeypatch, lost):  # noqa: F811 - the fixture
    """An abandoned merge that found the files lost may still run when its retry has made the table again, and later ones merged."""
    lost(begun)
    begun.take_again()
    lacks, made = IcebergTable.lacks, []

    def made_again_first(target, error):
        if not made:
            made.append("begun")
            begun.rounds()
            begun.change(3)
            begun.round()
            made.append(begun.lake.state(f"{begun.database}.t").uuid)
        return lacks(target, error)

    with monkeypatch.context() as patched:
        patched.setattr(IcebergTable, "lacks", made_again_first)
        begun.rounds()
    assert begun.lake.state(f"{begun.database}.t").uuid == made[1]
    begun.change(4)
    begun.round()
    begun.assert_equal()
    assert begun.errors() == []


def test_a_table_that_the_merge_has_nothing_for_does_not_stop_the_others(begun: Shop):  # noqa: F811 - the fixture
    """Its loss is in the report."""
    metadata_file(begun)
    begun.execute("UPDATE other SET v = 'alone' WHERE id = 5")
    begun.round()
    assert begun.rows("other") == begun.source_rows("other")
    assert any("cannot be read" in one for one in begun.errors())
    begun.take_again()
    begun.rounds()
    begun.assert_equal()


@pytest.mark.parametrize("on_error", ["stop", "quarantine"])
@pytest.mark.parametrize("first", ["lost", "dropped"])
@pytest.mark.parametrize("lost", [metadata_file, everything])
def test_a_lost_table_that_the_source_dropped_is_named_until_a_person_gives_it_up(
    any_server,  # noqa: F811 - the fixture
    database,
    tmp_path,
    lake,
    lost,
    first,
    on_error,
):
    """No snapshot can read its rows again, and none is advised. The other table is merged meanwhile."""
    shop = Shop(any_server, database, tmp_path, lake, on_error=on_error)
    shop.rounds(2)
    if first == "lost":
        lost(shop)
    shop.execute("DROP TABLE t")
    shop.round()
    if first == "dropped":
        lost(shop)
    for number in (5, 6):
        shop.execute(f"UPDATE other SET v = 'alone' WHERE id = {number}")
        shop.round()
        assert shop.rows("other") == shop.source_rows("other")
        (found,) = [one for one in findings_of(shop.capture.pipeline) if one.level == "error"]
        assert "the source dropped the table, so that no snapshot can make it again" in found.what
        assert f"cdc lake drop {SOURCE} {database}.t" in found.hint
        assert "cdc snapshot" not in found.hint
    drop_table(shop.capture.config, LakeName("lake", (database,), "t"))  # cdc lake drop
    shop.execute("UPDATE other SET v = 'alone' WHERE id = 7")
    shop.round()
    assert shop.errors() == []
    assert [one.table.table for one in last_cut(shop.capture.store, SOURCE).tables] == ["other"]


@pytest.mark.parametrize("lost", [data_files, manifests, metadata_file])
def test_doctor_finds_lost_files_of_a_table_that_the_source_dropped(begun: Shop, lost):  # noqa: F811 - the fixture
    """Nothing reads them, and no merge does; a whole table is no finding."""
    begun.execute("DROP TABLE t")
    begun.rounds()
    config, store = begun.capture.config, begun.capture.store
    assert list(check_dropped_tables(config, store)) == []
    lost(begun)
    with every_connection_closed():
        (found,) = check_dropped_tables(config, store)
    assert f"{begun.database}.t: its lake table has lost files" in found.what
    assert f"cdc lake drop {SOURCE} {begun.database}.t" in found.hint
    drop_table(config, LakeName("lake", (begun.database,), "t"))
    assert list(check_dropped_tables(config, store)) == []
