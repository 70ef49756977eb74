"""Gets, scans and versions of lake tables equal what Spark reads after merges, maintenance and changes of columns."""

from __future__ import annotations

import random
import threading
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest

from cdc_lib.config.layouts import LayoutRule
from cdc_lib.config.maintenance import MaintenanceConfig
from cdc_lib.config.modes import ModeRule
from cdc_lib.errors import ConfigError, StoreError
from cdc_lib.model.schema import SourceType
from cdc_lib.read.changes import CHANGE, net_changes
from cdc_lib.read.cuts import cut_as_of
from cdc_lib.read.kept_versions import CHANGED
from cdc_lib.read.pages.index import read_index
from cdc_lib.store.cuts import last_cut
from spark_jobs.maintain import lake_tables, maintain
from tests.harness.lake.batches import BIGINT, INT, START_TIME, TEXT, Row, table
from tests.harness.lake.reading import assert_reads_as_spark, opened, spark_rows

DATETIME = SourceType("datetime", scale=6)
BINARY = SourceType("bytes", width=16)
UNSIGNED = SourceType("int", width=8, unsigned=True)
PRICE = SourceType("decimal", precision=9, scale=2)
DEFAULTS = {
    "day": date(1969, 12, 30),
    "amount": Decimal("-1.50"),
    "at": datetime(2026, 1, 2, 3, 4, 5, 6),  # noqa: DTZ001
    "flag": True,
    "weight": 1.5,
}
WORDS = ["", "a", "A", "ä", "b", "ba", "zz", "straße", "\U0001f600", "\uffee"]
ROUNDS = 4

