"""Five seeded workloads, each in its own binlog file.

The server makes the rows (``INSERT ... SELECT`` over a table of numbers, stored procedures), so that nothing waits for
Python. All values derive from the seed and the row's number.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from cdc_lib.model.position import FIRST_EVENT_OFFSET, Position
from tests.harness.servers import SqlServer

DATABASE = "bench"
SEED = 20_261_121
_WRITERS = 4
_NUMBERS = 10_000
_WARM_ROWS = 1_000


@dataclass(frozen=True, slots=True)
class Workload:
    """One kind of traffic.

    Args:
        name: short name, for tables.
        title: description for users.
        rows: row changes at scale 1.
        slice_rows: row changes that mysql-replication reads, which is slow with more.
        wall_goal: least wall speed, as a part of the raw copy's.
        tables: CREATE TABLE statements.
        load: writes the initial rows, given the number of row changes. It is not measured.
        run: writes exactly the given number of row changes.
    """

    name: str
    title: str
    rows: int
    slice_rows: int
    wall_goal: float
    tables: tuple[str, ...]
    load: Callable[[SqlServer, int], None]
    run: Callable[[SqlServer, int], None]


@dataclass(frozen=True, slots=True)
class Written:
    """The binlog range of a workload, and a small range of the same kind to warm up with.

    Args:
        workload: which one.
        rows: row changes in it.
        start: where it starts.
        stop: where it ends.
        warm: start and end of the small range.
        warm_rows: row changes in the small range.
    """

    workload: Workload
    rows: int
    start: Position
    stop: Position
    warm: tuple[Position, Position]
    warm_rows: int

    @property
    def bytes(self) -> int:
        """Bytes of binlog."""
        return self.stop.offset - self.start.offset


def prepare(server: SqlServer) -> None:
    """Make the database and its table of numbers from 1 to 10,000."""
    server.execute(f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4")
    server.execute("CREATE TABLE numbers (n INT PRIMARY KEY)", database=DATABASE)
    values = ",".join(f"({n})" for n in range(1, _NUMBERS + 1))
    server.execute(f"INSERT INTO numbers VALUES {values}", database=DATABASE)


def write(server: SqlServer, workload: Workload, scale: float) -> Written:
    """Write one workload, the small range first."""
    rows = max(_WRITERS, round(workload.rows * scale))
    warm_rows = min(rows // 2, _WARM_ROWS)
    for statement in workload.tables:
        server.execute(statement, database=DATABASE)
    workload.load(server, warm_rows + rows)
    warm = binlog_range(server, lambda: workload.run(server, warm_rows))
    start, stop = binlog_range(server, lambda: workload.run(server, rows))
    return Written(workload, rows, start, stop, warm, warm_rows)


def binlog_range(
    server: SqlServer, work: Callable[[], None], *, one_transaction: bool = False
) -> tuple[Position, Position]:
    """Call ``work`` in a new binlog file; return the start and end of its events.

    One transaction stays in one file, however large it is; the file may end after it.
    """
    server.execute("FLUSH BINARY LOGS")
    file = _last_file(server)[0]
    work()
    last, size = _last_file(server)
    if one_transaction and last != file:
        return Position(file, FIRST_EVENT_OFFSET), Position(last, FIRST_EVENT_OFFSET)
    if last != file:
        msg = f"the workload went over the end of {file}: raise max_binlog_size"
        raise RuntimeError(msg)
    return Position(file, FIRST_EVENT_OFFSET), Position(file, size)


def _last_file(server: SqlServer) -> tuple[str, int]:
    name, size, *_ = server.execute("SHOW BINARY LOGS")[-1]
    return str(name), int(size)


# --- W1: bulk inserts

_MIXED = """
CREATE TABLE {table} (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, customer INT NOT NULL, quantity SMALLINT UNSIGNED, paid TINYINT(1),
  price DECIMAL(12,2), weight DOUBLE, sku VARCHAR(32), note VARCHAR(120), placed DATETIME(6), day DATE,
  state ENUM('new','paid','sent','done'), digest BINARY(16)
)"""
_MIXED_ROWS = f"""
INSERT INTO {{table}} (customer, quantity, paid, price, weight, sku, note, placed, day, state, digest)
SELECT h MOD 1000003, h MOD 500, h MOD 2, (h MOD 10000000) / 100, IF(h MOD 10 = 0, NULL, h / 7), CONCAT('sku-', h MOD 100000),
       IF(h MOD 5 = 0, NULL, CONCAT('note ', n, ' für ', h)), '2026-01-01' + INTERVAL h MICROSECOND + INTERVAL n MINUTE,
       '2020-01-01' + INTERVAL (h MOD 2400) DAY, 1 + h MOD 4, UNHEX(LEFT(SHA2(h, 256), 32))
