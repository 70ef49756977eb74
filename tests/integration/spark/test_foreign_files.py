"""Files, columns and deletes that another program gave a lake table: a merge reads them as Spark does, or says what is in its way."""

from __future__ import annotations

import secrets
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cdc_lib.apply import data_files
from cdc_lib.errors import CorruptBatch, MergeError
from cdc_lib.model.schema import SourceType
from cdc_lib.store.cuts import last_cut
from spark_jobs.iceberg import file_streams, row_files
from spark_jobs.maintain import lake_tables, maintain
from tests.harness.lake.batches import BIGINT, INT, TEXT, Row, table
from tests.harness.lake.past import local_path
from tests.harness.lake.running import Lake

COLUMNS = {"id": BIGINT, "name": TEXT, "price": SourceType("decimal", precision=12, scale=2), "n": INT}
KEYS = range(1, 41)
FORMATS = [
    {},
    {"format_version": 2},
    {"write_mode": "copy_on_write"},
    {"format_version": 2, "write_mode": "copy_on_write"},
]


class Table:
    """A lake table with forty rows, and what its rows should be.

    Args:
        lake: of the table.
        layout: of the table, in the words of the source file.
    """

    def __init__(self, lake, **layout):
        settings = lake.config.model_dump(mode="json") | {"layouts": [{"tables": "*.*", **layout}]}
        self.lake = Lake(lake.spark, type(lake.config).model_validate(settings), lake.store)
        self.schema = table(f"{self.lake.database}.orders", COLUMNS)
        self.start, self.rows = 4, {}
        self.change(dict.fromkeys(KEYS, "first"))

    @property
    def name(self):
        return self.lake.name(self.schema.name)

    def sql(self, statement):
        return self.lake.spark.sql(statement.format(self.name)).collect()

    def java(self):
        return self.lake.target(self.schema.name)._java()

    def change(self, names):
        """Merge new names of keys; None deletes a row."""
        rows = []
        for at, (key, name) in enumerate(names.items()):
            op = "d" if name is None else "u" if key in self.rows else "c"
            values = {"id": key, "name": name, "price": Decimal(key), "n": key}
            rows.append(Row(op, self.start + 1 + at, values))
        self.merge(rows)
        self.rows = {key: name for key, name in {**self.rows, **names}.items() if name is not None}

    def merge(self, rows):
        stop = self.start + 1000
        self.lake.merge(self.lake.batches.plan(stop, self.lake.batches.window(self.start, stop, {self.schema: rows})))
        self.start = stop

    def check(self):
        """Spark and the reader without Spark find exactly the rows that should be there."""
        assert self.lake.rows(self.schema.name, "id", "name") == sorted(self.rows.items(), key=repr)

    def data(self):
        """Return the paths of the live data files."""
        return [Path(local_path(row[0])) for row in self.sql("SELECT file_path FROM {}.data_files")]

    def maintained(self):
        names = lake_tables(self.lake.config, last_cut(self.lake.store, self.lake.config.source), [self.schema.name])
        return maintain(self.lake.spark, self.lake.config, self.lake.store, names, self.lake.said.append)


@pytest.mark.parametrize("codec", ["uncompressed", "snappy", "gzip", "lz4_raw", "zstd", "lz4"])
def test_files_have_the_compression_that_the_table_asks_for(lake, codec):
    """Which Spark reads."""
    of = Table(lake, properties={"write.parquet.compression-codec": codec})
    of.change({1: "second", 2: None})
    of.check()
    wanted = "LZ4" if codec == "lz4_raw" else codec.upper()
    assert {pq.ParquetFile(one).metadata.row_group(0).column(0).compression for one in of.data()} == {wanted}


def test_a_compression_that_spark_does_not_read_is_refused(lake):
    of = Table(lake)
    of.sql("ALTER TABLE {} SET TBLPROPERTIES ('write.parquet.compression-codec' = 'brotli')")
    with pytest.raises(MergeError, match="asks for files with the compression brotli") as refused:
        of.change({1: "second"})
    assert "write.parquet.compression-codec to one of" in refused.value.hint
    of.sql("ALTER TABLE {} SET TBLPROPERTIES ('write.parquet.compression-codec' = 'zstd')")
    of.change({1: "second"})
    of.check()


