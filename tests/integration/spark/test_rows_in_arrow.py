"""Few rows are merged in Arrow: the table comes out as by Spark SQL, with files as Iceberg's own writers make them."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from functools import partial
from itertools import count

import pyarrow.parquet as pq
import pytest

from cdc_lib.apply import old_rows, parts
from cdc_lib.model.ddl_effect import AddedDefault
from cdc_lib.model.lake_table import MODE_COLUMNS
from cdc_lib.model.schema import SourceType
from spark_jobs.iceberg import arrow_rows, file_streams
from spark_jobs.iceberg.arrow_rows import ArrowRows
from spark_jobs.runtime import session
from tests.harness.lake import engine_tables
from tests.harness.lake.batches import BIGINT, INT, TEXT, Row, table
from tests.harness.lake.engine_tables import values
from tests.harness.lake.partitioned_tables import TRANSFORMS, merge, tables
from tests.harness.lake.past import local_path
from tests.harness.lake.plain_copy import PlainCopy
from tests.harness.lake.running import Lake

COLUMNS = {"id": BIGINT, "name": TEXT, "price": SourceType("decimal", precision=12, scale=2), "n": INT}
WIDER = {**COLUMNS, "later": INT}


LINEAGE = (2147483540, 2147483539)
"""Field ids of a row's id and of the commit that changed it last, which Spark writes as nulls."""


def row(op, offset, key, name="new", price="1.00", n=0, **more):
    return Row(op, offset, {"id": key, "name": name, "price": Decimal(price), "n": n, **more})


def part(op, offset, key, **cells):
    """Return a change that has these columns alone."""
    values = {"id": key, **cells}
    return Row(op, offset, values, absent=frozenset(WIDER) - frozenset(values))


def moved(offset, old, new, *, row=0, **cells):
    """Return the changes of a row that gets another key."""
    return [replace(part("d", offset, old), row=row), replace(part("u", offset, new, **cells), row=row + 1)]


FIRST = [row("c", 10 + key, key) for key in range(1, 41)]
SECOND = [
    row("u", 110, 1, "Zoë", "-0.01"),
    row("d", 111, 2),
    row("c", 112, 50, None, "9999999999.99", 7),
    row("u", 113, 50, "twice"),
    row("d", 114, 60),
    row("d", 115, 3),
    row("c", 116, 3, "again"),
]
THIRD = [row("d", 210, key) for key in (1, 3)] + [row("u", 213, 4, "third")]
REST = [row("d", 220 + key, key) for key in range(1, 61)]


@pytest.fixture
def layout():
    return {}


@pytest.fixture
def sections():
    return {}


@pytest.fixture
def ways(lake, monkeypatch, mode, layout, sections):
    """Return a table and its copy, and what merges changes into the one and lets Iceberg's own writers do the same to the other."""
    names = [f"{lake.database}.{name}" for name in ("arrow", "spark")]
    settings = lake.config.model_dump(mode="json") | {"modes": [{"tables": "*.*", "mode": mode}]} | sections
    settings["layouts"] = [{"tables": "*.*", **layout}]
    here = Lake(lake.spark, type(lake.config).model_validate(settings), lake.store)
    starts, done, real = count(4, 100), [], ArrowRows._write
    # A computed column is none of the copy's.
    copy = None if sections.get("computed") else PlainCopy(here, *names, mode)

    def noted(self, *arguments):
        written = real(self, *arguments)
        done.append(self.of)
        return written

    monkeypatch.setattr(ArrowRows, "_write", noted)

    def merge(
        rows, *, read_at=None, truncated=(), filled=(), same_files=True, same_summary=True, by=1, columns=COLUMNS
    ):
        arrow = table(names[0], columns)
        if read_at:
            stop, of_rows = 104, [one.values for one in rows]
            manifests = [here.batches.chunk(arrow, read_at, of_rows, snapshot="s")]
        else:
            start = next(starts)
            stop = start + 100
            statements = [("truncate", arrow.name, start + at) for at in truncated]
            added = [(at, (AddedDefault(column, value),)) for at, column, value in filled]
            statements += [("add_default", arrow.name, start + at, what) for at, what in added]
            manifests = [here.batches.window(start, stop, {arrow: rows} if rows else {}, statements=statements)]
        done.clear()
        here.merge(here.batches.plan(stop, *manifests))
        assert len(done) == by if by is not None else done
        if copy is None:
            return
        copy.follow(columns)
        columns = [*columns, *MODE_COLUMNS[mode]]
        assert here.rows(names[0], *columns) == here.rows(names[1], *columns)
        assert files(here, names[0]) == files(here, names[1]) or not same_files
        if same_summary:
            assert summary(here, names[0]) == summary(here, names[1])

    return names, merge


