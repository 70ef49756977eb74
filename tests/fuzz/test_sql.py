"""The parts of ``./dev fuzz sql``, and a short run of it."""

from __future__ import annotations

import re
from datetime import date, timedelta
from random import Random

import pyarrow as pa
import pymysql
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from tests.fuzz.sql.compare import calendar_day, differences
from tests.fuzz.sql.generate import Maker
from tests.fuzz.sql.program import MAIN, SIDE, Part, Program, Statement, parse
from tests.fuzz.sql.run import recorded, run_program
from tests.fuzz.sql.shrink import Shrinker, without_empty_swaps
from tests.fuzz.sql.verdict import Failure
from tests.fuzz.sql.world import World

FLAVORS = ("mysql", "mariadb")
_DOTTED = re.compile(r"\s*(ALTER|TRUNCATE|DROP|RENAME)\s+((ONLINE|IGNORE|TABLES?|IF|EXISTS)\s+)*\.", re.IGNORECASE)


def made(seed, flavor, taken=lambda _: True):
    """Return the program of a seed, on a server that takes what ``taken`` says."""
    feed, parts = Maker(Random(seed), flavor).feed(), []
    step = next(feed)
    try:
        while True:
            answer = True
            if isinstance(step, Part):
                parts.append(step)
            elif answer := taken(step):
                parts[-1] = Part(parts[-1].title, (*parts[-1].statements, step))
            step = feed.send(answer)
    except StopIteration:
        return Program(flavor, tuple(parts))


@pytest.mark.parametrize("flavor", FLAVORS)
def test_a_case_file_gives_the_same_program(flavor):
    for seed in range(200):
        program = made(seed, flavor)
        assert parse(program.text()) == program


@pytest.mark.parametrize("flavor", FLAVORS)
def test_a_seed_gives_the_same_program_again(flavor):
    assert made(7, flavor) == made(7, flavor)
    assert made(7, flavor) != made(8, flavor)


def test_a_server_takes_nearly_all_statements(any_server, database):
    """Else programs would do nothing."""
    sessions, refused, count = {}, [], 0

    def taken(statement):
        nonlocal count
        count += 1
        session = sessions.setdefault(statement.session, any_server.connect(database=database))
        try:
            with session.cursor() as cursor:
                cursor.execute(statement.sql.replace(MAIN, database).replace(SIDE, f"{database}s"))
        except pymysql.MySQLError as error:
            refused.append((statement.sql, error))
            return False
        return True

    any_server.execute("SET GLOBAL lock_wait_timeout = 2, innodb_lock_wait_timeout = 2")
    try:
        for seed in range(12):
            made(seed, any_server.flavor, taken)
            for session in sessions.values():
                session.close()
            sessions.clear()
            any_server.execute(f"DROP DATABASE {database}")
            any_server.execute(f"DROP DATABASE IF EXISTS {database}s")
            any_server.execute(f"CREATE DATABASE {database} CHARACTER SET utf8mb4")
    finally:
        any_server.execute("SET GLOBAL lock_wait_timeout = DEFAULT, innodb_lock_wait_timeout = DEFAULT")
    assert len(refused) < count / 4, refused


def test_a_table_that_a_session_still_locks_ends_its_program_alone(any_server, spark_lake, tmp_path):
    """Neither the comparison nor the removal of the databases may end the programs beside it."""
    world = World(tmp_path)
    world.spark, world.lake = spark_lake[0], spark_lake[1].lake
    world._servers[any_server.flavor, "FULL"] = any_server
    snapshot = Part(
        "snapshot", (Statement("CREATE TABLE t (id INT PRIMARY KEY)"), Statement("INSERT INTO t VALUES (1)"))
    )
    changes = Part("changes 1", (Statement("INSERT INTO t VALUES (2)"), Statement("LOCK TABLES t WRITE")))
    any_server.execute("SET GLOBAL lock_wait_timeout = 1, innodb_lock_wait_timeout = 1")
    try:
        outcome = run_program(world, any_server.flavor, recorded(Program(any_server.flavor, (snapshot, changes))))
    finally:
        any_server.execute("SET GLOBAL lock_wait_timeout = DEFAULT, innodb_lock_wait_timeout = DEFAULT")
    assert outcome.failure is None
    [(what, answer)] = outcome.refused
    assert what == "the comparison"
    assert "1205" in answer


def test_a_failing_program_is_made_as_small_as_it_can_be():
    """It fails while two of its sixty statements are there, in their order and in different parts."""
    parts = tuple(Part(str(i), tuple(Statement(f"{i} {n}") for n in range(20))) for i in range(3))

    def run(program):
        told = [(part, one.sql) for part, one in program.steps()]
        places = [part for part, sql in told if sql in ("0 7", "2 3")]
        return Failure("rows", "x", part=len(program.parts) - 1) if len(set(places)) == 2 else None

    program = Program("mysql", parts)
    shrinker = Shrinker(program, Failure("rows", "x", part=2), run, budget=200)
    assert [one.sql for _, one in shrinker.smallest().steps()] == ["0 7", "2 3"]


def test_days_are_those_of_the_calendar():
    first = date(1, 1, 1)
    for days in [*range(0, 800_000, 997), *range(719_000, 721_000)]:
        day = first + timedelta(days=days)
        assert calendar_day((day - date(1970, 1, 1)).days) == day.isoformat()
    assert calendar_day(-719_528) == "0000-01-01"


ROWS = {
    "id": pa.array([1, 2], pa.int32()),
    "d": pa.array([date(2024, 1, 1), None], pa.date32()),
    "v": ["é", None],
    "b": [b"\x00", b""],
}


