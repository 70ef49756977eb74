"""Files with and without CRC32 after each event, in one stream and in any order."""

from __future__ import annotations

import pytest

from cdc_lib.model.window import Window
from tests.harness.binlog.capture import SOURCE, Capture


@pytest.fixture
def capture(any_server, database, tmp_path):
    yield Capture(any_server, database, tmp_path)
    any_server.execute("SET GLOBAL binlog_checksum = CRC32")


@pytest.mark.parametrize("settings", [["NONE", "CRC32"], ["CRC32", "NONE"], ["NONE", "CRC32", "NONE"]])
@pytest.mark.parametrize("later", ["NONE", "CRC32"])
def test_a_window_over_files_with_and_without_checksums_is_read(capture, settings, later):
    """Each file says for itself; the server's setting when the window is read is a third matter."""
    capture.execute("CREATE TABLE a (id INT PRIMARY KEY)")
    start = None
    for number, setting in enumerate(settings):
        capture.server.execute(f"SET GLOBAL binlog_checksum = {setting}")
        start = start or capture.head()
        capture.execute(f"INSERT INTO a VALUES ({number}), ({number + 100})")
        capture.server.execute("FLUSH BINARY LOGS")
        capture.execute(f"INSERT INTO a VALUES ({number + 200})")
    stop = capture.head()
    capture.server.execute(f"SET GLOBAL binlog_checksum = {later}")
    manifest = capture.drain(Window(SOURCE, 1, start, stop))
    expected = [key for number in range(len(settings)) for key in (number, number + 100, number + 200)]
    assert [row["id"] for row in capture.rows(manifest, "a")] == expected
    assert stop.file_number > start.file_number