@pytest.fixture
def mode():
    return "mirror"


PLACES = ("file_path", "referenced_data_file", "content_offset", "first_row_id")
BOUNDS = ("lower_bounds", "upper_bounds")
SIZES = ("file_size_in_bytes", "content_size_in_bytes", "column_sizes", "split_offsets", "readable_metrics")


def files(lake, name):
    """Return what Iceberg knows of a table's files, without names, sizes and the rows' lineage, which follows from their positions.

    Files all of whose rows are deleted are left out: Spark keeps some of them.
    """
    found = [one.asDict() for one in lake.spark.sql(f"SELECT * FROM {lake.name(name)}.files").collect()]
    rows = {one["file_path"]: one["record_count"] for one in found if not one["content"]}
    empty = {path for one in found if one["content"] and rows.get(path := data_file(one)) == one["record_count"]}
    found = [one for one in found if not empty & {one["file_path"], data_file(one)}]
    for one in found:
        # Files of positions have the locations of the data files as bounds.
        for left_out in (*PLACES, *SIZES, *(BOUNDS if one["content"] else ())):
            del one[left_out]
        for of_fields in ("value_counts", "null_value_counts", *BOUNDS):
            for field in LINEAGE if one.get(of_fields) else ():
                one[of_fields].pop(field, None)
    return sorted(found, key=repr)


def data_file(deletes):
    """Return the data file that deletes are about; None for several, and for a data file."""
    bounds = [(deletes[name] or {}).get(2147483546) for name in BOUNDS] if deletes["content"] else [None]
    path = bytes(bounds[0]).decode() if bounds[0] and bounds[0] == bounds[-1] else None
    return deletes["referenced_data_file"] or path


def summary(lake, name):
    """Return what the newest snapshot says of the whole table; the copy has one commit for deletes and one for inserts."""
    found = lake.spark.sql(
        f"SELECT summary FROM {lake.name(name)}.snapshots ORDER BY committed_at DESC LIMIT 1"
    ).first()[0]
    return {key: text for key, text in found.items() if key.startswith("total-") and "size" not in key}


@pytest.mark.parametrize("mode", ["mirror", "soft_delete", "append", "scd2"])
@pytest.mark.parametrize("layout", [{}, {"format_version": 2}])
def test_rows_files_and_summaries_are_those_of_spark(ways):
    _, merge = ways
    for rows in (FIRST, SECOND, THIRD):
        merge(rows)


@pytest.fixture
def in_parts(monkeypatch):
    """Merge the changes of few rows as those of many; returns how many parts each merge had."""
    counts = []

    @contextmanager
    def noted(*arguments):
        with parts.parts_of(*arguments) as found:
            counts.append(len(found))
            yield found

    monkeypatch.setattr(parts, "PART_BYTES", 300)
    monkeypatch.setattr(parts, "_STRIDE", 1)
    monkeypatch.setattr(arrow_rows, "PART_BYTES", 300)
    monkeypatch.setattr(arrow_rows, "SMALL_BYTES", 200)
    monkeypatch.setattr(arrow_rows, "parts_of", noted)
    return counts