FILTERS = {f"write.parquet.bloom-filter-enabled.column.{name}": "true" for name in ("id", "name", "price")}


@pytest.mark.parametrize("more", [{}, {"write.parquet.bloom-filter-max-bytes": "64"}])
def test_files_have_the_bloom_filters_that_the_table_asks_for(lake, more):
    """With which Spark finds each row, and leaves out files."""
    of = Table(lake, properties={**FILTERS, "write.parquet.bloom-filter-fpp.column.name": "0.001", **more})
    of.change({key: f"second {key}" for key in KEYS if key % 2})
    of.check()
    for path in of.data():
        group = pq.ParquetFile(path).metadata.row_group(0)
        has = {group.column(at).path_in_schema: group.column(at).bloom_filter_length for at in range(group.num_columns)}
        assert {name for name, length in has.items() if length} == {"id", "name", "price"}
        assert not more or max(length for length in has.values() if length) < 200
    for key, name in of.rows.items():
        found = of.sql(f"SELECT id, name FROM {{}} WHERE id = {key} AND name = '{name}' AND price = {key}.00")
        assert [tuple(row) for row in found] == [(key, name)]


def test_without_a_library_that_writes_bloom_filters_a_line_says_so_once(lake, monkeypatch, caplog):
    monkeypatch.setattr(data_files, "_WRITES_BLOOM_FILTERS", False)
    of = Table(lake, properties=FILTERS)
    of.change({1: "second"})
    of.check()
    assert [one.message for one in caplog.records if "Bloom filters" in one.message] == [
        f"{of.name.replace('`', '')}: its files get no Bloom filters: the installed pyarrow {pa.__version__} does not write them"
    ]


@pytest.mark.parametrize("layout", [{"format_version": one, "write_mode": "copy_on_write"} for one in (2, 3)])
def test_large_files_are_written_again_by_row_groups(lake, monkeypatch, layout):
    """One for one, in their partitions, with the lineage of their rows; small ones together."""
    monkeypatch.setattr(row_files, "_COPY_BYTES", 800)
    of = Table(lake, **layout, properties={"write.parquet.row-group-size-bytes": "500"})
    of.change(dict.fromkeys(range(101, 104), "of another file"))
    of.sql("ALTER TABLE {} ADD PARTITION FIELD truncate(10, id)")
    of.change(dict.fromkeys(range(200, 270), "partitioned"))
    before = lineage(of, layout)
    changed = {7: "second", 8: None, 102: None, 201: None, 209: "second", 250: "second", 300: "new"}
    of.change(changed)
    of.check()
    after = lineage(of, layout)
    assert {key: before[key] for key in before.keys() - changed.keys()}.items() <= after.items()
    assert not of.sql("SELECT * FROM {}.delete_files")
    assert max(pq.ParquetFile(path).metadata.num_row_groups for path in of.data()) > 3
    of.change({key: None for key in of.rows if key % 3})
    of.check()


def lineage(of, layout):
    columns = "_row_id, _last_updated_sequence_number" if layout["format_version"] == 3 else "null, null"
    return {row[0]: tuple(row[1:]) for row in of.sql(f"SELECT id, {columns} FROM {{}}")}


def deleted_by_values(of, rows, **values):
    """Commit a file of equality deletes, as Flink does.

    Args:
        of: the table.
        rows: values of the columns.
        values: Arrow types of the columns.
    """
    java = of.java()
    jvm, gateway = of.lake.spark._jvm, of.lake.spark.sparkContext._gateway
    ids = {name: java.schema().findField(name).fieldId() for name in values}
    leaves = [java.schema().findField("s.a").fieldId()] if "s" in ids else [*ids.values()]
    schema = pa.schema(
        [pa.field(name, kind, metadata={"PARQUET:field_id": str(ids[name])}) for name, kind in values.items()]
    )
    path = f"{java.location()}/data/equal-{secrets.token_hex(4)}.parquet"
    pq.write_table(pa.Table.from_pylist(rows, schema), local_path(path))
    numbers = gateway.new_array(gateway.jvm.int, len(leaves))
    for at, number in enumerate(leaves):
        numbers[at] = number
    builder = jvm.org.apache.iceberg.FileMetadata.deleteFileBuilder(java.spec()).ofEqualityDeletes(numbers)
    builder = builder.withFormat("parquet").withPath(path).withFileSizeInBytes(Path(local_path(path)).stat().st_size)
    java.newRowDelta().addDeletes(builder.withRecordCount(len(rows)).build()).commit()
    return path


