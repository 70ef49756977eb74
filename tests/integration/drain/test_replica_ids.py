"""Two binlog dumps with one server_id: the server ends the older one, which is retried, and nothing is lost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_lib.binlog.framing.boundary_scan import BoundaryScan
from cdc_lib.binlog.rows.masking import Shape
from cdc_lib.drain.origin import ServerOrigin
from cdc_lib.errors import SourceUnavailable
from cdc_lib.model.position import Position
from cdc_lib.mysql.binlog_stream import binlog_dump, replica_id
from cdc_lib.schema_history.versions import Histories
from cdc_lib.status.overview import findings_of
from tests.harness.binlog.capture import SOURCE, Capture

ROWS = 24


@pytest.fixture(params=["mysql", "mariadb"])
def capture(request, tmp_path):
    """More binlog than sockets buffer."""
    server = request.getfixturevalue(f"{request.param}_server")
    database = request.getfixturevalue(f"{request.param}_database")
    capture = Capture(server, database, tmp_path)
    capture.execute("CREATE TABLE t (id INT PRIMARY KEY, v LONGTEXT)")
    return capture


def test_a_dump_that_another_one_with_its_id_ends_is_retried(capture):
    """The window was not read to its end; drained again, it has every row."""
    start = capture.head()
    for number in range(ROWS):
        capture.execute(f"INSERT INTO t VALUES ({number}, REPEAT('x', 1000000))")
    window, facts = capture.window_from(start), capture.facts()
    server = capture.config.server.model_copy(update={"server_id": 1_900_000_000})
    first = Position(start.file, 4)

    def dump():
        return binlog_dump(server, capture.credentials, facts.identity, first, SOURCE)

    scan = BoundaryScan(SOURCE, facts.identity.flavor, first.file, window.stop, window.stop, checksum=facts.checksum)
    with dump() as older:
        with dump() as newer:
            again = BoundaryScan(
                SOURCE, facts.identity.flavor, first.file, window.stop, window.stop, checksum=facts.checksum
            )
            assert again.run(newer).position == window.stop
        with pytest.raises(SourceUnavailable) as ended:
            scan.run(older)
    assert ended.value.retryable
    assert len(capture.rows(capture.drain(window), "t")) == ROWS


def test_windows_of_one_server_have_different_ids_and_a_window_keeps_its_own(capture):
    """The range is far from the ids that people choose: a server's own id is not in it by chance."""
    ids = {replica_id(SOURCE, Position(f"binlog.{file:06d}", 4)) for file in range(1, 200)}
    assert len(ids) == 199
    assert all(1 << 30 <= one < 1 << 31 for one in ids)
    assert replica_id(SOURCE, Position("binlog.000001", 4)) in ids


def read_to_the_end(stream):
    view, read = memoryview(bytearray(1 << 20)), 0
    while got := stream.read_into(view):
        read += got
    return read


def test_nothing_else_that_begins_where_a_window_does_ends_its_dump(capture, tmp_path):
    """Another source of the same server, as after an hour without changes, and the history's reading of statements."""
    start, shape = capture.head(), Shape()
    for number in range(ROWS):
        capture.execute(f"INSERT INTO t VALUES ({number}, REPEAT('x', 1000000))")
    window, facts = capture.window_from(start), capture.facts()
    other = Capture(capture.server, capture.database, tmp_path / "other")

    def dump(one):
        return ServerOrigin(one.pipeline, shape).stream(window, facts.identity)

    with dump(capture) as older:
        with dump(other) as newer:
            assert read_to_the_end(newer) > window.stop.offset - start.offset
        histories = Histories(capture.config, capture.credentials, capture.store, 1, facts, {})
        assert histories.statements(start, window.stop) == []
        assert read_to_the_end(older) > window.stop.offset - start.offset


def test_the_doctor_warns_of_an_id_that_is_the_server_s_own(capture):
    """An id in the source file is compared with the server's own, and with its replicas' where the user may see them."""
    own = capture.facts().identity.server_id
    server = capture.config.server.model_copy(update={"server_id": own})
    config = capture.config.model_copy(update={"server": server})
    found = findings_of(replace(capture.pipeline, config=config))
    assert [one.level for one in found if "server.server_id" in one.what] == ["warning"]