@pytest.mark.parametrize("mode", ["mirror", "soft_delete", "scd2"])
@pytest.mark.parametrize("layout", [{}, {"format_version": 2}, {"write_mode": "copy_on_write"}])
def test_many_changes_are_merged_in_parts(ways, in_parts):
    """Also with statements that remove rows, and several changes of a key."""
    merge = partial(ways[1], same_files=False, same_summary=False, by=None)
    merge([*FIRST, *(row("u", 60 + key, key, "u") for key in range(1, 30))])
    merge(SECOND)
    merge([row("u", 210 + key, key, f"{key}") for key in range(3, 40)], truncated=[15, 25])
    merge([], truncated=[10])
    merge([*(row("c", 410 + key, key) for key in range(1, 50)), row("d", 470, 7), row("u", 471, 8, "last")])
    merge([row("u", 510 + key, key, "end") for key in range(20, 60)])
    assert [count > 1 for count in in_parts] == [True, True, True, False, True, True]


@pytest.mark.parametrize("mode", ["mirror", "soft_delete"])
def test_parts_know_newer_rows_and_cells_that_changes_lack(ways, in_parts):
    merge = partial(ways[1], same_files=False, same_summary=False, by=None)
    merge(FIRST)
    merge([row("r", 0, key, "read") for key in range(1, 30)], read_at=150)
    merge([row("u", 110 + 3 * key, key, "u") for key in range(1, 30)])
    merge([part("u", 210 + key, key, n=key) for key in range(10, 40)])
    assert min(in_parts) > 1


@pytest.mark.parametrize("mode", ["mirror", "soft_delete"])
@pytest.mark.parametrize("partition_by", [[], ["bucket(2, id)"]])
@pytest.mark.parametrize("layout", [{"write_mode": "copy_on_write", "format_version": one} for one in (2, 3)])
def test_files_are_written_again_without_replaced_rows(lake, ways, layout, partition_by):
    """Their other rows stay the same ones."""
    layout["partition_by"] = partition_by
    (arrow, spark), merge = ways
    merge(FIRST)
    for rows in (SECOND, THIRD):
        before = [lineage(lake, name, layout) for name in (arrow, spark)]
        merge(rows, same_files=not partition_by)
        after = [lineage(lake, name, layout) for name in (arrow, spark)]
        assert {key for key, _ in after[0].items() & before[0].items()} == {
            key for key, _ in after[1].items() & before[1].items()
        }
        changed = {one.values["id"] for one in rows}
        assert {key: before[0][key] for key in before[0].keys() - changed}.items() <= after[0].items()
    assert not [one for one in files(lake, arrow) if one["content"]]


def lineage(lake, name, layout):
    """Return the lineage of each row by its key; of format 2 nulls."""
    columns = "_row_id, _last_updated_sequence_number" if layout["format_version"] == 3 else "null, null"
    found = lake.spark.sql(f"SELECT id, {columns} FROM {lake.name(name)}").collect()
    return {row[0]: tuple(row[1:]) for row in found}


FILTERED = {
    "filters": [{"tables": "*.*", "where": "price > 0 AND coalesce(kind, 'a') = 'a'"}],
    "computed": [
        {
            "tables": "*.*",
            "columns": {
                "label": "concat(t, '/', CAST(created AS STRING), '/', CAST(stamp AS STRING), '/', CAST(on_day AS STRING))",
                "twice": "price * 2",
                "bytes": "b",
                "largest": "greatest(u, long)",
            },
        }
    ],
}


