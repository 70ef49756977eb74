"""Archived batches merged again: into damaged lake tables and into tables beside them, when the server has purged its binlog."""

from __future__ import annotations

import secrets
from dataclasses import replace

import pytest

from cdc_lib.backfill.replay import BatchReplay
from cdc_lib.lake.routing import lake_merges
from cdc_lib.merge.load import load_plan
from cdc_lib.model.backfill import COPY_SUFFIX as SUFFIX
from cdc_lib.model.backfill import BackfillRequest, Period
from cdc_lib.source import Source
from cdc_lib.store.objects.layered import LayeredStore
from cdc_lib.store.objects.local import LocalStore
from demo.shop import seed
from demo.shop.compare import compare_database, open_lake
from demo.shop.workload import Workload
from spark_jobs.backfill import backfill
from spark_jobs.merging.run import merge, needs_spark, run
from spark_jobs.sql import full_name
from tests.harness.binlog.capture import Capture

TABLES = ("customers", "orders", "page_views")
"""Of the shop's tables those that are captured; the last one has no key."""


class Shop:
    """A shop on a real server, its pipeline, and the lake of the running Spark."""

    def __init__(self, server, folder, lake, **settings):
        self.server, self.lake = server, lake
        self.name = f"shop_{secrets.token_hex(4)}"
        with server.connect() as connection:
            seed.create(connection, self.name)
            seed.fill(connection, 300)
        settings = {"lake": lake.config.lake.model_dump(), "snapshot": {"chunk_rows": 20}, **settings}
        settings["tables"] = {"include": [f"{self.name}.{table}" for table in TABLES]}
        self.capture = Capture(server, self.name, folder, **settings)
        self.config, self.pipeline, self.folder = self.capture.config, self.capture.pipeline, folder
        self.archived = self.pipeline

    def round(self):
        for unit in self.pipeline.plan(by="test"):
            self.pipeline.drain(unit)
        self.pipeline.ack_drain(by="test")
        plan = self.pipeline.plan_merge(by="test")
        if plan is None:
            return
        if needs_spark(self.config, self.capture.store, load_plan(self.capture.store, plan)):
            merge(self.lake.spark, self.config, plan, self.capture.store, self.lake.said.append)
        else:
            run(self.config, plan, self.capture.store)
        self.pipeline.ack_lake(by="test")

    def write(self, rounds, steps):
        with self.server.connect() as connection:
            workload = Workload(connection, self.name, alters={})
            for number in range(rounds):
                if number == 1:
                    connection.cursor().execute("SET SESSION binlog_row_image = 'NOBLOB'")
                workload.run(steps)
                self.round()

    def purge(self):
        self.server.execute("FLUSH BINARY LOGS")
        self.round()
        self.server.purge_binlogs()

    def backfill(self, period=None, *tables, into="live"):
        return backfill(
            self.lake.spark,
            self.config,
            self.archived,
            BackfillRequest(period or Period(), tables, into),
            self.lake.said.append,
        )

    def decode_again(self):
        """Take the batches from now on from their raw events, decoded into another place."""
        place = LocalStore(self.folder / "again")
        redraining = BatchReplay(Source.over(self.config, self.capture.store), place)
        assert redraining.from_archive(Period(), report=lambda _: None) > 0
        self.archived = replace(self.pipeline, store=LayeredStore(place, self.capture.store))

    def lake_name(self, table, suffix=""):
        return full_name(lake_merges(self.config, [f"{self.name}.{table}"])[0].name).removesuffix("`") + suffix + "`"

    def sql(self, statement):
        return self.lake.spark.sql(statement)

    def differences(self):
        options = {"host": self.server.host, "port": self.server.port, "user": "root", "password": ""}
        catalog = open_lake(self.config.lake.uri, self.config.lake.warehouse)
        found = [one for one in compare_database(options, self.name, catalog) if one.table in TABLES]
        assert len(found) == len(TABLES)
        return [table for table in found if table.differences]

    def differs_beside(self):
        """Return the tables beside which the one that was made holds other rows, their order columns included."""
        found = []
        for table in TABLES:
            live, side = (f"SELECT * FROM {self.lake_name(table, suffix)}" for suffix in ("", SUFFIX))
            one = self.sql(f"({live}) EXCEPT ALL ({side})").count()
            if one or self.sql(f"({side}) EXCEPT ALL ({live})").count():
                found.append(table)
        return found


@pytest.fixture
def shop(mysql_server, tmp_path, lake):
    shop = Shop(mysql_server, tmp_path, lake, reselect={"mode": "never"}, raw_archive=True)
    yield shop
    mysql_server.execute(f"DROP DATABASE {shop.name}")


def test_backfills_of_damaged_tables_and_copies_equal_the_source_without_the_binlog(shop):
    """Once and again; and the merges that follow continue as if nothing had been."""
    shop.round()
    shop.write(2, 40)
    shop.purge()
    keyed, unkeyed = "orders", "page_views"
    shop.sql(f"DELETE FROM {shop.lake_name(keyed)} WHERE id % 3 = 0")
    shop.sql(f"UPDATE {shop.lake_name(keyed)} SET status = NULL WHERE id % 3 = 1")
    shop.sql(f"DELETE FROM {shop.lake_name(unkeyed)}")
    shop.sql(f"DROP TABLE {shop.lake_name('customers')}")
    assert shop.differences()
    shop.backfill()
    assert shop.differences() == []
    shop.backfill(into="copy")
    assert shop.differs_beside() == []
    shop.decode_again()
    shop.backfill()
    shop.backfill(into="copy")
    assert shop.differences() == []
    assert shop.differs_beside() == []
    shop.write(1, 30)
    assert shop.differences() == []
