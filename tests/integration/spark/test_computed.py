"""Columns that the merge computes: equal to their expression in every row, whatever way the row took."""

from __future__ import annotations

from decimal import Decimal

import pytest

from cdc_lib import requests
from cdc_lib.errors import ConfigError, IncompatibleSchema
from cdc_lib.model.backfill import BackfillRequest, Period
from spark_jobs.backfill import backfill
from spark_jobs.iceberg.layout_change import partitions_in
from spark_jobs.merging.run import merge
from tests.harness.lake.verify import Compared

MODES = ("mirror", "soft_delete", "append", "scd2")
TOTAL = "amount * 1.2"
LABEL = "concat_ws('/', upper(note), 'x')"


@pytest.fixture
def source(any_server, database, tmp_path, lake):
    """Return what makes a source with these computed columns in its tables."""

    def make(columns=None, **settings):
        rule = {"tables": "*.*", "columns": {"total": TOTAL} if columns is None else columns}
        modes = [{"tables": f"{database}.{mode}", "mode": mode} for mode in MODES]
        sections = {"computed": [rule] if rule["columns"] else [], "modes": modes, **settings}
        return Compared(any_server, database, tmp_path, lake, **sections)

    return make


def create(source, *names, values="(1, 10.00, 'a'), (2, 20.50, NULL), (3, NULL, 'c')"):
    for name in names:
        source.execute(f"CREATE TABLE {name} (id INT PRIMARY KEY, amount DECIMAL(10,2), note VARCHAR(20))")
        source.execute(f"INSERT INTO {name} VALUES {values}")
    source.round()
    source.round()


def rows(source, name, *columns):
    return source.lake.rows(f"{source.database}.{name}", *(columns or ("id", "total")))


def wrong(source, name, column, expression):
    """Return how many rows of a lake table have another value than their expression; entries of resets have none."""
    table = source.lake.name(f"{source.database}.{name}")
    entry = "_op <> 't' AND " if name == "append" else ""
    sql = f"SELECT count(*) FROM {table} WHERE {entry}NOT ({column} <=> CAST({expression} AS {kind(source, name, column)}))"
    return source.lake.spark.sql(sql).first()[0]


def kind(source, name, column):
    return {one.name: one.type for one in source.lake.state(f"{source.database}.{name}").columns}[column]


def twice(source):
    """Drain, merge twice, and ack: a repeated merge changes nothing."""
    source.drain()
    plan = source.capture.pipeline.plan_merge(by="test")
    for _ in range(2):
        merge(source.lake.spark, source.capture.config, plan, source.capture.store, source.lake.said.append)
    source.capture.pipeline.ack_lake(by="test")


def test_every_row_has_the_value_of_its_expression_in_all_modes(source):
    """Snapshots, inserts, updates, deletes, TRUNCATE, incomplete rows, repeated merges, a default that older rows get, a backfill."""
    source = source({"total": TOTAL, "label": LABEL})
    create(source, *MODES)
    assert rows(source, "mirror") == [(1, Decimal("12.000")), (2, Decimal("24.600")), (3, None)]
    for mode in MODES:
        source.execute(f"UPDATE {mode} SET amount = amount + 1 WHERE id < 3")
        source.execute(f"UPDATE {mode} SET note = 'new' WHERE id = 2")
        source.execute(f"DELETE FROM {mode} WHERE id = 3")
        source.execute(f"INSERT INTO {mode} VALUES (4, 5, 'd')")
    twice(source)
    for mode in MODES:
        source.execute(f"ALTER TABLE {mode} ADD COLUMN extra INT NOT NULL DEFAULT 7")
        source.execute(f"UPDATE {mode} SET amount = 1 WHERE id = 1")
    twice(source)
    source.minimal(*(f"UPDATE {mode} SET note = 'minimal' WHERE id = 4" for mode in MODES if mode != "append"))
    twice(source)
    source.execute("TRUNCATE append")
    source.execute("INSERT INTO append VALUES (9, 9, 'z', 9)")
    twice(source)
    for mode in MODES:
        assert [wrong(source, mode, "total", TOTAL), wrong(source, mode, "label", LABEL)] == [0, 0]
        report = source.table(mode)
        assert report.clean
        assert {(one.column, one.why) for one in report.uncompared} == {
            (name, "the merge computes it (computed)") for name in ("total", "label")
        }
    backfill(
        source.lake.spark, source.capture.config, source.capture.pipeline,
        BackfillRequest(Period(), (), "live"), source.lake.said.append,
    )  # fmt: skip
    assert [wrong(source, mode, "total", TOTAL) for mode in MODES] == [0] * 4


