"""A closed binlog file that was cut in the middle of an event: the hint of the message leads out."""

from __future__ import annotations

import pytest

from cdc_lib import requests
from cdc_lib.config.start import StartAt
from cdc_lib.errors import DecodeError, SourceError
from cdc_lib.model.position import Position
from tests.harness.binlog.capture import Capture
from tests.harness.binlog.torn_files import cut
from tests.harness.lake.merging import Lake, drain_all
from tests.harness.servers import MariaDbServer, MySqlServer


@pytest.mark.parametrize("make", [MySqlServer, MariaDbServer], ids=["mysql", "mariadb"])
def test_a_file_that_was_cut_in_the_middle_of_an_event_names_two_ways_out(make, tmp_path):
    """The file is restored, or what follows it is read with new snapshots of all tables."""
    with make() as server:
        server.execute("CREATE DATABASE shop")
        server.execute("CREATE TABLE shop.a (id INT PRIMARY KEY, v TEXT)")
        capture, lake = Capture(server, "shop", tmp_path, start="latest"), Lake("a")
        drain_all(capture)
        server.execute("INSERT INTO shop.a VALUES (1, 'one')")
        end = capture.head()
        server.execute("INSERT INTO shop.a VALUES (2, REPEAT('two', 1000))")
        server.execute("FLUSH BINARY LOGS")
        server.execute("INSERT INTO shop.a VALUES (3, 'three')")
        restore = cut(server, Position(end.file, end.offset + 1500))
        with pytest.raises((SourceError, DecodeError)) as error:
            drain_all(capture)
        assert "Put the whole file back" in error.value.hint, error.value
        place = f"{end.file[:-6]}{end.file_number + 1:06d}:4"
        assert f"cdc cursor rewind shop --position {place}, then cdc snapshot shop '*.*'" in error.value.hint
        restore()
        drain_all(capture)
        lake.merge_all(capture)
        assert sorted(lake.rows) == [1, 2, 3]
        cut(server, Position(end.file, end.offset + 1500))
        requests.rewind(capture.pipeline, StartAt(position=place), by="test", why="cut")
        requests.resnapshot(capture.pipeline, ["*.*"], by="test", why="cut")
        server.execute("INSERT INTO shop.a VALUES (4, 'four')")
        drain_all(capture)
        lake.merge_all(capture)
        assert {key: row["v"] for key, row in lake.rows.items()} == dict(server.execute("SELECT * FROM shop.a"))
