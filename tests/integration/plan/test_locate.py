"""Places in the binlog of real servers, found by time, by GTIDs and by position."""

from __future__ import annotations

import time
import uuid
from datetime import timedelta

import pytest

from cdc_lib.errors import PositionNotFound, PositionPurged, ServerChanged
from cdc_lib.model.gtid import GtidSet
from cdc_lib.model.position import FIRST_EVENT_OFFSET, Position
from cdc_lib.mysql.binlog_stream import binlog_dump
from cdc_lib.plan.locate import BinlogSearch
from tests.harness.binlog.capture import SOURCE, Capture


@pytest.fixture
def capture(any_server, database, tmp_path):
    """A source over a table ``a``; its binlog begins with a file of its own."""
    any_server.execute("FLUSH BINARY LOGS")
    capture = Capture(any_server, database, tmp_path, start="latest")
    capture.execute("CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(100)) ENGINE=InnoDB")
    return capture


def seeker(capture):
    return BinlogSearch(SOURCE, capture.config.server, capture.credentials, capture.facts())


def ids_from(capture, position):
    """The rows that a window from here to the end of the binlog inserts."""
    return [row["id"] for row in capture.rows(capture.drain(capture.window_from(position)), "a")]


def begins_with(capture, checkpoint, expected):
    """Whether a place found by time has these rows after it; without commit times it may lie an hour earlier."""
    rows = ids_from(capture, checkpoint.position)
    return rows[-len(expected) :] == expected if capture.server.flavor == "mariadb" else rows == expected


def purge(capture):
    """Leave the newest file alone; MariaDB keeps a file for a moment, in case it must recover from a crash."""
    capture.execute("FLUSH BINARY LOGS")
    deadline = time.monotonic() + 120
    while len(capture.execute("SHOW BINARY LOGS")) > 1:
        assert time.monotonic() < deadline, capture.execute("SHOW FULL PROCESSLIST")
        capture.execute(f"PURGE BINARY LOGS TO '{capture.head().file}'")
        time.sleep(0.1)


def written(capture, ids, *, new_file=False):
    """Insert rows, a transaction each, and return the end of the binlog before each and after the last."""
    heads = []
    for number in ids:
        heads.append(capture.head())
        capture.execute(f"INSERT INTO a VALUES ({number}, REPEAT('x', 90))")
        if new_file:
            capture.execute("FLUSH BINARY LOGS")
    return [*heads, capture.head()]


def test_a_time_is_found_over_several_files(capture):
    """All transactions of that time or later lie after the place; with commit times those a second before lie before it."""
    written(capture, range(1, 4), new_file=True)
    time.sleep(2.1)
    between = capture.facts().clock
    time.sleep(1.1)
    written(capture, range(4, 7), new_file=True)
    checkpoint = seeker(capture).by_time(between)
    assert begins_with(capture, checkpoint, [4, 5, 6])
    assert checkpoint.time is not None
    assert checkpoint.time < between
    assert checkpoint.file_time is not None


def test_a_time_after_the_last_event_is_the_end(capture):
    """There is nothing at that time or later."""
    written(capture, [1])
    found = seeker(capture)
    assert found.by_time(found.facts.clock + timedelta(hours=2)).position == found.end


def test_a_time_before_the_first_file_is_refused_and_the_oldest_position_named(capture):
    """Never taken for the beginning."""
    found = seeker(capture)
    with pytest.raises(PositionNotFound, match="the oldest binlog file was made at") as refused:
        found.by_time(found.header_of(found.files[0]).time)
    assert refused.value.context["oldest"] == found.files[0]


@pytest.mark.parametrize("any_server", ["mariadb"], indirect=True)
def test_a_time_is_found_where_the_oldest_file_has_no_transaction(capture):
    """That MariaDB writes no commit times is known without one: what was purged is earlier than the oldest file."""
    purge(capture)
    capture.execute("FLUSH BINARY LOGS")
    time.sleep(1.1)
    between = capture.facts().clock
    time.sleep(1.1)
    written(capture, [1])
    found = seeker(capture)
    assert found.header_of(found.files[0]).first is None
    assert begins_with(capture, found.by_time(between), [1])