def test_rows_that_a_default_fills_are_computed_again(source, database):
    """Of two tables that share a lake table, one has the column from the beginning."""
    route = {"tables": f"{database}.t*", "into": f"{database}.t", "keys": ["table"]}
    source = source({"label": "concat(note, '/', extra)"}, routes=[route])
    source.execute("CREATE TABLE t1 (id INT PRIMARY KEY, note VARCHAR(20), extra INT)")
    source.execute("CREATE TABLE t2 (id INT PRIMARY KEY, note VARCHAR(20))")
    source.execute("INSERT INTO t1 VALUES (1, 'a', 1)")
    source.execute("INSERT INTO t2 VALUES (2, 'b'), (3, 'c')")
    source.round()
    source.round()
    assert rows(source, "t", "id", "label") == [(1, "a/1"), (2, None), (3, None)]
    source.execute("ALTER TABLE t2 ADD COLUMN extra INT NOT NULL DEFAULT 7")
    source.execute("UPDATE t2 SET extra = 8 WHERE id = 3")
    twice(source)
    assert rows(source, "t", "id", "label") == [(1, "a/1"), (2, "b/7"), (3, "c/8")]


def test_other_columns_than_those_of_existing_rows_need_a_new_snapshot(source):
    create(source(), "t")
    other = source({"total": "amount * 2", "label": "upper(note)"})
    other.execute("UPDATE t SET note = 'y' WHERE id = 3")
    with pytest.raises(IncompatibleSchema, match="label is not there in the lake") as refused:
        other.round()
    assert "cdc snapshot" in refused.value.hint
    requests.resnapshot(other.capture.pipeline, [f"{other.database}.t"], by="test", why="test")
    for _ in range(2):
        other.round()
    assert rows(other, "t", "id", "total", "label") == [(1, 20, "A"), (2, 41, None), (3, None, "Y")]
    assert other.table("t").clean


def test_a_renamed_or_dropped_column_stops_the_table_until_the_source_file_says_so(source):
    first = source()
    create(first, "t")
    first.execute("ALTER TABLE t RENAME COLUMN amount TO price")
    first.execute("UPDATE t SET price = 2 WHERE id = 1")
    with pytest.raises(ConfigError, match="the source table has no column amount; there are id, price, note"):
        first.round()
    second = source({"total": "price * 1.2"})
    second.merge()
    assert rows(second, "t") == [(1, Decimal("2.400")), (2, Decimal("24.600")), (3, None)]
    assert wrong(second, "t", "total", "price * 1.2") == 0
    second.execute("ALTER TABLE t DROP COLUMN price")
    second.execute("UPDATE t SET note = 'x' WHERE id = 1")
    with pytest.raises(ConfigError, match="the source table has no column price; there are id, note"):
        second.round()


def test_an_expression_that_spark_cannot_analyse_is_refused_before_a_row_is_written(source):
    first = source({"x": "no_such(id)"})
    first.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    first.execute("INSERT INTO t VALUES (1)")
    first.drain()
    first.drain()
    with pytest.raises(ConfigError, match="no_such"):
        first.merge()
    with pytest.raises(ConfigError, match="its type is array<int>"):
        source({"x": "array(id)"}).merge()
    source({"x": "id + 1"}).merge()
    assert rows(first, "t", "id", "x") == [(1, 2)]


LAID_OUT = {"tables": "*.*", "partition_by": ["note", "bucket(2, Part)"], "sort_by": ["total DESC"]}
PARTS = {"total": TOTAL, "part": "id % 3"}


def partitions(source, name):
    """Return the recorded layout of a lake table, the fields of its partitions without the mode's, and those of its files."""
    lake_name = source.lake.name(f"{source.database}.{name}")
    layout = source.lake.state(f"{source.database}.{name}").layout
    described = [str(one) for one in partitions_in(source.lake.spark.sql(f"DESCRIBE TABLE {lake_name}").collect())]
    files = source.lake.spark.sql(f"SELECT partition.note, partition.part_bucket FROM {lake_name}.data_files").collect()
    fields = [one for one in described if one != "`_is_current`"]
    return layout, fields, {tuple(row) for row in files}