KEYS = {
    "number": ({"id": BIGINT}, lambda n: (n - 10,)),
    "unsigned": ({"id": UNSIGNED}, lambda n: (Decimal(2**64 - 1 - n),)),
    "price": ({"id": PRICE}, lambda n: (Decimal(n - 10).scaleb(-2),)),
    "text": ({"id": TEXT}, lambda n: (WORDS[n % 10] + "aä\U00010000xyz"[n // 10],)),
    "time": ({"id": DATETIME}, lambda n: (datetime(1969, 12, 31, 23, 59, 30) + timedelta(seconds=n, microseconds=n),)),  # noqa: DTZ001
    "bytes": ({"id": BINARY}, lambda n: (bytes([n % 3 * 100, 0, n % 7]) + b"\xff" * (n // 21),)),
    "text and numbers": ({"shop": TEXT, "id": INT, "line": BIGINT}, lambda n: (WORDS[n % 2], n // 6 - 3, n // 2 % 3)),
}


@pytest.fixture
def rounds(lake):
    """Merges rounds of random changes: inserts, updates and deletes of keys that were inserted before."""

    def merged(schema, key_of, rounds=ROUNDS, seed=1, first=0):
        chosen = random.Random(seed)
        alive = set()
        for number in range(first, first + rounds):
            start, rows = 100 * number + 4, []
            for n in chosen.sample(range(60), 25):
                op = chosen.choice("ud") if n in alive else "c"
                alive.symmetric_difference_update({n} if op != "u" else set())
                values = dict(zip(schema.primary_key, key_of(n), strict=True)) | {"v": number, "t": WORDS[n % 10]}
                rows.append(Row(op, start + len(rows) + 1, values))
            lake.merge(lake.batches.plan(start + 100, lake.batches.window(start, start + 100, {schema: rows})))
        return alive

    return merged


def orders(lake, kind="number", **more):
    """A table whose key is of a kind."""
    columns, key_of = KEYS[kind]
    return table(f"{lake.database}.orders", {**columns, "v": INT, "t": TEXT, **more}, key=tuple(columns)), key_of


def keeping(lake, schema, mode):
    lake.config = lake.config.model_copy(update={"modes": (ModeRule(tables=schema.name, mode=mode),)})


def keep(lake, *tables):
    """Run the maintenance: small files are rewritten, and old snapshots and their files are removed."""
    settings = MaintenanceConfig(keep_snapshots_for=timedelta(0))
    config = lake.config.model_copy(update={"maintenance": settings})
    maintain(lake.spark, config, lake.store, lake_tables(config, last_cut(lake.store, config.source), tables), print)


@pytest.mark.parametrize("kind", KEYS)
def test_rows_are_found_by_keys_of_every_type(lake, rounds, kind):
    """Composite keys too; before and after maintenance. Deleted keys and keys that never were have no row."""
    schema, key_of = orders(lake, kind)
    alive = rounds(schema, key_of)
    missing = [key_of(n) for n in range(60) if n not in alive]
    with opened(lake) as reading:
        reader = reading.table(schema.name)
        assert reader.key == schema.primary_key
        expected = spark_rows(lake, schema.name)
        assert len(expected) == len(alive)
        assert_reads_as_spark(reader, expected, missing)
        assert reader.scan(limit=3).read_all().num_rows == 3
        keep(lake, schema.name)
        reader.refresh()
        assert_reads_as_spark(reader, expected, missing)


def test_the_first_parts_of_a_key_are_a_range(lake, rounds):
    """All lines of an order are read by the order's key."""
    schema, key_of = orders(lake, "text and numbers")
    rounds(schema, key_of)
    with opened(lake) as reading:
        reader = reading.table(schema.name)
        expected = sorted(spark_rows(lake, schema.name), key=lambda row: (row["id"], row["line"]))
        for start in ({"shop": "a", "id": 1}, ("a", 1)):
            rows = reader.scan(start, start, include_stop=True).read_all().to_pylist()
            assert rows == [row for row in expected if (row["shop"], row["id"]) == ("a", 1)] != []
        rows = reader.scan(("a", -2), ("a", 3), ["id"]).read_all().column("id").to_pylist()
        assert rows == [row["id"] for row in expected if row["shop"] == "a" and -2 <= row["id"] < 3] != []


def test_soft_delete_hides_rows_that_are_deleted_unless_asked(lake, rounds):
    schema, key_of = orders(lake)
    keeping(lake, schema, "soft_delete")
    alive = rounds(schema, key_of)
    rows = spark_rows(lake, schema.name)
    assert 0 < len(alive) < len(rows)
    with opened(lake) as reading:
        reader = reading.table(schema.name)
        live = [row for row in rows if not row["_is_deleted"]]
        assert len(live) == len(alive)
        assert_reads_as_spark(reader, live, [row["id"] for row in rows if row["_is_deleted"]])
        assert_reads_as_spark(reader, rows, [1000], deleted=True)


def test_scd2_has_the_current_version_and_all_versions(lake, rounds):
    schema, key_of = orders(lake)
    keeping(lake, schema, "scd2")
    alive = rounds(schema, key_of)
    rows = spark_rows(lake, schema.name)
    with opened(lake) as reading:
        reader = reading.table(schema.name)
        current = [row for row in rows if row["_is_current"]]
        assert len(current) == len(alive)
        assert_reads_as_spark(reader, current, [key_of(n) for n in range(60) if n not in alive])
        for key in {row["id"] for row in rows}:
            versions = sorted((row for row in rows if row["id"] == key), key=lambda row: -row["_offset"])
            found = reader.versions(key)
            assert found.drop_columns([CHANGED]).to_pylist() == versions
            assert found[CHANGED].to_pylist() == [
                None if before is None or row["_op"] == "c" else [one for one in ("v", "t") if row[one] != before[one]]
                for row, before in zip(versions, [*versions[1:], None], strict=True)
            ]
            assert reader.versions(key, limit=1, columns=["v"])["v"].to_pylist() == [versions[0]["v"]]
            last = versions[0]["_valid_from"]
            assert reader.versions(key, since=last).num_rows == sum(row["_valid_from"] == last for row in versions)
            assert reader.versions(key, until=last).num_rows == sum(row["_valid_from"] < last for row in versions)
        assert reader.versions(1000).num_rows == reader.versions(10**30).num_rows == 0


def test_append_has_all_changes_of_a_key_and_no_single_row(lake, rounds):
    schema, key_of = orders(lake)
    keeping(lake, schema, "append")
    rounds(schema, key_of)
    rows = sorted(spark_rows(lake, schema.name), key=lambda row: (row["id"], row["_offset"]))
    with opened(lake) as reading:
        reader = reading.table(schema.name)
        assert reader.scan().read_all().to_pylist() == rows
        assert reader.scan(reverse=True).read_all().to_pylist() == rows[::-1]
        key = rows[0]["id"]
        found = reader.versions(key).drop_columns([CHANGED])
        assert found.to_pylist() == [row for row in rows if row["id"] == key][::-1]
        with pytest.raises(ConfigError, match="append mode, which has many rows for each key"):
            reader.get(key)


def test_a_table_without_a_key_is_refused(lake):
    """So are a missing table, a missing column, and versions of a mirror."""
    schema = table(f"{lake.database}.list", {"v": INT}, key=())
    keyed, _key_of = orders(lake)
    rows = {schema: [Row("c", 5, {"v": 1})], keyed: [Row("c", 6, {"id": 1, "v": 1, "t": "x"})]}
    lake.merge(lake.batches.plan(104, lake.batches.window(4, 104, rows)))
    with opened(lake) as reading:
        for read in (lambda one: one.key, lambda one: one.scan(), lambda one: one.versions(1)):
            with pytest.raises(ConfigError, match="has no key"):
                read(reading.table(schema.name))
        with pytest.raises(ConfigError, match="the lake has no table"):
            reading.table(f"{lake.database}.none")
        reader = reading.table(keyed.name)
        with pytest.raises(ConfigError, match="no column nothing"):
            reader.get(1, ["nothing"])
        with pytest.raises(ConfigError, match="a list of different names"):
            reader.get(1, ["v", "v"])
        with pytest.raises(ConfigError, match="keeps one version of each row"):
            reader.versions(1)
        with pytest.raises(ConfigError, match="key column id takes an int, and str is given"):
            reader.get("1")
        assert reader.get(1, []) == {}


def test_columns_are_followed_by_their_ids(lake, rounds):
    """Renamed, widened, dropped, added, added again under a dropped column's name, and added with a default."""
    schema, key_of = orders(lake, price=PRICE, n=INT, f=SourceType("float"), old=INT)
    alive = rounds(schema, key_of, rounds=2)
    name = lake.name(schema.name)
    for change in (
        "RENAME COLUMN t TO renamed",
        "ALTER COLUMN n TYPE bigint",
        "ALTER COLUMN f TYPE double",
        "ALTER COLUMN price TYPE decimal(12, 2)",
        "DROP COLUMN old",
        "ADD COLUMN t string AFTER id",
        "ADD COLUMN old int",
    ):
        lake.spark.sql(f"ALTER TABLE {name} {change}")
    lake.spark.sql(f"UPDATE {name} SET t = 'new', n = 5000000000, f = 1e300, old = 7 WHERE id % 3 = 0")
    with opened(lake) as reading:
        reader = reading.table(schema.name)
        rows = spark_rows(lake, schema.name)
        assert {(row["t"], row["old"]) for row in rows} == {("new", 7), (None, None)}
        assert_reads_as_spark(reader, rows, [key_of(n) for n in range(60) if n not in alive])
        add_with_defaults(lake, schema.name)
        lake.spark.sql(f"REFRESH TABLE {name}")
        lake.spark.sql(f"UPDATE {name} SET d = 'y', i = NULL WHERE id % 4 = 0")
        reader.refresh()
        rows = spark_rows(lake, schema.name)
        assert {(row["d"], row["i"]) for row in rows} == {("x", 42), ("y", None)}
        assert {name: rows[0][name] for name in DEFAULTS} == DEFAULTS
        assert_reads_as_spark(reader, rows)
        lake.spark.sql(f"ALTER TABLE {name} RENAME COLUMN i TO j")
        assert "i" in reader.get((rows[0]["id"],))
        reader.refresh()
        assert_reads_as_spark(reader, spark_rows(lake, schema.name))


def test_single_pages_have_the_rows_of_the_file(lake):
    """Rows of all kinds of columns, renamed and added ones too, are found in files of small pages, among them deleted rows."""
    pages = {"write.parquet.page-row-limit": 7, "write.parquet.dict-size-bytes": 400}
    lake.config = lake.config.model_copy(update={"layouts": (LayoutRule(tables="*.*", properties=pages),)})
    columns = {"id": BIGINT, "state": TEXT, "note": TEXT, "price": PRICE, "at": DATETIME, "raw": BINARY}
    columns |= {"n": INT, "big": UNSIGNED, "day": SourceType("date"), "weight": SourceType("double")}
    schema = table(f"{lake.database}.paged", columns)

    def row(op, start, i, version):
        chosen = random.Random(i)
        some = {
            "state": f"state {i % 3}",
            "note": f"{version} {i}" * (i % 30),
            "price": Decimal(i - 50).scaleb(-2),
            "at": datetime(2026, 1, 1) + timedelta(seconds=i),  # noqa: DTZ001
            "raw": bytes([i % 256] * 16),
            "n": i % 5,
            "big": Decimal(2**64 - 1 - i),
            "day": date(2026, 1, 1) + timedelta(days=i % 40),
            "weight": i / 7,
        }
        some = {name: value if chosen.random() < 0.8 else None for name, value in some.items()}
        return Row(op, start + 1 + i, {"id": i, **some})

    def merge(start, rows):
        lake.merge(lake.batches.plan(start + 1_000, lake.batches.window(start, start + 1_000, {schema: rows})))

    merge(4, [row("c", 4, i, 0) for i in range(900)])
    merge(1_004, [row("d" if i % 4 else "u", 1_004, i, 1) for i in range(0, 900, 5)])
    name = lake.name(schema.name)
    for change in ("RENAME COLUMN note TO renamed", "ADD COLUMN note string", "ALTER COLUMN n TYPE bigint"):
        lake.spark.sql(f"ALTER TABLE {name} {change}")
    expected = {one["id"]: one for one in spark_rows(lake, schema.name)}
    assert len(expected) == 900 - 180 * 3 // 4
    with opened(lake) as reading:
        reader = reading.table(schema.name)
        asked = [3, 5, 20, 440, 441, 442, 447, 899, 900, *range(0, 900, 41)]
        assert [reader.get(key) for key in asked] == [expected.get(key) for key in asked]
        found = reader.multi_get(asked).to_pylist()
        assert [one if one.pop("_found") else None for one in found] == [expected.get(key) for key in asked]
        snapshot = reader.pinned
        files = [group.opened for file in snapshot.files for group in snapshot.groups(file)]
        indexes = [read_index(one.metadata, one.handle.read_at) for one in files]
        assert max(len(chunk.firsts) for one in indexes for chunk in one.chunks[0] if chunk) > 100


def add_with_defaults(lake, name):
    """Add columns with an initial default, which files from before do not hold."""
    iceberg = lake.spark.sparkContext._gateway.jvm.org.apache.iceberg
    types, literal = iceberg.types.Types, iceberg.expressions.Literal
    text = literal.of("x").to(types.StringType.get())
    update = lake.target(name)._java().updateSchema()
    for column, of, value in (
        ("d", types.StringType.get(), text),
        ("i", types.LongType.get(), literal.of(42).to(types.LongType.get())),
        ("day", types.DateType.get(), literal.of("1969-12-30").to(types.DateType.get())),
        ("amount", types.DecimalType.of(9, 2), literal.of("-1.50").to(types.DecimalType.of(9, 2))),
        ("at", types.TimestampType.withoutZone(), literal.of("2026-01-02T03:04:05.000006").to(types.TimestampType.withoutZone())),
        ("flag", types.BooleanType.get(), literal.of(True)),
        ("weight", types.DoubleType.get(), literal.of(1.5)),
    ):  # fmt: skip
        update = update.addColumn(column, of, "", value)
    update.commit()


def test_position_deletes_of_format_version_2_and_vectors_after_them(lake):
    """A table that another tool made, with identifier fields as its key, and then upgraded to version 3."""
    name = f"{lake.name('x.y').partition('.')[0]}.{lake.database}.old"
    lake.spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {name.rpartition('.')[0]}")
    lake.spark.sql(
        f"CREATE TABLE {name} (id bigint NOT NULL, v string) USING iceberg TBLPROPERTIES ('format-version' = '2', "
        "'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read')"
    )
    lake.spark.sql(f"ALTER TABLE {name} SET IDENTIFIER FIELDS id")
    lake.spark.sql(f"INSERT INTO {name} SELECT id, concat('v', id) FROM range(0, 200)")
    lake.spark.sql(f"DELETE FROM {name} WHERE id % 7 = 0")
    lake.spark.sql(f"UPDATE {name} SET v = 'changed' WHERE id % 5 = 0")
    lake.spark.sql(f"INSERT INTO {name} VALUES (7, 'again')")
    table_name = f"{lake.database}.old"
    with opened(lake) as reading:
        reader = reading.table(table_name)
        assert_reads_as_spark(reader, spark_rows(lake, table_name), [0, 14, 200])
        lake.spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('format-version' = '3')")
        lake.spark.sql(f"DELETE FROM {name} WHERE id % 11 = 0")
        reader.refresh()
        assert_reads_as_spark(reader, spark_rows(lake, table_name), [0, 14, 22])


def test_equality_deletes_are_refused_by_name(lake):
    """Another writer's: without them, deleted rows would be shown."""
    schema, _ = orders(lake)
    lake.merge(
        lake.batches.plan(104, lake.batches.window(4, 104, {schema: [Row("c", 5, {"id": 1, "v": 1, "t": "x"})]}))
    )
    java, gateway = lake.target(schema.name)._java(), lake.spark.sparkContext._gateway
    ids = gateway.new_array(gateway.jvm.int, 1)
    ids[0] = 1
    builder = gateway.jvm.org.apache.iceberg.FileMetadata.deleteFileBuilder(java.spec()).ofEqualityDeletes(ids)
    described = builder.withPath(f"{java.location()}/eq.parquet").withFormat("PARQUET").withFileSizeInBytes(10)
    java.newRowDelta().addDeletes(described.withRecordCount(1).build()).commit()
    with opened(lake) as reading, pytest.raises(StoreError, match="has equality deletes"):
        reading.table(schema.name)


def test_a_reader_stays_at_its_snapshot_until_it_is_refreshed(lake, rounds):
    """Merges change nothing for it. Once maintenance has removed its files, the error says what to do."""
    schema, key_of = orders(lake)
    rounds(schema, key_of, rounds=2)
    with opened(lake) as reading:
        reader, stale = reading.table(schema.name), reading.table(schema.name)
        before = spark_rows(lake, schema.name)
        rounds(schema, key_of, rounds=3, seed=2, first=2)
        assert_reads_as_spark(reader, before)
        reader.refresh()
        after = spark_rows(lake, schema.name)
        assert after != before
        assert_reads_as_spark(reader, after)
        assert stale.snapshot_id != reader.snapshot_id
    with opened(lake) as reading:
        cold = reading.table(schema.name)
        # So many that each data file has new deletes: one file holds those of several, and stays while one of them is valid.
        rounds(schema, key_of, rounds=4, seed=3, first=5)
        keep(lake, schema.name)
        with pytest.raises(StoreError, match=r"does not exist any more.*call refresh\(\)"):
            cold.scan().read_all()
        cold.refresh()
        assert_reads_as_spark(cold, spark_rows(lake, schema.name))


def test_threads_read_whole_snapshots_while_merges_go_on(lake, rounds):
    """Every scan equals the table after one of the merges; some of the threads refresh."""
    schema, key_of = orders(lake)
    rounds(schema, key_of, rounds=1)
    states, seen, stop, faults = {}, set(), threading.Event(), []
    with opened(lake) as reading:
        reader = reading.table(schema.name)

        def read(number):
            try:
                while not stop.is_set():
                    if number == 0:
                        reader.refresh()
                    rows = reader.scan(columns=["id", "v", "_offset"]).read_all().to_pylist()
                    seen.add(tuple(tuple(row.values()) for row in rows))
                    reader.multi_get([-10, 0, 5])
            except Exception as error:  # noqa: BLE001 - shown at the end
                faults.append(error)

        threads = [threading.Thread(target=read, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        for number in range(1, 5):
            rounds(schema, key_of, rounds=1, seed=number, first=number)
        stop.set()
        for thread in threads:
            thread.join()
    assert faults == []
    snapshots = lake.spark.sql(f"SELECT snapshot_id FROM {lake.name(schema.name)}.snapshots").collect()
    for (snapshot,) in snapshots:
        rows = sorted((row["id"], row["v"], row["_offset"]) for row in spark_rows(lake, schema.name, at=snapshot))
        states[snapshot] = tuple(rows)
    assert len(seen) > 1
    assert seen <= set(states.values())


def test_a_table_is_read_as_of_a_cut(lake, rounds):
    """By a cut, or by a time; with the columns of then. An expired snapshot is an error."""
    schema, key_of = orders(lake)
    rounds(schema, key_of, rounds=2)
    first = lake.cuts[0].tables[0].lake_snapshot
    then = spark_rows(lake, schema.name, at=first)
    lake.spark.sql(f"ALTER TABLE {lake.name(schema.name)} RENAME COLUMN v TO w")
    with opened(lake) as reading:
        reader = reading.table(schema.name, cut=lake.cuts[0])
        assert_reads_as_spark(reader, then)
        reader.refresh()
        assert reader.snapshot_id == first
        time = START_TIME + timedelta(seconds=104)
        assert cut_as_of(lake.store, "shop", time) == lake.cuts[0]
        assert cut_as_of(lake.store, "shop", datetime.now(UTC)) == lake.cuts[1]
        with pytest.raises(ConfigError, match="no cut is stored"):
            cut_as_of(lake.store, "shop", START_TIME)
        with pytest.raises(ConfigError, match="needs a time zone"):
            cut_as_of(lake.store, "shop", time.replace(tzinfo=None))
        with pytest.raises(ConfigError, match=f"the cut {lake.cuts[0].merge_id} has no lake table"):
            reading.table(f"{lake.database}.other", cut=lake.cuts[0])
        keep(lake, schema.name)
        with pytest.raises(StoreError, match="does not exist any more"):
            reading.table(schema.name, cut=lake.cuts[0])


@pytest.mark.parametrize("mode", ["mirror", "soft_delete", "scd2"])
def test_the_changes_between_two_cuts_are_those_between_their_rows(lake, rounds, mode):
    """After merges and maintenance, which moves rows to other files."""
    schema, key_of = orders(lake)
    keeping(lake, schema, mode)
    hidden = {"mirror": "false", "soft_delete": "_is_deleted", "scd2": "NOT _is_current"}[mode]
    rounds(schema, key_of)

    def rows_at(cut):
        found = spark_rows(lake, schema.name, f"NOT ({hidden})", cut.tables[0].lake_snapshot)
        return {row["id"]: row for row in found}

    states = [rows_at(cut) for cut in lake.cuts]
    with opened(lake) as reading:
        readers = [reading.table(schema.name, cut=cut) for cut in lake.cuts]
        for first, last in ((0, 1), (1, 3), (0, 3), (3, 0), (2, 2)):
            before, after = states[first], states[last]
            found = net_changes(readers[first], readers[last]).to_pylist()
            assert [row["id"] for row in found] == [
                key for key in sorted({*before, *after}) if before.get(key) != after.get(key)
            ]
            for row in found:
                change = row.pop(CHANGE)
                assert row == (before if change == "delete" else after)[row["id"]]
                assert change == (
                    "insert" if row["id"] not in before else "delete" if row["id"] not in after else "update"
                )
        keep(lake, schema.name)
        current = reading.table(schema.name)
        assert current.snapshot_id != readers[3].snapshot_id
        assert net_changes(readers[3], current).num_rows == 0