def test_a_time_on_the_exact_second_of_a_commit_lies_before_it(capture):
    """Strictly before: a transaction of that very moment is after the checkpoint."""
    written(capture, [1])
    time.sleep(1.2)
    (start, _) = written(capture, [2])
    manifest = capture.drain(capture.window_from(start))
    assert manifest.last_time is not None
    checkpoint = seeker(capture).by_time(manifest.last_time)
    assert begins_with(capture, checkpoint, [2])


def test_a_position_inside_a_transaction_is_moved_to_its_beginning(capture):
    """Wherever in it; its ends stay."""
    start = capture.head()
    with capture.server.connect(database=capture.database) as session, session.cursor() as cursor:
        cursor.execute("BEGIN")
        for number in range(5):
            cursor.execute(f"INSERT INTO a VALUES ({number}, 'x')")
        cursor.execute("COMMIT")
    stop = capture.head()
    found = seeker(capture)
    rows = capture.execute(f"SHOW BINLOG EVENTS IN '{start.file}' FROM {start.offset}")
    inside = [row[1] for row in rows if start.offset < row[1] < stop.offset]
    assert len(inside) > 5
    for offset in inside:
        assert found.at(Position(start.file, offset)).position == start
    assert found.at(start).position == start
    assert found.at(stop).position == stop
    assert found.at(stop).gtid_set != found.at(start).gtid_set


def test_a_position_between_events_of_no_server_is_refused(capture):
    """It is no event, lies after the end, or in a file that is gone or not there yet."""
    head = capture.head()
    found = seeker(capture)
    for wrong in (Position(head.file, head.offset - 3), Position(head.file, head.offset + 100)):
        with pytest.raises(PositionNotFound):
            found.at(wrong)
    with pytest.raises(PositionNotFound):
        found.at(Position("binlog.900000", 4))
    purge(capture)
    with pytest.raises(PositionPurged):
        seeker(capture).at(Position(head.file, 4))


def test_the_gtids_of_a_position_are_exactly_those_before_it(capture):
    """Found by position, and found again by them, in every file."""
    heads = written(capture, range(6), new_file=True)
    found = seeker(capture)
    for number, head in enumerate(heads):
        checkpoint = found.at(head)
        assert checkpoint.gtids_known
        again = found.by_gtid(GtidSet.parse(capture.server.flavor, checkpoint.gtid_set))
        assert ids_from(capture, again.position) == list(range(number, 6))
        assert again.gtid_set == checkpoint.gtid_set
    (whole,) = {found.at(found.end).gtid_set}
    executed = GtidSet.parse(capture.server.flavor, found.facts.gtid_set)
    assert GtidSet.parse(capture.server.flavor, whole) == executed


@pytest.mark.parametrize("any_server", ["mariadb"], indirect=True)
def test_gtids_are_found_after_another_server_took_over(capture):
    """Transactions of the former server that come after the set are not passed over where the next server began a new file."""

    def write(server_id: int, *ids: int) -> None:
        statements = [f"INSERT INTO a VALUES ({number}, 'of {server_id}')" for number in ids]
        with capture.server.connect(database=capture.database) as connection, connection.cursor() as cursor:
            for statement in (f"SET server_id = {server_id}", "SET gtid_domain_id = 77", *statements):
                cursor.execute(statement)

    write(9001, 1)
    write(9002, 2, 3)
    read = capture.head()
    write(9002, 4, 5)
    capture.execute("FLUSH BINARY LOGS")
    write(9001, 6)
    found = seeker(capture)
    checkpoint = found.at(read)
    again = found.by_gtid(GtidSet.parse("mariadb", checkpoint.gtid_set))
    assert ids_from(capture, again.position) == [4, 5, 6]
    assert again.gtid_set == checkpoint.gtid_set


@pytest.mark.parametrize("any_server", ["mysql"], indirect=True)
def test_a_transaction_of_the_server_alone_is_found_in_an_earlier_file(capture):
    """A standby has such transactions when somebody wrote to it. They were not read, wherever they are."""
    errant = f"{uuid.uuid4()}:1"
    written(capture, [1])
    with capture.server.connect(database=capture.database) as connection, connection.cursor() as cursor:
        for statement in (f"SET gtid_next = '{errant}'", "INSERT INTO a VALUES (2, '')", "SET gtid_next = 'AUTOMATIC'"):
            cursor.execute(statement)
    capture.execute("FLUSH BINARY LOGS")
    written(capture, [3], new_file=True)
    written(capture, [4])
    found = seeker(capture)
    executed = GtidSet.parse("mysql", found.facts.gtid_set)
    assert ids_from(capture, found.by_gtid(executed.minus(GtidSet.parse("mysql", errant))).position) == [2, 3, 4]
    assert found.by_gtid(executed).position == capture.head()