@pytest.mark.parametrize("mode", ["mirror", "soft_delete", "append"])
@pytest.mark.parametrize("sections", [FILTERED])
@pytest.mark.parametrize("layout", [{"partition_by": ["truncate(3, t)"]}])
def test_predicates_and_expressions_are_evaluated_as_in_spark(lake, ways):
    """Over rows of each type, of which a predicate turns some into deletes."""
    (arrow, _), merge = ways
    for version, keys in ((0, range(60)), (1, range(0, 60, 2)), (5, range(20, 70))):
        rows = [Row("u" if version else "c", 10 + 1000 * version + key, values(key, version)) for key in keys]
        # Parquet's footers do not count NaN, and have no minus zero as the greatest number.
        merge(rows, columns=engine_tables.COLUMNS, same_files=False, same_summary=False)
    assert len(lake.rows(arrow, "label")) > 10


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_partitions_are_those_of_spark(lake, transform, version):
    """Of each transform of each lake type: the same rows in the same partitions, also of rows that move to another one."""
    chosen = tables([transform], [(version, "merge_on_read")])
    merge(lake, chosen)
    for one in chosen:
        schema = one.schema(lake.database)
        names = [schema.name, f"{schema.name}_copy"]
        PlainCopy(lake, *names, "mirror").follow({column.name: column.type for column in schema.columns})
        found, expected = (
            sorted(map(str, lake.spark.sql(f"SELECT id, v, _partition FROM {lake.name(name)}").collect()))
            for name in names
        )
        assert found == expected != []


@pytest.mark.parametrize(
    "layout",
    [
        {"partition_by": ["bucket(3, id)", "truncate(1, name)"], "sort_by": ["price DESC", "name DESC NULLS LAST"]},
        {"sort_by": ["name", "n DESC NULLS FIRST"], "format_version": 2},
    ],
)
def test_rows_have_the_layout_of_the_source_file(lake, ways):
    """Several fields of the partition, and rows of a file in the order of other columns."""
    (arrow, spark), merge = ways
    merge(FIRST)
    for order in (SECOND, THIRD):
        merge(order, same_summary=False)  # Spark keeps files all of whose rows are deleted
    sorted_by = [field.column for field in lake.state(arrow).layout.sort_by]
    found = [cells(lake, name, sorted_by) for name in (arrow, spark)]
    assert all(rows in found[1] for rows in found[0])


def cells(lake, name, columns):
    """Return columns of the rows of each data file, in their order."""
    paths = lake.spark.sql(f"SELECT file_path FROM {lake.name(name)}.data_files").collect()
    return [pq.read_table(local_path(row[0]), columns=columns).to_pylist() for row in paths]


def test_old_files_keep_the_partitions_that_they_were_written_with(lake, ways):
    """Somebody else has given the tables other partitions in between."""
    (arrow, spark), merge = ways
    merge(FIRST)
    for name in (arrow, spark):
        lake.spark.sql(f"ALTER TABLE {lake.name(name)} ADD PARTITION FIELD bucket(2, id)")
    merge(SECOND)
    for name in (arrow, spark):
        lake.spark.sql(f"ALTER TABLE {lake.name(name)} DROP PARTITION FIELD bucket(2, id)")
    merge(THIRD, same_summary=False)
    assert {one["spec_id"] for one in files(lake, arrow)} == {0, 1}


@pytest.mark.parametrize("layout", [{"partition_by": ["id"]}])
def test_rows_of_very_many_partitions_are_one_file_each(lake, ways):
    (arrow, _), merge = ways
    merge([row("c", 10 + key, key % 250, f"{key}") for key in range(90)])
    found = lake.spark.sql(f"SELECT partition.id, record_count FROM {lake.name(arrow)}.data_files").collect()
    assert sorted(map(tuple, found)) == [(key, 1) for key in range(90)]


def test_tables_that_share_a_lake_table_are_merged_in_one_commit(lake, monkeypatch):
    """Of equal keys each changes its own row."""
    rule = {"tables": f"{lake.database}_*.orders", "into": f"{lake.database}.orders", "keys": ["schema"]}
    lake.config = type(lake.config).model_validate(lake.config.model_dump(mode="json") | {"routes": [rule]})
    one, two = (table(f"{lake.database}_{number}.orders", COLUMNS) for number in (1, 2))
    real, written = ArrowRows._write, []
    monkeypatch.setattr(
        ArrowRows, "_write", lambda *given: (real(*given), written.append(sum(one.num_rows for one in given[1])))[0]
    )
    lake.merge(lake.batches.plan(104, lake.batches.window(4, 104, {one: FIRST, two: FIRST})))
    lake.merge(lake.batches.plan(204, lake.batches.window(104, 204, {one: SECOND[:2], two: [row("u", 115, 2, "two")]})))
    assert (written, lake.snapshots(one.name)) == ([80, 2], 2)
    found = {(schema[-1], key): name for schema, key, name in lake.rows(one.name, "_source_schema", "id", "name")}
    assert {key: name for key, name in found.items() if key[1] <= 2} == {
        ("1", 1): "Zoë",
        ("2", 1): "new",
        ("2", 2): "two",
    }
    assert len(found) == 79


