"""Tables of a real server in every mode, beside the source's own state at many moments."""

from __future__ import annotations

import itertools
import random
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from cdc_lib.config.maintenance import MaintenanceConfig
from cdc_lib.lake.as_of import after_gtid, at_time, before_point
from cdc_lib.model.lake_table import LakeName
from cdc_lib.model.position import Point
from spark_jobs.maintain import maintain
from tests.harness.lake.verify import Compared

TABLES = {"s": "soft_delete", "h": "scd2", "l": "append"}
STEPS = 18


@dataclass(frozen=True)
class Moment:
    """What the source had, and where and when that was; the time is there where nothing else happened in its second."""

    rows: dict[int, tuple[str, int]]
    point: Point
    gtid: str
    time: datetime | None
    changed: bool


@pytest.fixture
def source(any_server, database, tmp_path, lake):
    modes = [{"tables": f"{database}.{name}", "mode": mode} for name, mode in TABLES.items()]
    source = Compared(any_server, database, tmp_path, lake, modes=modes)
    for name in TABLES:
        source.execute(f"CREATE TABLE {name} (id INT PRIMARY KEY, v VARCHAR(20), n INT)")
        source.execute(f"INSERT INTO {name} VALUES (1, 'begun', 0), (2, 'begun', 0)")
    source.round()
    return source


def transaction(source, draw, number):
    """Change each of the tables in the same way, several rows and one of them often; returns whether anything was."""
    statements = []
    for row in range(draw.randint(1, 3)):
        key, other = draw.randint(1, 6), draw.randint(1, 6)
        value = f"'{number}.{row}', {number}"
        statements += draw.choice(
            [
                [f"REPLACE INTO {{t}} VALUES ({key}, {value})"],
                [f"UPDATE {{t}} SET v = CONCAT(id, '+{number}.{row}')"],
                [f"DELETE FROM {{t}} WHERE id = {key}"],
                [f"UPDATE IGNORE {{t}} SET id = {other} WHERE id = {key}"],
                [f"DELETE FROM {{t}} WHERE id = {key}", f"INSERT INTO {{t}} VALUES ({key}, {value})"],
            ]
        )
    with source.server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"USE {source.database}")
        cursor.execute("BEGIN")
        changed = sum(cursor.execute(text.format(t=name)) for name in TABLES for text in statements)
        cursor.execute("COMMIT")
    return changed > 0


def moment(source, *, alone, changed):
    """Look at the source; alone in its second if asked, so that a time names it."""
    if alone:
        time.sleep(1.1)
    [(now,)] = source.execute("SELECT UTC_TIMESTAMP(6)")
    if alone:
        time.sleep(1.1)
    rows = {key: (v, n) for key, v, n in source.execute("SELECT id, v, n FROM h")}
    gtid = last_gtid(source)
    at = now.replace(tzinfo=UTC) if alone else None
    return Moment(rows, Point.at(1, source.capture.head()), gtid, at, changed)


def last_gtid(source):
    """Return the GTID of the last transaction; other tests may have left some of other servers, domains and tags."""
    if source.server.flavor == "mariadb":
        [(domain, gtids)] = source.execute("SELECT @@GLOBAL.gtid_domain_id, @@GLOBAL.gtid_binlog_pos")
        (last,) = [one for one in gtids.split(",") if one.startswith(f"{domain}-")]
        return last
    [(server, gtids)] = source.execute("SELECT @@server_uuid, @@GLOBAL.gtid_executed")
    (mine,) = [one for one in gtids.replace("\n", "").split(",") if one.startswith(server)]
    untagged = itertools.takewhile(lambda text: text[0].isdigit(), mine.split(":")[1:])
    return f"{server}:{[*untagged][-1].rpartition('-')[2]}"


def found(source, *wheres, name="h"):
    """Return the rows for each condition, by key; all in one query, which costs as much as one of them."""
    table = f"lake.{source.database}.{name}"
    asked = (f"SELECT {i} AS asked, id, v, n FROM {table} WHERE {where}" for i, where in enumerate(wheres))
    states = [{} for _ in wheres]
    for number, key, v, n in source.lake.spark.sql(" UNION ALL ".join(asked)).coalesce(1).collect():
        assert key not in states[number], "a row twice"
        states[number][key] = (v, n)
    return states


def test_every_mode_shows_the_source_as_documented(source):
    """History at each moment by place, by GTID and by time; soft_delete now, and what is gone; append by its last changes."""
    draw, moments, ever = random.Random(8), [], {1, 2}
    for number in range(STEPS):
        if number == STEPS // 2:
            source.execute("TRUNCATE TABLE h")
            source.execute("TRUNCATE TABLE s")
            source.execute("DELETE FROM l")
            changed = False
        else:
            changed = transaction(source, draw, number)
        moments.append(moment(source, alone=number % 6 == 3, changed=changed))
        ever |= moments[-1].rows.keys()
        if number == 7:
            source.round()
    source.round()
    now = moments[-1].rows

    assert found(source, *(before_point(one.point) for one in moments)) == [one.rows for one in moments]
    timed = [one for one in moments if one.time is not None]
    assert found(source, "_is_current", *(at_time(one.time) for one in timed)) == [now, *(one.rows for one in timed)]
    changed = [one for one in moments if one.changed][::3]
    asked = (after_gtid(one.gtid, f"lake.{source.database}.h") for one in changed)
    assert found(source, *asked) == [one.rows for one in changed]

    assert found(source, "NOT _is_deleted", name="s") == [now]
    gone = source.lake.spark.sql(f"SELECT id FROM lake.{source.database}.s WHERE _is_deleted").collect()
    assert now.keys().isdisjoint(row[0] for row in gone)
    assert now.keys() | {row[0] for row in gone} == ever
    last = f"SELECT *, row_number() OVER (PARTITION BY id ORDER BY _epoch DESC, _binlog DESC, _offset DESC, _row DESC) AS r FROM lake.{source.database}.l"
    rows = source.lake.spark.sql(f"SELECT id, v, n FROM ({last}) WHERE r = 1 AND _op <> 'd'").collect()
    assert {row[0]: (row[1], row[2]) for row in rows} == now

    report = {one.table.partition(".")[2]: one for one in source.report().tables}
    assert [(report[name].source_rows, report[name].rows, report[name].skipped) for name in "shl"] == [
        (len(now), (), "")
    ] * 3

    source.unlogged("INSERT INTO h VALUES (90, 'unlogged', 1)", "INSERT INTO s VALUES (90, 'unlogged', 1)")
    assert [source.table(name, repair=True).repaired for name in "sh"] == [1, 1]
    config = source.capture.config.model_copy(
        update={"maintenance": MaintenanceConfig(keep_snapshots_for=timedelta(0))}
    )
    maintain(
        source.lake.spark, config, source.capture.store, [LakeName("lake", (source.database,), "h")], source.said.append
    )
    last = moments[::6]
    assert found(source, "_is_current", *(before_point(one.point) for one in last)) == [
        {**now, 90: ("unlogged", 1)},
        *(one.rows for one in last),
    ]