def test_gtids_that_the_server_lacks_or_purged_are_refused(capture):
    """By name."""
    written(capture, [1])
    found = seeker(capture)
    if capture.server.flavor == "mysql":
        more = GtidSet.parse("mysql", "3e11fa47-71ca-11e1-9e33-c80aa9429562:7")
    else:
        more = GtidSet.parse("mariadb", "0-1-4000000000")
    with pytest.raises(ServerChanged, match="does not have"):
        found.by_gtid(more)
    early = GtidSet.parse(capture.server.flavor, found.at(capture.head()).gtid_set)
    written(capture, [2])
    purge(capture)
    with pytest.raises(PositionPurged, match="no longer in any binlog file"):
        seeker(capture).by_gtid(early)


@pytest.mark.needs("tagged GTIDs")
def test_tagged_gtids_are_read_from_file_headers_too(mysql_server, mysql_database, tmp_path):
    """PREVIOUS_GTIDS is written another way when a source has a tag."""
    capture = Capture(mysql_server, mysql_database, tmp_path, start="latest")
    capture.execute("CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(100))")
    with mysql_server.connect(database=mysql_database) as session, session.cursor() as cursor:
        cursor.execute("SET SESSION gtid_next = 'AUTOMATIC:blue'")
        cursor.execute("INSERT INTO a VALUES (1, 'x')")
    capture.execute("FLUSH BINARY LOGS")
    capture.execute("INSERT INTO a VALUES (2, 'x')")
    found = seeker(capture)
    checkpoint = found.at(found.end)
    assert ":blue:1" in checkpoint.gtid_set
    assert GtidSet.parse("mysql", checkpoint.gtid_set) == GtidSet.parse("mysql", found.facts.gtid_set)


def test_xa_ddl_and_tables_without_transactions_have_boundaries(capture):
    """Each group is one step; nothing lands within."""
    heads = [capture.head()]
    for statement in ("CREATE TABLE m (id INT PRIMARY KEY) ENGINE=MyISAM", "INSERT INTO m VALUES (1), (2)",
                      "ALTER TABLE a ADD COLUMN w INT", "TRUNCATE TABLE m"):  # fmt: skip
        capture.execute(statement)
        heads.append(capture.head())
    with capture.server.connect(database=capture.database) as session, session.cursor() as cursor:
        for statement in ("XA START 'x'", "INSERT INTO a (id) VALUES (77)", "XA END 'x'", "XA PREPARE 'x'"):
            cursor.execute(statement)
        heads.append(capture.head())
        cursor.execute("XA COMMIT 'x'")
        heads.append(capture.head())
    found = seeker(capture)
    rows = capture.execute(f"SHOW BINLOG EVENTS IN '{heads[0].file}' FROM {heads[0].offset}")
    for row in rows:
        at = Position(heads[0].file, row[1])
        expected = max(head for head in heads if head <= at)
        assert found.at(at).position == expected, row
    assert found.at(Position(heads[0].file, FIRST_EVENT_OFFSET)).position == Position(heads[0].file, 4)


def test_two_searches_from_one_position_do_not_end_each_other(capture):
    """A plan that was abandoned still runs beside its retry: both read the same file to its end."""
    capture.execute("CREATE TABLE large (v LONGBLOB)")
    for _ in range(12):
        capture.execute("INSERT INTO large VALUES (REPEAT('x', 4 * 1024 * 1024))")
    facts, head = capture.facts(), capture.head()
    start = Position(head.file, FIRST_EVENT_OFFSET)
    view, read = memoryview(bytearray(1 << 16)), [0, 0]
    arguments = capture.config.server, capture.credentials, facts.identity, start
    with binlog_dump(*arguments) as first:
        read[0] += first.read_into(view)
        with binlog_dump(*arguments) as second:
            for number, stream in enumerate((second, first)):
                while got := stream.read_into(view):
                    read[1 - number] += got
    assert min(read) > head.offset > 40 << 20