@pytest.mark.parametrize("mode", ["mirror", "soft_delete"])
def test_rows_that_are_newer_than_a_change_stay(lake, ways):
    """A chunk was read in the middle of the window that is merged after it."""
    (arrow, _), merge = ways
    merge(FIRST)
    merge([row("r", 0, key, "read") for key in (1, 2, 3)], read_at=150)
    merge([row("u", 110, 1, "older"), row("d", 120, 2), row("u", 160, 3, "newer"), row("c", 170, 90, "another")])
    assert {(1, "read"), (2, "read"), (3, "newer"), (90, "another")} <= set(lake.rows(arrow, "id", "name"))


@pytest.mark.parametrize("mode", ["mirror", "soft_delete"])
@pytest.mark.parametrize("layout", [{}, {"partition_by": ["truncate(1, name)"]}])
def test_rows_that_lack_columns_are_completed_as_by_spark(lake, ways):
    """From earlier changes of the merge, and from the lake's row, whose file may lack a column that was added since."""
    (arrow, _), merge = ways[0], partial(ways[1], same_summary=False)
    merge(FIRST)
    merge(
        [part("u", 110, 1, n=1), part("u", 111, 2, name="two"), part("d", 112, 3), row("c", 113, 50), row("u", 114, 9)]
    )
    merge(
        [
            part("u", 210, 1, price=Decimal("5.00")),
            part("u", 211, 50, n=4),
            part("u", 212, 1, n=None),
            row("c", 213, 51),
        ]
    )
    merge([row("d", 310, 1), row("c", 311, 1, "back"), part("u", 312, 1, n=8), part("d", 313, 50), part("d", 314, 51)])
    found = {values[0]: values[1:] for values in lake.rows(arrow, "id", "name", "price", "n")}
    assert (found[1], found[2]) == (("back", Decimal("1.00"), 8), ("two", Decimal("1.00"), 0))


@pytest.mark.parametrize("mode", ["mirror", "soft_delete", "append", "scd2"])
@pytest.mark.parametrize("layout", [{}, {"format_version": 2}, {"write_mode": "copy_on_write"}])
def test_rows_that_statements_remove_are_those_of_spark(lake, ways):
    """All rows before a TRUNCATE, alone and between changes, also of changes in the same merge."""
    (arrow, _), merge = ways[0], partial(ways[1], same_files=False, same_summary=False)
    merge(FIRST)
    merge([row("u", 110, 1, "old"), row("c", 160, 5, "after"), row("c", 161, 99)], truncated=[50])
    merge([], truncated=[10])
    merge([row("c", 310, 7), row("u", 350, 7, "u"), row("c", 390, 8), row("d", 395, 99)], truncated=[20, 60])
    merge([row("u", 410, 8, "last"), row("c", 411, 1)])
    now = lake.state(arrow)
    where = {"scd2": "_is_current", "append": "_op <> 't'"}.get(now.mode, "true")
    count = lake.spark.sql(f"SELECT count(*) FROM {lake.name(arrow)} WHERE {where}").first()[0]
    assert count == {"mirror": 2, "soft_delete": 41, "append": 49, "scd2": 2}[now.mode]