FROM (SELECT n, CRC32(CONCAT({SEED}, '-', n + {{first}})) AS h FROM numbers WHERE n <= {{count}} ORDER BY n LIMIT {_NUMBERS})
AS made
"""


def _insert_mixed(server: SqlServer, rows: int, table: str = "mixed") -> None:
    for first in range(0, rows, _NUMBERS):
        statement = _MIXED_ROWS.format(table=table, first=first, count=min(_NUMBERS, rows - first))
        server.execute(statement, database=DATABASE)


# --- W2: single-row transactions on sysbench's table

_SBTEST = """
CREATE TABLE sbtest (
  id INT NOT NULL PRIMARY KEY, k INT NOT NULL, c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL, KEY k_1 (k)
)"""
_RANGE = 100_000_000
"""Keys of one writer, so that writers never wait for each other's rows."""
_TRAFFIC = f"""
CREATE PROCEDURE traffic(writer INT, transactions INT)
BEGIN
  DECLARE i INT DEFAULT 0;
  DECLARE h, low, high BIGINT;
  SELECT MIN(id), MAX(id) INTO low, high FROM sbtest
  WHERE id >= writer * {_RANGE} AND id < (writer + 1) * {_RANGE};
  WHILE i < transactions DO
    SET h = CRC32(CONCAT({SEED}, '-', high, '-', i));
    IF h MOD 10 < 6 THEN
      UPDATE sbtest SET k = k + 1, c = RPAD(h, 120, SHA2(h, 256)) WHERE id = low + h MOD (high - low + 1);
    ELSEIF h MOD 10 < 8 OR low = high THEN
      SET high = high + 1;
      INSERT INTO sbtest VALUES (high, h MOD 1000000, RPAD(h, 120, SHA2(h, 256)), RPAD(i, 60, SHA2(h, 256)));
    ELSE
      DELETE FROM sbtest WHERE id = low;
      SET low = low + 1;
    END IF;
    SET i = i + 1;
  END WHILE;
END"""


def _fill_sbtest(server: SqlServer, _: int) -> None:
    for writer in range(_WRITERS):
        rows = f"SELECT {writer * _RANGE} + n, n, RPAD(n, 120, SHA2(n, 256)), RPAD(n, 60, SHA2(n, 256)) FROM numbers"
        server.execute(f"INSERT INTO sbtest {rows}", database=DATABASE)