@pytest.fixture
def compared(any_server, database, tmp_path):
    """Compare a source of two rows, one with an impossible date, with a lake of these columns."""
    catalog = SqlCatalog("lake", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}")
    catalog.create_namespace(database)
    with any_server.connect(database=database) as session, session.cursor() as cursor:
        cursor.execute("SET sql_mode = ''")
        cursor.execute("CREATE TABLE t (id INT PRIMARY KEY, d DATE, v VARCHAR(9) CHARACTER SET latin1, b VARBINARY(4))")
        cursor.execute("INSERT INTO t VALUES (1, '2024-01-01', 'é', x'00'), (2, '2024-00-10', NULL, '')")

    def compare(columns):
        lake = pa.table(columns)
        catalog.create_table((database, "t"), lake.schema).append(lake)
        with any_server.connect() as session:
            return [(one.kind, one.what) for one in differences(session, database, catalog, [], added_columns=True)]

    return compare


def test_equal_rows_have_no_difference(compared):
    assert compared(ROWS) == []


@pytest.mark.parametrize(
    ("column", "values", "seen"),
    [
        ("v", ["e", None], ("rows", "other values: varchar as string")),
        ("v", ["é", ""], ("rows", "other values: varchar as string")),
        ("b", [b"\x00", b"\x00"], ("rows", "other values: varbinary as binary")),
        ("d", [date(2024, 1, 1), date(2024, 1, 10)], ("rows", "other values: date as date32[day]")),
        ("id", pa.array([1, None], pa.int32()), ("null key", "int")),
    ],
)
def test_a_wrong_value_is_a_difference(compared, column, values, seen):
    assert compared({**ROWS, column: values})[0] == seen


def test_a_missing_row_and_a_double_are_differences(compared):
    ((kind, what),) = compared({name: values[:1] for name, values in ROWS.items()})
    assert (kind, what.partition(":")[0]) == ("rows", "other rows")


def test_a_missing_column_is_a_difference(compared):
    assert compared({name: values for name, values in ROWS.items() if name != "b"}) == [
        ("missing column", "b varbinary")
    ]


def test_a_list_of_changes_is_added_up(any_server, database, tmp_path):
    """Without a key the lake has inserts and deletes, and what empties the table."""
    catalog = SqlCatalog("lake", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}")
    catalog.create_namespace(database)
    any_server.execute("CREATE TABLE t (v INT)", database=database)
    any_server.execute("INSERT INTO t VALUES (1), (1)", database=database)
    changes = [("c", 9), ("t", None), ("c", 1), ("c", 2), ("c", 1), ("d", 2)]
    columns = {name: pa.array([1] * len(changes), pa.int32()) for name in ("_epoch", "_binlog", "_row")}
    columns["_offset"] = pa.array(range(len(changes)), pa.int64())
    lake = pa.table({"_op": [op for op, _ in changes], **columns, "v": pa.array([v for _, v in changes], pa.int32())})
    table = catalog.create_table((database, "t"), lake.schema)
    table.append(lake)
    with any_server.connect() as session:
        assert list(differences(session, database, catalog, [], added_columns=True)) == []
        table.append(lake.slice(5, 1).set_column(4, "_offset", pa.array([9], pa.int64())))
        assert [one.kind for one in differences(session, database, catalog, [], added_columns=True)] == ["rows"]


def test_what_the_lake_keeps_of_another_table_of_that_name_is_no_difference(any_server, database, tmp_path):
    """A column that was dropped and added with a narrower type, and a table whose name another one had, which the lake cannot have."""
    catalog = SqlCatalog("lake", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}")
    catalog.create_namespace(database)
    any_server.execute("CREATE TABLE a (id INT PRIMARY KEY, v TINYINT)", database=database)
    any_server.execute("INSERT INTO a VALUES (1, 2)", database=database)
    any_server.execute("CREATE TABLE b (id INT, _op INT)", database=database)
    for name, columns in {"a": {"v": pa.array([2.0])}, "b": {"_op": ["c"]}}.items():
        lake = pa.table({"id": pa.array([1], pa.int32()), **columns})
        catalog.create_table((database, name), lake.schema).append(lake)
    with any_server.connect() as session:
        assert list(differences(session, database, catalog, [], added_columns=True)) == []
        any_server.execute("UPDATE a SET v = 3", database=database)
        any_server.execute("INSERT INTO b VALUES (1, 1)", database=database)
        assert [one.kind for one in differences(session, database, catalog, [], added_columns=True)] == ["rows", "rows"]


def test_a_smaller_program_has_no_swap_without_its_copy():
    """An online schema change tool does not swap in a table without the rows: the lake would be right to keep them."""
    copy = "REPLACE INTO fz_main.`_t_gho` (`id`) SELECT `id` FROM fz_main.`t`"
    swap = "RENAME TABLE fz_main.`t` TO fz_main.`_t_del`, fz_main.`_t_gho` TO fz_main.`t`"
    steps = [(0, Statement("CREATE TABLE t (id INT)")), (1, Statement(copy)), (1, Statement(swap))]
    assert without_empty_swaps(steps) == steps
    assert without_empty_swaps([steps[0], steps[2]]) == steps[:1]


def test_names_that_were_faults_come_often():
    """A dot before the name of a statement that changes a table, and two names that only Spark takes for one."""
    dots, pairs = 0, 0
    for seed in range(100):
        maker = Maker(Random(seed), "mariadb")
        feed, dot, pair = maker.feed(), False, False
        step = next(feed)
        try:
            while True:
                dot |= isinstance(step, Statement) and _DOTTED.match(step.sql) is not None
                pair |= any(
                    {"\u03c3", "\u03c2"} <= {one.name for one in table.columns} for table in maker.tables.values()
                )
                step = feed.send(True)
        except StopIteration:
            dots, pairs = dots + dot, pairs + pair
    assert dots >= 20
    assert pairs >= 2