@pytest.mark.parametrize("layout", FORMATS)
def test_rows_that_another_writer_deleted_by_values_stay_deleted(lake, layout):
    """Rows that came later do not; null is a value."""
    of = Table(lake, **layout)
    of.change({41: "x", 42: "x"})
    of.sql("UPDATE {} SET name = NULL WHERE id = 40")
    deleted_by_values(of, [{"id": key} for key in (1, 2, 3, 4, 99)], id=pa.int64())
    deleted_by_values(of, [{"name": None, "n": 40}, {"name": "x", "n": 41}], name=pa.string(), n=pa.int32())
    of.rows = {key: name for key, name in of.rows.items() if key not in (1, 2, 3, 4, 40, 41)}
    of.check()
    of.change({1: "again", 5: "second", 6: None, 42: "y"})
    of.check()
    of.change({2: "again", 1: "third", 7: None, 41: "back"})
    of.check()
    of.change(dict.fromkeys(of.rows))
    of.check()
    of.change({3: "again"})
    of.check()


def test_deletes_by_values_of_nested_columns_are_refused(lake):
    """Until the files are written again without them."""
    of = Table(lake, format_version=2)
    of.sql("ALTER TABLE {} ADD COLUMN s struct<a: int>")
    number = of.java().schema().findField("s.a").fieldId()
    deleted_by_values(
        of, [{"s": {"a": 1}}], s=pa.struct([pa.field("a", pa.int32(), metadata={"PARQUET:field_id": str(number)})])
    )
    with pytest.raises(MergeError, match="deleted by values of nested columns") as refused:
        of.change({1: "second"})
    assert "rewrite_data_files" in refused.value.hint


@pytest.mark.parametrize("granularity", ["partition", "file"])
def test_deletes_of_format_2_hold_in_a_table_that_became_format_3(lake, granularity):
    """Also those that several data files have, and several deletes of a file; a deletion vector has the rows of all of them."""
    of = Table(lake, format_version=2)
    of.change(dict.fromkeys(range(101, 121), "b"))
    # Of another Spark: a file for all data files, or one for each, and no earlier deletes in it.
    of.sql(f"ALTER TABLE {{}} SET TBLPROPERTIES ('write.delete.granularity' = '{granularity}')")
    for chosen in ("1, 2, 101", "3, 102"):
        of.sql(f"DELETE FROM {{}} WHERE id IN ({chosen})")
        of.rows = {key: name for key, name in of.rows.items() if str(key) not in chosen.split(", ")}
    of.check()
    of.change({4: "second", 5: None, 2: "back"})
    of.check()
    of.sql("ALTER TABLE {} SET TBLPROPERTIES ('format-version' = '3')")
    for names in ({6: "third", 103: None}, {7: None, 1: "back", 104: "fourth"}, dict.fromkeys(range(8, 41))):
        of.change(names)
        of.check()
    assert {row[0] for row in of.sql("SELECT file_format FROM {}.delete_files")} <= {"PUFFIN", "PARQUET"}
    of.change(dict.fromkeys(of.rows))
    of.check()


@pytest.mark.parametrize("layout", [FORMATS[0], FORMATS[2]])
def test_a_column_with_a_default_has_it_in_files_that_lack_it(lake, layout):
    of = Table(lake, **layout)
    jvm = of.lake.spark._jvm
    types, literal = jvm.org.apache.iceberg.types.Types, jvm.org.apache.iceberg.expressions.Expressions.lit
    of.java().updateSchema().addColumn("more", types.IntegerType.get(), "", literal(7)).commit()
    of.change({1: "second", 2: None, 50: "new"})
    of.check()
    found = {row[0]: row[1] for row in of.sql("SELECT id, more FROM {}")}
    assert found == {key: None if key in (1, 50) else 7 for key in of.rows}