@pytest.mark.parametrize("mode", ["mirror", "soft_delete", "append", "scd2"])
@pytest.mark.parametrize("layout", [{}, {"format_version": 2}, {"write_mode": "copy_on_write"}])
@pytest.mark.parametrize("sections", [{}, {"computed": [{"tables": "*.*", "columns": {"more": "n + 1", "of": "id"}}]}])
def test_columns_that_were_added_with_a_default_are_filled_as_by_spark(lake, ways, monkeypatch):
    """In existing rows, in changes before the statement, and in rows that statements or changes of columns touch."""
    (arrow, _), merge = ways[0], partial(ways[1], same_files=False, same_summary=False, columns=WIDER)
    monkeypatch.setattr(old_rows, "ROWS_AT_ONCE", 7)
    ways[1](FIRST)
    merge([row("u", 110, 1, "old"), row("u", 160, 2, later=9), row("c", 170, 70)], filled=[(50, "later", "7")])
    count = "SELECT count(*) FROM {} WHERE later = 7"
    assert lake.spark.sql(count.format(lake.name(arrow))).first()[0] >= 39
    merge([row("u", 210, 3, later=1), row("c", 250, 71, later=2), row("u", 251, 71)], filled=[(20, "later", None)])
    merge([], filled=[(10, "later", "5"), (20, "later", "6"), (30, "name", "é'"), (30, "n", "3")])
    merge([row("u", 450, 1), row("d", 460, 2)], truncated=[20], filled=[(10, "later", "8"), (30, "later", "-1")])


@pytest.mark.parametrize("mode", ["mirror", "soft_delete"])
def test_cells_that_changes_lack_have_the_default_of_their_column(lake, ways):
    (arrow, _), merge = ways[0], partial(ways[1], same_files=False, same_summary=False, columns=WIDER)
    ways[1](FIRST)
    merge([part("u", 160, 1, n=1), row("c", 110, 50), part("u", 161, 50, n=2)], filled=[(50, "later", "7")])
    assert {(1, 7), (2, 7), (50, 7)} <= set(lake.rows(arrow, "id", "later"))


@pytest.mark.parametrize("mode", ["mirror", "soft_delete", "scd2"])
def test_a_row_that_moves_takes_the_cells_that_it_lacks_from_its_old_key(lake, ways):
    """Also over several keys, in one merge and in the next one."""
    (arrow, _), merge = ways[0], partial(ways[1], same_files=False, same_summary=False)
    merge(FIRST)
    merge(
        [
            *moved(110, 1, 90, n=1),
            part("u", 120, 2, n=5),
            *moved(130, 2, 91, name="two"),
            *moved(140, 91, 92),
            *moved(140, 90, 91, row=2),
        ]
    )
    merge([*moved(210, 92, 1), *moved(220, 91, 92, price=Decimal("2.00"))])
    where = {"scd2": "_is_current", "soft_delete": "not _is_deleted"}.get(lake.state(arrow).mode, "true")
    found = lake.spark.sql(
        f"SELECT id, name, price, n FROM {lake.name(arrow)} WHERE {where} AND id NOT BETWEEN 3 AND 89"
    )
    assert {tuple(one) for one in found.collect()} == {
        (1, "two", Decimal("1.00"), 5),
        (92, "new", Decimal("2.00"), 1),
    }


def test_a_column_that_was_added_is_null_in_the_rows_of_older_files(lake, ways):
    """Which an incomplete change of such a row keeps."""
    (arrow, _), merge = ways
    merge(FIRST)
    merge([row("c", 110, 60, later=5)], columns=WIDER)
    merge([part("u", 210, 1, n=1), part("u", 211, 60, n=2)], columns=WIDER, same_summary=False)
    found = lake.rows(arrow, "id", "name", "n", "later")
    assert {(1, "new", 1, None), (60, "new", 2, 5)} <= set(found)


@pytest.mark.parametrize("layout", [{"format_version": 2}])
def test_a_file_of_positions_of_several_data_files_stays(lake, ways):
    """Its rows are not deleted twice, and no data file that it is about is removed."""
    (arrow, spark), merge = ways
    for start in (0, 1000):
        merge([row("c", 10 + start + key, start + key) for key in range(1, 4)])
    for name in (arrow, spark):
        lake.spark.sql(f"ALTER TABLE {lake.name(name)} SET TBLPROPERTIES ('write.delete.granularity' = 'partition')")
        lake.spark.sql(f"DELETE FROM {lake.name(name)} WHERE id IN (1, 1001, 3)")
    [shared] = [one for one in files(lake, arrow) if one["content"]]
    assert shared["record_count"] == 3
    last = [row("u", 3010, 1), row("u", 3011, 2), row("d", 3012, 1002), row("d", 3013, 3)]
    merge(last, same_files=False, same_summary=False)
    assert shared in files(lake, arrow)
    assert {key for (key,) in lake.rows(arrow, "id")} == {1, 2, 1003}


