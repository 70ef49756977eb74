"""Many changes are merged by tasks on executors: the table comes out as where one process merges them."""

from __future__ import annotations

import sys
from itertools import count
from pathlib import Path

import pytest

from cdc_lib.apply import parts
from cdc_lib.errors import CorruptBatch
from cdc_lib.model.ddl_effect import AddedDefault
from cdc_lib.model.lake_table import MODE_COLUMNS
from cdc_lib.model.schema import SourceType
from spark_jobs.iceberg import spread_rows
from spark_jobs.iceberg.spread_rows import SpreadRows
from spark_jobs.merging import rows_commit
from spark_jobs.merging.rows_commit import RowsCommit
from spark_jobs.runtime import executors
from tests.harness.lake.batches import BIGINT, INT, TEXT, Row, table
from tests.harness.lake.past import local_path
from tests.harness.lake.running import Lake

COLUMNS = {"id": BIGINT, "name": TEXT, "price": SourceType("decimal", precision=12, scale=2), "n": INT}
MODES = ("mirror", "soft_delete", "append", "scd2")


def row(op, offset, key, name="new", n=0):
    return Row(op, offset, {"id": key, "name": name, "price": None, "n": n})


@pytest.fixture
def mode():
    return "mirror"


@pytest.fixture
def layout():
    return {}


@pytest.fixture
def ways(lake, monkeypatch, mode, layout):
    """Return what merges the same changes into two tables: into one by tasks, into the other in this process."""
    names = [f"{lake.database}.{name}" for name in ("tasks", "here")]
    settings = lake.config.model_dump(mode="json") | {"modes": [{"tables": "*.*", "mode": mode}]}
    settings["layouts"] = [{"tables": "*.*", **layout}]
    settings["store"] = {"url": lake.store.url("x").removesuffix("/x")}
    here = Lake(lake.spark, type(lake.config).model_validate(settings), lake.store)
    starts, spread = count(4, 100), []
    tasks_of, apply = RowsCommit._tasks, SpreadRows.apply
    monkeypatch.setattr(lake.spark.sparkContext, "pythonExec", sys.executable)
    for module in (rows_commit, executors):
        monkeypatch.setattr(module, "is_local", lambda _: False)
    monkeypatch.setattr(rows_commit, "is_few", lambda _: False)
    monkeypatch.setattr(spread_rows, "PART_BYTES", 4_000)
    monkeypatch.setattr(parts, "_STRIDE", 1)
    monkeypatch.setattr(
        RowsCommit, "_tasks", lambda self, fields: tasks_of(self, fields) if "tasks" in self.lake.name.name else []
    )
    monkeypatch.setattr(SpreadRows, "apply", lambda self, tasks: (spread.append(len(tasks)), apply(self, tasks))[1])

    def merge(rows, *, read_at=None, truncated=(), filled=(), columns=COLUMNS, times=1):
        tables = [table(name, columns) for name in names]
        if read_at is not None:
            stop, of_rows = 104, [one.values for one in rows]
            manifests = [here.batches.chunk(one, read_at, of_rows, snapshot="s") for one in tables]
        else:
            start = next(starts)
            stop = start + 100
            statements = [("truncate", name, start + at) for name in names for at in truncated]
            added = [(at, (AddedDefault(column, value),)) for at, column, value in filled]
            statements += [("add_default", name, start + at, what) for name in names for at, what in added]
            manifests = [here.batches.window(start, stop, dict.fromkeys(tables, rows), statements=statements)]
        spread.clear()
        here.merge(here.batches.plan(stop, *manifests))
        assert len(spread) == times
        by_tasks, by_driver = (here.rows(name, *columns, *MODE_COLUMNS[mode]) for name in names)
        assert by_tasks == by_driver
        return by_tasks

    merge.tables = [here.name(name) for name in names]
    return merge


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("layout", [{}, {"format_version": 2}, {"partition_by": ["bucket(4, id)"]}])
def test_a_table_comes_out_as_where_one_process_merges_it(ways, mode):
    """Inserts, changes, deletes, keys twice, a statement that removes all rows, and a column with a default."""
    ways([row("c", 10 + key, key) for key in range(1, 90)])
    ways(
        [*(row("u", 110 + key, key, f"second {key}") for key in range(1, 60)), row("d", 180, 3), row("u", 181, 7, "7")]
    )
    wider = {**COLUMNS, "later": INT}
    ways([row("u", 250, 4, "filled")], filled=[(10, "later", "5")], columns=wider)
    times = 0 if mode == "append" else 1  # the entry of the statement is no change
    left = ways([row("c", 350, 200), row("u", 360, 200, "b")], truncated=[20], columns=wider, times=times)
    assert len(left) == {"mirror": 1, "soft_delete": 90}.get(mode, len(left))


@pytest.mark.parametrize("layout", [{"write_mode": "copy_on_write"}])
def test_files_are_written_again_for_the_rows_that_tasks_found(ways):
    ways([row("c", 10 + key, key) for key in range(1, 90)])
    assert len(ways([row("d", 110 + key, key) for key in range(1, 31)])) == 59


def test_the_first_load_is_written_by_tasks(ways):
    assert len(ways([row("r", 0, key) for key in range(300)], read_at=50)) == 300


def test_a_damaged_file_that_a_task_reads_is_named(ways, lake):
    """Also one that is lost; nothing is merged."""
    ways([row("c", 10 + key, key) for key in range(1, 90)])
    paths = lake.spark.sql(f"SELECT file_path FROM {ways.tables[0]}.data_files").collect()
    whole = {Path(local_path(row[0])): Path(local_path(row[0])).read_bytes() for row in paths}
    for damage in (lambda path, data: path.write_bytes(data[:-30]), lambda path, _: path.unlink()):
        for path, data in whole.items():
            damage(path, data)
        with pytest.raises(CorruptBatch) as raised:
            ways([row("u", 110, 1, "second")])
        assert any(path.name in raised.value.what for path in whole)
        assert "restore it from the store's versions" in raised.value.hint
        for path, data in whole.items():
            path.write_bytes(data)
    assert (1, "second") in {found[:2] for found in ways([row("u", 310, 1, "second")])}


def test_the_driver_merges_where_executors_have_no_python(ways, lake, monkeypatch, caplog):
    """It says what is missing."""
    monkeypatch.setattr(lake.spark.sparkContext, "pythonExec", "a-python-that-nobody-has")
    executors.lacking_on.cache_clear()
    assert len(ways([row("c", 10 + key, key) for key in range(1, 9)], times=0)) == 8
    assert "a-python-that-nobody-has" in caplog.text
    executors.lacking_on.cache_clear()