@pytest.mark.parametrize("mode", MODES)
def test_a_layout_by_computed_columns_holds_from_the_first_row(source, mode):
    """The first load, a second merge, and a table that begins again with other columns."""
    first = source(PARTS, layouts=[LAID_OUT])
    create(first, mode)
    layout, fields, files = partitions(first, mode)
    assert [str(one) for one in layout.partition_by] == fields == ["`note`", "bucket(2, `part`)"]
    assert [str(one) for one in layout.sort_by] == ["`total` DESC NULLS LAST"]
    assert {note for note, _ in files} == {"a", None, "c"}
    first.execute(f"UPDATE {mode} SET amount = amount + 1, note = 'z' WHERE id < 3")
    first.execute(f"DELETE FROM {mode} WHERE id = 3")
    first.execute(f"INSERT INTO {mode} VALUES (4, 5, 'd')")
    twice(first)
    assert [wrong(first, mode, name, PARTS[name]) for name in PARTS] == [0, 0]
    assert first.table(mode).clean
    assert {"z", "d"} <= {note for note, _ in partitions(first, mode)[2]}
    if mode == "mirror":
        other = source({**PARTS, "part": "length(note)"}, layouts=[LAID_OUT])
        other.execute(f"INSERT INTO {mode} VALUES (5, 5, 'eee')")
        requests.resnapshot(other.capture.pipeline, [f"{other.database}.{mode}"], by="test", why="test", replaces=True)
        for _ in range(2):
            other.round()
        assert partitions(other, mode)[:2] == (layout, fields)
        assert [wrong(other, mode, "part", "length(note)"), wrong(other, mode, "total", TOTAL)] == [0, 0]
        assert other.table(mode).clean


def test_a_table_that_begins_again_gets_a_layout_by_its_computed_columns(source):
    first = source({"label": LABEL})
    create(first, "t")
    other = source(PARTS, layouts=[LAID_OUT])
    other.execute("UPDATE t SET note = 'y' WHERE id = 3")
    requests.resnapshot(other.capture.pipeline, [f"{other.database}.t"], by="test", why="test", replaces=True)
    for _ in range(2):
        other.round()
    layout, fields, files = partitions(other, "t")
    assert [str(one) for one in layout.partition_by] == fields == ["`note`", "bucket(2, `part`)"]
    assert {note for note, _ in files} == {"a", None, "y"}
    assert [wrong(other, "t", name, PARTS[name]) for name in PARTS] == [0, 0]
    assert other.table("t").clean


@pytest.mark.parametrize("part", ["upper(note)", "CAST(length(note) AS BIGINT)"], ids=["another", "wider"])
def test_a_table_that_begins_again_may_widen_the_computed_column_of_its_partitions(source, part):
    """Another type is refused before a row is written, and the hint leads out: Iceberg reads no table without the columns of its partitions."""
    laid_out = {**LAID_OUT, "partition_by": ["part"]}
    first = source({"part": "length(note)", "total": TOTAL}, layouts=[laid_out])
    create(first, "t")
    before, name = rows(first, "t", "id", "part"), f"{first.database}.t"
    other = source({"part": part, "total": TOTAL}, layouts=[laid_out])

    def again():
        requests.resnapshot(other.capture.pipeline, [name], by="test", why="test", replaces=True)
        for _ in range(2):
            other.round()

    other.execute("INSERT INTO t VALUES (5, 5, 'eee')")
    if part.startswith("upper"):
        with pytest.raises(IncompatibleSchema, match="column part is int in the lake and would be string") as caught:
            again()
        assert "drop the lake table and take a new snapshot" in caught.value.hint
        assert rows(other, "t", "id", "part") == before
        other.lake.spark.sql(f"DROP TABLE {other.lake.name(name)}")
        again()
    else:
        again()
        assert kind(other, "t", "part") == "bigint"
    lake = other.lake.name(name)
    described = [str(one) for one in partitions_in(other.lake.spark.sql(f"DESCRIBE TABLE {lake}").collect())]
    assert described == ["`part`"]
    assert [wrong(other, "t", "part", part), wrong(other, "t", "total", TOTAL)] == [0, 0]
    assert len(rows(other, "t")) == 4
    assert other.table("t").clean


def test_the_layout_of_a_first_merge_that_ended_early_is_made_by_the_next(source):
    """The table was created, and its computed columns were refused."""
    first = source({"total": TOTAL, "part": "no_such(id)"}, layouts=[LAID_OUT])
    first.execute("CREATE TABLE t (id INT PRIMARY KEY, amount DECIMAL(10,2), note VARCHAR(20))")
    first.execute("INSERT INTO t VALUES (1, 10.00, 'a')")
    first.drain()
    first.drain()
    with pytest.raises(ConfigError, match="no_such"):
        first.merge()
    with pytest.raises(ConfigError, match="partition_by has bucket of Part, whose type is double"):
        source({"total": TOTAL, "part": "id / 3"}, layouts=[LAID_OUT]).merge()
    other = source(
        {"total": TOTAL, "share": "id % 3"}, layouts=[{**LAID_OUT, "partition_by": ["note", "bucket(2, share)"]}]
    )
    other.merge()
    state = other.lake.state(f"{other.database}.t")
    assert [str(one) for one in state.layout.partition_by] == ["`note`", "bucket(2, `share`)"]
    assert rows(other, "t", "id", "total") == [(1, Decimal("12.000"))]