@pytest.mark.parametrize("layout", [{"format_version": 2}])
@pytest.mark.parametrize("last", [[1], [1, *range(11, 17), 20]])
def test_deletes_of_rows_that_a_compaction_removed_are_no_rows(lake, ways, last):
    """Iceberg removes them in a commit after which all data files are newer, and its summary has more rows by them."""
    names, merge = ways
    merge([row("c", 11, 1)])
    merge([row("c", 110 + key, key) for key in range(11, 17)])
    merge([row("u", 210 + key, key) for key in range(11, 16)])
    merge([row("c", 311, 20)])
    for name in names:
        catalog, options = lake.name(name).split(".")[0], "map('rewrite-all', 'true')"
        where = f"table => '{lake.name(name)}', where => 'id > 10', options => {options}"
        lake.spark.sql(f"CALL {catalog}.system.rewrite_data_files({where})")
    assert summary(lake, names[0])["total-position-deletes"] == "5"
    merge([row("d", 410 + key, key) for key in last], same_files=False, same_summary=False)
    assert summary(lake, names[0])["total-position-deletes"] == "0"


def test_a_file_all_of_whose_rows_are_deleted_is_removed(lake, ways):
    """So that nothing is left of the table, and the next rows begin with nothing to look into."""
    (arrow, _), merge = ways
    merge(FIRST)
    merge(SECOND)
    merge(REST, same_summary=False)
    assert (lake.rows(arrow, "id"), files(lake, arrow)) == ([], [])
    merge([row("c", 350, 5)], same_summary=False)
    assert lake.rows(arrow, "id") == [(5,)]


def test_rows_are_compressed_as_the_source_file_says(lake, monkeypatch):
    """A setting of a server's session counts more than the property of the table, as it does in Spark."""
    monkeypatch.setattr(session, "is_attached", lambda: True)
    settings = lake.config.model_dump(mode="json")
    settings["merge"]["conf"] = {"spark.sql.iceberg.compression-codec": "gzip"}
    here = Lake(lake.spark, type(lake.config).model_validate(settings), lake.store)
    orders = table(f"{lake.database}.orders", COLUMNS)
    here.merge(here.batches.plan(104, here.batches.window(4, 104, {orders: FIRST})))
    [path] = [row[0] for row in lake.spark.sql(f"SELECT file_path FROM {lake.name(orders.name)}.data_files").collect()]
    assert pq.ParquetFile(local_path(path)).metadata.row_group(0).column(0).compression == "GZIP"


def test_few_changes_find_their_rows_in_several_files(ways):
    """Files without their keys are not read."""
    _, merge = ways
    for start in (0, 1000, 2000):
        merge([row("c", 10 + start + key, start + key) for key in range(1, 41)])
    merge([row("u", 4000 + key, key, "changed") for key in (1, 40, 1001, 5000)] + [row("d", 4010, 2040)])


@pytest.mark.parametrize(("small", "large"), [(0, 256 << 10), (1 << 20, 256 << 10), (0, 1)])
def test_files_that_are_not_of_this_machine_are_read_through_iceberg(ways, monkeypatch, small, large):
    """As a whole, or where they are asked for, from Java's answers or its files; deletion vectors as well."""
    monkeypatch.setattr(file_streams, "_LOCAL", "none:")
    monkeypatch.setattr(file_streams, "_LARGE", large)
    monkeypatch.setattr(file_streams, "_SMALL_FILE", small)
    _, merge = ways
    for rows in (FIRST, SECOND, THIRD):
        merge(rows)