def test_a_column_that_another_writer_made_required_is_named(lake):
    """A change brings no value of it; once it may be null, the merge goes on."""
    of = Table(lake)
    jvm = of.lake.spark._jvm
    kind, value = (
        jvm.org.apache.iceberg.types.Types.IntegerType.get(),
        jvm.org.apache.iceberg.expressions.Expressions.lit(7),
    )
    of.java().updateSchema().addRequiredColumn("more", kind, "", value).commit()
    of.check()
    with pytest.raises(MergeError, match="column more of the lake table takes no null") as refused:
        of.change({1: "second"})
    assert "ALTER COLUMN `more` DROP NOT NULL" in refused.value.hint
    of.sql("ALTER TABLE {} ALTER COLUMN `more` DROP NOT NULL")
    of.change({1: "second"})
    of.check()
    assert {tuple(row) for row in of.sql("SELECT more, count(*) FROM {} GROUP BY more")} == {(7, 39), (None, 1)}


NESTED = {
    "s": ("struct<a: int, b: array<string>>", "named_struct('a', 1, 'b', array('x', null))"),
    "m": ("map<string, decimal(10, 2)>", "map('k', 1.50)"),
    "l": ("array<struct<x: date, y: binary>>", "array(named_struct('x', DATE '2020-02-29', 'y', X'00ff'))"),
}


@pytest.mark.parametrize("layout", FORMATS)
def test_columns_with_parts_that_another_writer_added_stay_as_they_are(lake, layout):
    """In the rows that no change touches, also after they were dropped again."""
    of = Table(lake, **layout)
    of.sql(f"ALTER TABLE {{}} ADD COLUMNS ({', '.join(f'{name} {kind}' for name, (kind, _) in NESTED.items())})")
    of.sql(f"UPDATE {{}} SET {', '.join(f'{name} = {text}' for name, (_, text) in NESTED.items())} WHERE id < 20")
    columns = ", ".join(NESTED)
    before = {row[0]: row[1:] for row in of.sql(f"SELECT id, {columns} FROM {{}}")}
    of.change({1: "second", 2: None, 30: "second", 50: "new"})
    of.check()
    after = {row[0]: row[1:] for row in of.sql(f"SELECT id, {columns} FROM {{}}")}
    none = (None, None, None)
    assert after == {key: none if key in (1, 30, 50) else before[key] for key in of.rows}
    for name in NESTED:
        of.sql(f"ALTER TABLE {{}} DROP COLUMN {name}")
        of.change({3: f"without {name}", 31: f"without {name}"})
        of.check()


def test_files_without_ids_are_read_by_the_names_that_the_table_gives_them(lake, tmp_path):
    """As Iceberg's procedure that adds files of another table leaves them."""
    of = Table(lake)
    rows = {"id": [501, 502], "name": ["added", "added"], "price": [Decimal("1.00")] * 2, "n": [1, 2]}
    kinds = {"id": pa.int64(), "name": pa.string(), "price": pa.decimal128(12, 2), "n": pa.int32()}
    (tmp_path / "other").mkdir()
    pq.write_table(pa.table(rows, pa.schema(list(kinds.items()))), tmp_path / "other" / "a.parquet")
    catalog = of.name.split(".")[0]
    source = f"source_table => '`parquet`.`{tmp_path}/other`'"
    of.lake.spark.sql(f"CALL {catalog}.system.add_files(table => '{of.name}', {source})")
    of.rows |= {501: "added", 502: "added"}
    of.check()
    of.change({501: "second", 1: "second"})
    of.check()
    of.change({501: None, 502: None})
    of.check()


def test_rows_are_in_the_order_of_the_table_also_under_another_name(lake):
    of = Table(lake, sort_by=["n DESC"])
    of.sql("ALTER TABLE {} RENAME COLUMN n TO m")
    of.sql("ALTER TABLE {} ADD COLUMN n INT")
    of.sql("ALTER TABLE {} WRITE ORDERED BY m")
    of.change(dict.fromkeys((9, 3, 5), "second"))
    of.check()


