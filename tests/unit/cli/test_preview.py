from __future__ import annotations

import json
import re
import shutil
import sqlite3
import threading
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer

import pyarrow as pa
import pytest

from cdc_lib.cli.lake import reader
from cdc_lib.config import load_source
from cdc_lib.lake.catalog import open_catalog
from tests.harness.servers.process import free_port


@pytest.fixture
def lake(tmp_path, sources):
    """A real lake in SQLite and a folder, with one table of three rows."""
    (tmp_path / "cat.db").touch()
    config = load_source(sources / "shop.yaml")
    catalog = open_catalog(config)
    catalog.create_tables()
    catalog.create_namespace("shop")
    rows = pa.table({"id": [1, 2, 3], "name": ["a", None, "[b]"], "raw": [b"\x00\xff", b"", None], "_epoch": [1, 1, 1]})
    catalog.create_table(("shop", "orders"), rows.schema).append(rows)
    catalog.close()
    return config


def test_rows_of_a_lake_table_are_shown_without_spark(cdc, lake):
    """Nulls and bytes differ from texts; texts in brackets are unchanged."""
    result = cdc("lake", "preview", "shop", "shop.orders")
    assert result.exit_code == 0
    assert "NULL" in result.stdout
    assert "00ff" in result.stdout
    assert "[b]" in result.stdout
    assert "_epoch" not in result.stdout
    assert "3 rows" in result.stdout


def test_no_more_rows_than_asked_for_are_read(cdc, lake):
    """And the columns of the order key on request."""
    result = cdc("lake", "preview", "shop", "shop.orders", "--limit", 2, "--all")
    assert "2 rows" in result.stdout
    assert "_epoch" in result.stdout


def test_a_table_that_the_lake_does_not_have_is_reported(cdc, lake):
    """With when it will have it."""
    result = cdc("lake", "preview", "shop", "shop.nothing")
    assert result.exit_code == 2
    assert "the lake has no table shop.nothing" in result.stderr


def test_a_name_that_is_not_a_table_is_reported(cdc, lake):
    """The table is named as at the source."""
    result = cdc("lake", "preview", "shop", "orders")
    assert result.exit_code == 2
    assert "'orders' is not database.table" in result.stderr


def test_looking_at_a_lake_that_is_not_there_does_not_make_one(cdc, tmp_path):
    """SQLite would make an empty file."""
    result = cdc("lake", "preview", "shop", "shop.orders")
    assert result.exit_code == 2
    assert "there is no lake yet" in result.stderr
    assert not (tmp_path / "cat.db").exists()


def test_a_missing_pyiceberg_is_reported_with_its_install_command(cdc, monkeypatch):
    """Only this command needs it."""
    monkeypatch.setattr(reader.importlib.util, "find_spec", lambda _: None)
    result = cdc("lake", "preview", "shop", "shop.orders")
    assert result.exit_code == 2
    assert 'pip install "lakecdc[read]"' in result.stderr


def test_a_table_of_many_columns_and_long_texts_takes_a_line_per_row(cdc, lake):
    """It took 78 lines for ten rows; what there is no room for is named."""
    catalog = open_catalog(lake)
    rows = pa.table({f"column_{n}": [f"{n} " * 60, "a\nb"] for n in range(40)})
    catalog.create_table(("shop", "wide"), rows.schema).append(rows)
    catalog.close()
    lines = cdc("lake", "preview", "shop", "shop.wide").stdout.splitlines()
    assert len(lines) <= 2 + 6
    assert max(map(len, lines[:6])) <= 200
    assert any("more columns: " in line and "column_39; --json" in line for line in lines)
    (first, second) = json.loads(cdc("lake", "preview", "shop", "shop.wide", "--json").stdout)
    assert first["column_39"] == "39 " * 60
    assert second["column_0"] == "a\nb"


def test_dates_and_times_that_python_does_not_have_are_shown(cdc, lake):
    """MySQL has a year 0, and the lake holds it."""
    catalog = open_catalog(lake)
    days = pa.array([-719528, None], pa.int32()).cast(pa.date32())
    times = pa.array([-62167219200000000, 0], pa.int64()).cast(pa.timestamp("us"))
    rows = pa.table({"day": days, "time": times})
    # PyIceberg itself fails to write down the least of such dates.
    catalog.create_table(("shop", "old"), rows.schema, properties={"write.metadata.metrics.default": "none"}).append(
        rows
    )
    catalog.close()
    result = cdc("lake", "preview", "shop", "shop.old")
    assert result.exit_code == 0
    assert "0000-01-01 │ 0000-01-01 00:00:00" in result.stdout
    assert json.loads(cdc("lake", "preview", "shop", "shop.old", "--json").stdout)[1]["day"] is None


def test_a_table_that_cannot_be_opened_without_spark_gives_one_error(cdc, lake, tmp_path):
    """Its location holds a # where its reader takes an address to end."""
    shutil.copytree(tmp_path / "lake" / "shop" / "orders", tmp_path / "lake" / "shop" / "#")
    with closing(sqlite3.connect(tmp_path / "cat.db")) as catalog, catalog:
        catalog.execute(
            "UPDATE iceberg_tables SET table_name = '#', "
            "metadata_location = replace(metadata_location, '/shop/orders/', '/shop/#/')"
        )
    result = cdc("lake", "preview", "shop", "shop.#")
    assert result.exit_code == 1
    assert "Traceback" not in result.output
    assert "Read it with Spark" in result.stderr


def test_an_unreachable_catalog_gives_one_error_without_credentials(cdc, sources):
    """It took 117 lines of a traceback."""
    path = sources / "shop.yaml"
    wrong = re.sub(
        "type: jdbc, uri: [^,]*,", f'type: rest, uri: "http://me:hunter3@127.0.0.1:{free_port()}",', path.read_text()
    )
    path.write_text(wrong)
    result = cdc("lake", "preview", "shop", "shop.orders")
    assert result.exit_code == 1
    assert "the lake's catalog cannot be reached" in result.stderr
    assert "Traceback" not in result.output
    assert "hunter3" not in result.output
    assert len(result.stderr.splitlines()) <= 3


def test_a_catalog_that_refuses_is_not_said_to_be_a_table(cdc, sources):
    """Its error named the source as a lake table, with the hint to restore files."""

    class Refusing(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(403)

    path = sources / "shop.yaml"
    with HTTPServer(("127.0.0.1", 0), Refusing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        uri = f"http://127.0.0.1:{server.server_port}"
        path.write_text(re.sub("type: jdbc, uri: [^,]*,", f'type: rest, uri: "{uri}",', path.read_text()))
        result = cdc("scan", "shop", "shop.orders")
        server.shutdown()
    assert result.exit_code == 2
    assert "the lake's catalog refuses the log-in: 403 (ForbiddenError)" in result.stderr
    assert "Correct token or credential" in result.stderr