def _run_traffic(server: SqlServer, rows: int) -> None:
    counts = [rows // _WRITERS + (writer < rows % _WRITERS) for writer in range(_WRITERS)]
    with ThreadPoolExecutor(_WRITERS) as writers:
        calls = [
            writers.submit(server.execute, "CALL traffic(%s, %s)", [writer, count], DATABASE)
            for writer, count in enumerate(counts)
        ]
        for call in calls:
            call.result()


# --- W3: updates of many columns

_KINDS = ("INT", "BIGINT", "VARCHAR(40)", "DECIMAL(10,2)", "DATETIME", "DOUBLE")
_WIDE_COLUMNS = [(f"c{n:02d}", _KINDS[n % len(_KINDS)]) for n in range(1, 60)]
_WIDE = (
    f"CREATE TABLE wide (id INT NOT NULL PRIMARY KEY, {', '.join(f'{name} {kind}' for name, kind in _WIDE_COLUMNS)})"
)
_WIDE_ROWS = 10_000
_VALUES = {
    "INT": "{h}",
    "BIGINT": "{h} * 65537",
    "VARCHAR(40)": "CONCAT('text ', {h})",
    "DECIMAL(10,2)": "{h} / 100",
    "DATETIME": "'2026-01-01' + INTERVAL {h} SECOND",
    "DOUBLE": "{h} / 3",
}


def _wide_values(hashed: str) -> list[str]:
    return [_VALUES[kind].format(h=f"(({hashed} + {n}) MOD 10000019)") for n, (_, kind) in enumerate(_WIDE_COLUMNS)]


def _fill_wide(server: SqlServer, _: int) -> None:
    values = ", ".join(_wide_values(f"CRC32(CONCAT({SEED}, n))"))
    server.execute(f"INSERT INTO wide SELECT n, {values} FROM numbers WHERE n <= {_WIDE_ROWS}", database=DATABASE)


def _update_wide(server: SqlServer, rows: int) -> None:
    """Update a thousand rows per transaction, repeatedly; every column changes each time.

    The number of rows is part of the seed: the measured updates would change nothing if they were equal to the warm-up's.
    """
    names = [name for name, _ in _WIDE_COLUMNS]
    step = 1_000
    for first in range(0, rows, step):
        count = min(step, rows - first)
        low = first % _WIDE_ROWS
        values = _wide_values(f"CRC32(CONCAT({SEED}, '-', id, '-', {rows + first}))")
        changes = ", ".join(f"{name} = {value}" for name, value in zip(names, values, strict=True))
        server.execute(f"UPDATE wide SET {changes} WHERE id > {low} AND id <= {low + count}", database=DATABASE)


# --- W4: W2 over many tables

_TABLES = 200
_MANY_ROWS = 500
"""Initial rows of each table; more than the deletes of a run."""
_MANY_TRAFFIC = f"""
CREATE PROCEDURE traffic_over_tables(writer INT, first INT, transactions INT)
BEGIN
  DECLARE i INT DEFAULT first;
  DECLARE h BIGINT;
  WHILE i < first + transactions DO
    SET h = CRC32(CONCAT({SEED}, '-', writer, '-', i));
    SET @name = CONCAT('sb_', writer * {_TABLES // _WRITERS} + i MOD {_TABLES // _WRITERS});
    SET @id = i + {_RANGE}, @k = h MOD 1000000, @c = RPAD(h, 120, SHA2(h, 256)), @pad = RPAD(i, 60, SHA2(h, 256));
    IF h MOD 10 < 6 THEN
      SET @s = CONCAT('UPDATE ', @name, ' SET k = k + 1, c = ? ORDER BY id LIMIT 1');
      PREPARE s FROM @s; EXECUTE s USING @c;
    ELSEIF h MOD 10 < 8 THEN
      SET @s = CONCAT('INSERT INTO ', @name, ' VALUES (?, ?, ?, ?)');
      PREPARE s FROM @s; EXECUTE s USING @id, @k, @c, @pad;
    ELSE
      SET @s = CONCAT('DELETE FROM ', @name, ' ORDER BY id LIMIT 1');
      PREPARE s FROM @s; EXECUTE s;
    END IF;
    SET i = i + 1;
  END WHILE;
END"""


def _many_tables() -> tuple[str, ...]:
    columns = _SBTEST.partition("(")[2]
    return (*(f"CREATE TABLE sb_{number} ({columns}" for number in range(_TABLES)), _MANY_TRAFFIC)


def _fill_many(server: SqlServer, _: int) -> None:
    rows = f"SELECT n, n, RPAD(n, 120, SHA2(n, 256)), RPAD(n, 60, SHA2(n, 256)) FROM numbers WHERE n <= {_MANY_ROWS}"
    for number in range(_TABLES):
        server.execute(f"INSERT INTO sb_{number} {rows}", database=DATABASE)


def _run_many(server: SqlServer, rows: int) -> None:
    """Each writer has its own tables. The first number derives from the count, so that warm-up and measured rows differ."""
    counts = [rows // _WRITERS + (writer < rows % _WRITERS) for writer in range(_WRITERS)]
    with ThreadPoolExecutor(_WRITERS) as writers:
        calls = [
            writers.submit(
                server.execute, "CALL traffic_over_tables(%s, %s, %s)", [writer, 10 * count, count], DATABASE
            )
            for writer, count in enumerate(counts)
        ]
        for call in calls:
            call.result()


# --- W5: W1 in compressed transactions

_COMPRESSION = {"mysql": "binlog_transaction_compression", "mariadb": "log_bin_compress"}


def _insert_packed(server: SqlServer, rows: int) -> None:
    variable = _COMPRESSION[server.flavor]
    server.execute(f"SET GLOBAL {variable} = ON")
    try:
        _insert_mixed(server, rows, "packed")
    finally:
        server.execute(f"SET GLOBAL {variable} = OFF")


def _nothing(_server: SqlServer, _rows: int) -> None:
    """Bulk inserts start with an empty table."""


WORKLOADS = (
    Workload(
        "W1",
        "bulk inserts, 12 columns",
        1_000_000,
        100_000,
        0.35,
        (_MIXED.format(table="mixed"),),
        _nothing,
        _insert_mixed,
    ),
    Workload("W2", "single-row transactions", 300_000, 30_000, 0.8, (_SBTEST, _TRAFFIC), _fill_sbtest, _run_traffic),
    Workload("W3", "updates, 60 columns", 200_000, 15_000, 0.35, (_WIDE,), _fill_wide, _update_wide),
    Workload("W4", "W2 over 200 tables", 300_000, 30_000, 0.8, _many_tables(), _fill_many, _run_many),
    Workload(
        "W5", "W1, compressed", 1_000_000, 100_000, 0.35, (_MIXED.format(table="packed"),), _nothing, _insert_packed
    ),
)
