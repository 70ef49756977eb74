"""Spark and PyIceberg read cuts through the REST catalog: all tables as of one transaction, while merges go on."""

from __future__ import annotations

from contextlib import closing

import pytest
from pyiceberg.catalog import load_catalog

from cdc_lib.lake.catalog import open_catalog
from cdc_lib.serve.app import make_app
from cdc_lib.serve.catalog import CutCatalog
from spark_jobs.merging.run import merge
from tests.harness.lake.batches import BIGINT, INT, Row, table
from tests.harness.lake.reading import opened
from tests.harness.store.rest_catalog import serving

ROUNDS = 4
TOTAL = 1000


@pytest.fixture
def accounts(lake):
    """Two tables whose amounts have one sum in every transaction."""
    return [table(f"{lake.database}.{name}", {"id": BIGINT, "amount": INT}) for name in ("giro", "savings")]


def transfer(number, giro, savings):
    """The rows of a transaction that moves an amount from one table to the other."""
    op, offset = "c" if number == 1 else "u", number * 100
    return {
        giro: [Row(op, offset + 1, {"id": 1, "amount": TOTAL - number * 10})],
        savings: [Row(op, offset + 2, {"id": 1, "amount": number * 10})],
    }


@pytest.fixture
def spark_catalog(lake):
    """A catalog in the running Spark over the REST server; gives its name."""
    with closing(open_catalog(lake.config)) as catalog:
        app = make_app({"shop": CutCatalog(lake.config, lake.store, catalog)}, "secret")
        with serving(app) as address:
            name = f"cuts_{lake.database}"
            settings = {
                "type": "rest",
                "uri": address,
                "warehouse": "shop",
                "token": "secret",
                "cache-enabled": "false",
            }
            lake.spark.conf.set(f"spark.sql.catalog.{name}", "org.apache.iceberg.spark.SparkCatalog")
            for key, value in settings.items():
                lake.spark.conf.set(f"spark.sql.catalog.{name}.{key}", value)
            yield name, address


def test_engines_read_two_tables_as_of_one_transaction_while_merges_go_on(lake, accounts, spark_catalog):
    """Read table by table the sum is wrong between the commits of a merge; a cut has the right one at any moment."""
    catalog, address = spark_catalog
    giro, savings = (one.name for one in accounts)
    config = lake.config.model_copy(update={"merge": lake.config.merge.model_copy(update={"parallelism": 1})})
    by_table, by_spark, by_client, by_sql = [], [], [], []

    def sums(first, second):
        found = lake.spark.sql(
            f"SELECT (SELECT sum(amount) FROM {first}) + (SELECT sum(amount) FROM {second}) AS total"
        )
        return found.collect()[0].total

    def of_cut(name):
        database, _, one = name.partition(".")
        return f"{catalog}.latest.{database}.{one}"

    def look(_):
        by_table.append(sums(lake.name(giro), lake.name(savings)))
        by_spark.append(sums(of_cut(giro), of_cut(savings)))
        client = load_catalog("cuts", type="rest", uri=address, warehouse="shop", token="secret")
        found = [client.load_table(("latest", *name.split("."))).scan().to_arrow() for name in (giro, savings)]
        by_client.append(sum(sum(rows["amount"].to_pylist()) for rows in found))
        with opened(lake) as reading:
            cut = reading.at(lake.cuts[-1])
            total = f"SELECT (SELECT sum(amount) FROM {giro}) + (SELECT sum(amount) FROM {savings}) AS total"
            assert (cut.position, cut.gtid_set) == (lake.cuts[-1].position, lake.cuts[-1].gtid_set)
            by_sql.extend(cut.sql(total).read_all()["total"].to_pylist())

    for number in range(1, ROUNDS + 1):
        place = number * 100
        plan = lake.batches.plan(place + 100, lake.batches.window(place, place + 100, transfer(number, *accounts)))
        said = look if number > 1 else lambda _: None
        lake.cuts.append(merge(lake.spark, config, plan, lake.store, said))
    assert set(by_spark) == set(by_client) == set(by_sql) == {TOTAL}
    assert len(by_spark) >= 2 * (ROUNDS - 1)
    assert set(by_table) > {TOTAL}


def test_an_earlier_cut_is_read_with_the_columns_of_then(lake, accounts, spark_catalog):
    """By its id and by a position, in SQL of Spark; DESCRIBE and SHOW work, writes do not."""
    catalog, _ = spark_catalog
    giro = accounts[0]
    for number in (1, 2):
        place = number * 100
        rows = {giro: transfer(number, *accounts)[giro]}
        lake.merge(lake.batches.plan(place + 100, lake.batches.window(place, place + 100, rows)))
    lake.spark.sql(f"ALTER TABLE {lake.name(giro.name)} ADD COLUMN later INT")
    database, _, name = giro.name.partition(".")

    def amounts(cut):
        return lake.spark.sql(f"SELECT * FROM {catalog}.`{cut}`.{database}.{name}").collect()

    first, last = lake.cuts
    assert [row.amount for row in amounts(first.merge_id)] == [TOTAL - 10]
    assert (
        [row.amount for row in amounts(str(last.position))] == [row.amount for row in amounts("latest")] == [TOTAL - 20]
    )
    assert "later" not in amounts(first.merge_id)[0].asDict()
    shown = lake.spark.sql(f"SHOW TABLES IN {catalog}.latest.{database}").collect()
    assert [row.tableName for row in shown] == [name]
    with pytest.raises(Exception, match=r"(?i)unsupported|not support|nothing else"):
        lake.spark.sql(f"DELETE FROM {catalog}.latest.{database}.{name}")
    assert len(amounts("latest")) == 1
