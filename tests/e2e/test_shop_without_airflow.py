"""The pipeline without Airflow, from a real server through real batches and real Spark into a real lake."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
import yaml

from cdc_lib.config import Credentials, SourceConfig, load_source
from cdc_lib.config.maintenance import MaintenanceConfig
from cdc_lib.pipeline import Pipeline
from cdc_lib.status.overview import status_of
from cdc_lib.store.cuts import last_cut
from demo.shop import seed
from demo.shop.compare import TableComparison, compare_database, open_lake
from demo.shop.workload import Workload
from spark_jobs.maintain import lake_tables, maintain
from spark_jobs.merge import run
from spark_jobs.runtime.session import spark_session
from tests.harness.servers import SqlServer
from tests.harness.shop.seeded import seeded_shop, source_settings

pytestmark = [
    # py4j leaves its sockets for the garbage collector to close.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

ROWS = 5_000
ALTERS = {
    150: ("customers", "loyalty_points", "INT UNSIGNED NULL AFTER email"),
    250: ("orders", "carrier", "ENUM('post', 'dhl', 'fahrrad 🚲') NULL"),
}


@pytest.fixture
def shop(any_server: SqlServer) -> Iterator[str]:
    """Name of a new, seeded shop on ``any_server``."""
    with seeded_shop(any_server, ROWS) as name:
        yield name


@pytest.fixture
def config(any_server: SqlServer, shop: str, tmp_path: Path) -> SourceConfig:
    """A source file as a user writes it; small chunks and windows, so that there are several of each."""
    file = tmp_path / "shop.yaml"
    settings = source_settings(any_server, [f"{shop}.*"], tmp_path, snapshot={"chunk_rows": 700})
    file.write_text(yaml.safe_dump(settings))
    return load_source(file)


@pytest.fixture
def pipeline(config: SourceConfig, any_server: SqlServer) -> Pipeline:
    return Pipeline.open(config, Credentials(any_server.cdc_user, any_server.cdc_password))


def one_round(pipeline: Pipeline) -> None:
    """Do what one run of the DAG does."""
    for unit in pipeline.plan(by="test"):
        pipeline.drain(unit)
    pipeline.ack_drain(by="test")
    plan = pipeline.plan_merge(by="test")
    if plan is not None:
        run(pipeline.config, plan, pipeline.store)
        pipeline.ack_lake(by="test")


def differences(
    server: SqlServer, shop: str, config: SourceConfig, tables: int = len(seed.TABLES)
) -> list[TableComparison]:
    """Compare every row and column of all tables; the shop must not change meanwhile."""
    assert config.lake.uri is not None
    assert config.lake.warehouse is not None
    options = {"host": server.host, "port": server.port, "user": "root", "password": ""}
    comparisons = compare_database(options, shop, open_lake(config.lake.uri, config.lake.warehouse))
    assert len(comparisons) == tables
    return [table for table in comparisons if table.differences]


def test_the_lake_equals_the_shop_in_every_row_and_column(
    any_server: SqlServer, shop: str, config: SourceConfig, pipeline: Pipeline
) -> None:
    """Snapshot, concurrent changes, two ADD COLUMN, changed primary keys, partial row images, a table without a key, maintenance."""
    with any_server.connect() as connection:
        workload = Workload(connection, shop, alters=ALTERS)
        workload.run(50)
        for unit in pipeline.plan(by="test"):
            pipeline.drain(unit)
            workload.run(10)  # while the snapshot of the next table has not started
        pipeline.ack_drain(by="test")
        one_round(pipeline)
        connection.cursor().execute("SET SESSION binlog_row_image = 'NOBLOB'")  # a session may set it
        workload.run(150)
        one_round(pipeline)
        connection.cursor().execute("SET SESSION binlog_row_image = 'FULL'")
        any_server.execute("FLUSH BINARY LOGS")  # a window over the end of a binlog file
        workload.run(200)
    one_round(pipeline)

    assert differences(any_server, shop, config) == []
    status = status_of(pipeline)
    assert status.lake is not None
    assert status.drain is not None
    assert status.lake.position == status.drain.position
    assert not status.drain.open_snapshots

    small = config.model_copy(
        update={"maintenance": MaintenanceConfig(keep_snapshots_for=timedelta(0), min_small_files=2)}
    )
    names = lake_tables(small, last_cut(pipeline.store, small.source), [])
    with spark_session(small) as spark:
        kept = maintain(spark, small, pipeline.store, names)
    assert any(table.rewritten > table.added for table in kept)
    assert differences(any_server, shop, config) == []
    with any_server.connect() as connection:
        Workload(connection, shop, seed=2).run(50)
    one_round(pipeline)
    assert differences(any_server, shop, config) == []


def test_a_round_without_changes_leaves_the_lake_as_it_is(
    any_server: SqlServer, shop: str, config: SourceConfig, pipeline: Pipeline
) -> None:
    """Rounds after the last change give the same rows and no new snapshot of any table."""
    one_round(pipeline)
    one_round(pipeline)
    assert config.lake.uri is not None
    assert config.lake.warehouse is not None
    catalog = open_lake(config.lake.uri, config.lake.warehouse)

    def snapshots() -> dict[str, int | None]:
        tables = {name: catalog.load_table((shop, name)).current_snapshot() for name in seed.TABLES}
        return {name: snapshot and snapshot.snapshot_id for name, snapshot in tables.items()}

    before = snapshots()
    one_round(pipeline)
    assert snapshots() == before
    assert differences(any_server, shop, config) == []


WHILE_READ = (
    "TRUNCATE TABLE order_items",
    "CREATE TABLE archive LIKE payments",
    "INSERT INTO archive SELECT * FROM payments",
)
IN_ONE_WINDOW = (
    "TRUNCATE TABLE archive",
    "INSERT INTO archive SELECT * FROM payments ORDER BY id LIMIT 50",
    "ALTER TABLE customers ADD COLUMN points INT NOT NULL DEFAULT 3",
    "UPDATE customers SET points = 4 ORDER BY id LIMIT 20",
    "CREATE TABLE _orders_new LIKE orders",
    "ALTER TABLE _orders_new ADD COLUMN priority VARCHAR(9) CHARACTER SET utf8mb4 NOT NULL DEFAULT 'normal'",
    "INSERT INTO _orders_new SELECT *, 'normal' FROM orders",
    "RENAME TABLE orders TO _orders_old, _orders_new TO orders",
    "DROP TABLE _orders_old",
    "UPDATE orders SET priority = 'high' ORDER BY id LIMIT 20",
    "CREATE TABLE kept LIKE products",
    "INSERT INTO kept SELECT * FROM products ORDER BY id LIMIT 100",
    "DROP TABLE products",
    "CREATE TABLE IF NOT EXISTS products LIKE kept",
    "INSERT INTO products SELECT * FROM kept ORDER BY id LIMIT 30",
    "RENAME TABLE payments TO moved, archive TO payments, moved TO archive",
    "ALTER TABLE kept ADD COLUMN noted DATETIME NOT NULL DEFAULT CURRENT_TIMESTAMP",
    "DELETE FROM archive ORDER BY id LIMIT 5",
)


def test_the_lake_follows_ddl(any_server: SqlServer, shop: str, config: SourceConfig, pipeline: Pipeline) -> None:
    """During the first snapshots, and many statements in one window."""

    def run_all(statements: tuple[str, ...]) -> None:
        for statement in statements:
            any_server.execute(statement, database=shop)

    for i, unit in enumerate(pipeline.plan(by="test")):
        if i == 2:
            run_all(WHILE_READ)
        pipeline.drain(unit)
    pipeline.ack_drain(by="test")
    for _ in range(2):
        one_round(pipeline)
    assert differences(any_server, shop, config, len(seed.TABLES) + 1) == []

    run_all(IN_ONE_WINDOW)
    for _ in range(4):  # new snapshots are requested, read, and merged after the windows before their ends
        one_round(pipeline)
    any_server.execute("UPDATE payments SET id = id + 1000000 ORDER BY id DESC LIMIT 3", database=shop)
    one_round(pipeline)
    assert differences(any_server, shop, config, len(seed.TABLES) + 2) == []