@pytest.mark.parametrize("form", ["orc", "avro"])
def test_a_file_of_another_format_is_refused_until_maintenance_writes_it_again(lake, form):
    of = Table(lake)
    of.sql(f"ALTER TABLE {{}} SET TBLPROPERTIES ('write.format.default' = '{form}')")
    of.sql("INSERT INTO {0} SELECT * FROM {0} WHERE id = 1")
    with pytest.raises(MergeError, match=f"has the format {form.upper()}, and merges read only Parquet") as refused:
        of.change({1: "second"})
    assert "cdc lake maintain" in refused.value.hint


@pytest.mark.parametrize("form", ["orc", "avro"])
def test_deletes_of_another_format_are_refused_until_maintenance_writes_the_rows_again(lake, form):
    of = Table(lake, format_version=2)
    of.sql(f"ALTER TABLE {{}} SET TBLPROPERTIES ('write.delete.format.default' = '{form}')")
    of.sql("DELETE FROM {} WHERE id = 1")
    del of.rows[1]
    with pytest.raises(MergeError, match=f"has the format {form.upper()}, and merges read only Parquet") as refused:
        of.change({2: "second"})
    assert "cdc lake maintain" in refused.value.hint
    of.maintained()
    of.change({2: "second"})
    of.check()


def test_an_encrypted_table_is_refused(lake):
    of = Table(lake)
    of.sql("ALTER TABLE {} SET TBLPROPERTIES ('encryption.key-id' = 'k')")
    with pytest.raises(MergeError, match="the lake table is encrypted") as refused:
        of.change({1: "second"})
    assert "encryption.key-id" in refused.value.hint
    of.sql("ALTER TABLE {} UNSET TBLPROPERTIES ('encryption.key-id')")
    of.change({1: "second"})
    of.check()


@pytest.mark.parametrize("kind", ["uuid", "variant"])
def test_columns_of_other_types_are_written_or_refused(lake, kind):
    """Each type that Iceberg has and this project does not use."""
    of = Table(lake)
    types = of.lake.spark._jvm.org.apache.iceberg.types.Types
    java = {"uuid": types.UUIDType, "variant": types.VariantType}[kind].get()
    of.java().updateSchema().addColumn("more", java).commit()
    if kind == "variant":
        with pytest.raises(MergeError, match="column more of the lake table has the type variant") as refused:
            of.change({1: "second"})
        assert "Drop the column" in refused.value.hint
        of.sql("ALTER TABLE {} DROP COLUMN more")
    of.change({1: "second"})
    assert sorted(row[0] for row in of.sql("SELECT id FROM {}")) == sorted(of.rows)


def cut_off(path, data):
    path.write_bytes(data[:20])


def without_end(path, data):
    path.write_bytes(data[:-20])


def other_bytes(path, data):
    path.write_bytes(data[:4] + bytes(255 - one for one in data[4:200]) + data[200:])


def nothing(path, data):
    path.write_bytes(b"")


def no_file(path, data):
    path.unlink()


@pytest.mark.parametrize("damage", [cut_off, without_end, other_bytes, nothing, no_file])
@pytest.mark.parametrize("remote", [False, True])
@pytest.mark.parametrize(("version", "what"), [(3, "data"), (3, "deletes"), (2, "deletes")])
def test_a_damaged_file_is_named_and_nothing_is_merged(lake, monkeypatch, damage, remote, version, what):
    """Of this machine and of others."""
    if (version, what, damage) == (3, "deletes", without_end):
        pytest.skip("Iceberg does not read the end of a Puffin file either")
    of = Table(lake, format_version=version)
    of.change({1: "second"})
    before = of.lake.snapshots(of.schema.name)
    [found] = (
        of.sql("SELECT file_path FROM {}.delete_files")
        if what == "deletes"
        else of.sql("SELECT file_path FROM {}.data_files ORDER BY record_count DESC LIMIT 1")
    )
    path = Path(local_path(found[0]))
    data = path.read_bytes()
    damage(path, data)
    if remote:
        monkeypatch.setattr(file_streams, "_LOCAL", "none:")
    with pytest.raises(CorruptBatch) as raised:
        of.change({2: "second"})
    assert path.name in raised.value.what
    assert "restore it from the store's versions" in raised.value.hint
    assert f"cdc snapshot {of.lake.config.source} {of.schema.name}" in raised.value.hint
    assert of.lake.snapshots(of.schema.name) == before
    path.write_bytes(data)
    of.change({2: "second"})
    of.check()
