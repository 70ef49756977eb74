"""Runs one program against the server and the product, part by part, and says what is wrong."""

from __future__ import annotations

import traceback
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

import pymysql

from cdc_lib import requests
from cdc_lib.errors import CdcError
from cdc_lib.merge.load import load_plan
from cdc_lib.model.cursor import DRAIN, LAKE
from cdc_lib.model.quarantine import QuarantineRecord
from cdc_lib.reselect.rows import Reselector
from cdc_lib.store.cuts import last_cut
from spark_jobs.merging.run import merge, needs_spark, run
from tests.fuzz.sql.compare import differences
from tests.fuzz.sql.program import MAIN, SIDE, Part, Program, Statement
from tests.fuzz.sql.verdict import Failure, are_taken_for_one, is_allowed, without_names
from tests.fuzz.sql.world import Home, World

Feed = Generator[Part | Statement, bool, None]
"""Yields a part, then its statements, and so on; it is sent whether the server took the statement."""

LOCK_WAIT_TIMEOUT = 1205
RUNS = 5
"""Runs of the product after a part: a new snapshot may take a second or third one."""
_RETRIES = 2


@dataclass
class Outcome:
    """What a program did.

    Attributes:
        program: its statements that the server took.
        failure: None if all is well.
        refused: statements that the server refused, with its answer.
    """

    program: Program
    failure: Failure | None = None
    refused: list[tuple[str, str]] = field(default_factory=list)


def recorded(program: Program) -> Feed:
    """Return the statements of a program."""
    for part in program.parts:
        yield Part(part.title)
        for statement in part.statements:  # noqa: UP028 - what is sent does not go into a tuple
            yield statement


def run_program(world: World, flavor: str, feed: Feed, metadata: str = "FULL", lake: str = "") -> Outcome:
    """Run a program, part by part, until the first failure."""
    outcome = Outcome(Program(flavor, (), metadata, lake))
    parts: list[tuple[str, list[Statement]]] = []
    with world.home(flavor, metadata, lake) as home, _Sessions(home) as sessions:
        try:
            outcome.failure = _failure_of(feed, Running(home), sessions, parts, outcome.refused)
        except pymysql.OperationalError as error:
            if error.args[0] != LOCK_WAIT_TIMEOUT:
                raise
            outcome.refused.append(("the comparison", str(error)))  # a session of the program locks a table
    made = tuple(Part(title, tuple(statements)) for title, statements in parts)
    outcome.program = Program(flavor, made, metadata, lake)
    return outcome


def _failure_of(
    feed: Feed,
    running: Running,
    sessions: _Sessions,
    parts: list[tuple[str, list[Statement]]],
    refused: list[tuple[str, str]],
) -> Failure | None:
    """Run a feed until the first failure; ``parts`` and ``refused`` receive what the server took, and what it did not."""
    try:
        step = next(feed)
        while True:
            refusal = None
            if isinstance(step, Part):
                if parts and (failure := running.part(len(parts) - 1, parts[-1][1])):
                    return failure
                parts.append((step.title, []))
            elif (refusal := sessions.execute(step)) is None:
                parts[-1][1].append(step)
            else:
                refused.append((step.sql, refusal))
            step = feed.send(refusal is None)
    except StopIteration:
        return running.part(len(parts) - 1, parts[-1][1]) or running.way_out(len(parts) - 1)


class _Sessions:
    """Sessions of the source, by their letters."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._open: dict[str, Any] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for session in self._open.values():
            session.close()

    def execute(self, statement: Statement) -> str | None:
        """Run a statement; returns the server's refusal, None if it took it."""
        main, side = self._home.names
        sql = statement.sql.replace(MAIN, main).replace(SIDE, side)
        try:
            session = self._open.get(statement.session)
            if session is None or not session.open:
                session = self._open[statement.session] = self._home.server.connect(database=main)
            with session.cursor() as cursor:
                cursor.execute(sql)
                cursor.fetchall()
        except (pymysql.MySQLError, UnicodeError, ValueError) as error:
            return str(error)
        return None


class Running:
    """The product's side of a program.

    Args:
        home: the program's.
        refused: receives why tables were quarantined, each reason once, and the run continues without them; None if that is a
            failure.
    """

    def __init__(self, home: Home, refused: set[str] | None = None) -> None:
        self._home = home
        self._refused = refused
        self._partial = False
        self._quarantined: set[tuple[str, str]] = set()

    def part(self, number: int, statements: list[Statement]) -> Failure | None:
        """Run the product and compare."""
        self._partial |= any("row_image" in one.sql for one in statements)
        return self._settle(number)

    def way_out(self, number: int) -> Failure | None:
        """Bring quarantined tables back, as the command does, and compare."""
        if not self._quarantined:
            return None
        drain = self._home.pipeline.cursors.load(self._home.config.source, DRAIN)
        waiting: set[tuple[str, str]] = set()
        for record in drain.quarantined_tables if drain is not None else ():
            try:
                requests.resume_table(self._home.pipeline, str(record.table), by="fuzz")
            except CdcError as error:
                if record.fault is not None and (
                    is_allowed(record.fault.code, error.message) or self._may_wait(record)
                ):
                    waiting.add(record.table.pair)  # the source or the file must change first
                    continue
                return Failure(
                    "no way out", f"{type(error).__name__}: {without_names(error.message)}", (str(error),), number
                )
        self._quarantined = waiting
        return self._settle(number)

    def _settle(self, number: int) -> Failure | None:
        """Run until source and lake are equal."""
        failure = None
        position = self._home.server.execute(_end_of(self._home))[0]
        target = (int(str(position[0]).rpartition(".")[2]), int(position[1]))
        for _ in range(RUNS):
            try:
                self._run()
            except Exception as error:  # noqa: BLE001 - whatever ends a run is what this looks for
                return _ended_by(error, number)
            if (failure := self._new_quarantine(number)) is not None:
                return failure
            failure = self._late(number, target)
            if failure is None:
                failure = next(self._differences(number), None)
                if failure is None:
                    return None
        return failure

    def _run(self) -> None:
        """Do what ``cdc run`` does; Airflow tries again what may be tried again."""
        for attempt in range(_RETRIES + 1):
            try:
                self._steps()
            except CdcError as error:
                if not error.retryable or attempt == _RETRIES:
                    raise
            else:
                return

    def _steps(self) -> None:
        home, pipeline = self._home, self._home.pipeline
        for unit in pipeline.plan(by="fuzz"):
            pipeline.drain(unit)
        pipeline.ack_drain(by="fuzz")
        plan = pipeline.plan_merge(by="fuzz")
        if plan is None:
            return
        batches = load_plan(home.store, plan)
        if needs_spark(home.config, home.store, batches):
            origin = partial(Reselector.of, pipeline) if home.config.reselect.is_on else None
            merge(home.spark, home.config, plan, home.store, lambda _: None, batches=batches, origin=origin)
        else:
            run(home.config, plan, home.store)
        pipeline.ack_lake(by="fuzz")

    def _new_quarantine(self, number: int) -> Failure | None:
        drain = self._home.pipeline.cursors.load(self._home.config.source, DRAIN)
        for record in drain.quarantined_tables if drain is not None else ():
            pair = record.table.pair
            assert record.fault is not None
            fault = record.fault
            what = f"{fault.code}: {without_names(fault.reason)}"
            if self._refused is not None:
                self._refused.add(what)
            elif pair not in self._quarantined and not self._may_wait(record):
                return Failure("quarantined", what, (f"{record.table}: {fault.reason}", fault.hint), number, pair[1])
            self._quarantined.add(pair)
        return None

    def _may_wait(self, record: QuarantineRecord) -> bool:
        """Whether a table may be quarantined; one that the lake cannot have as it is now, whichever fault is seen first."""
        assert record.fault is not None
        columns = "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE (TABLE_SCHEMA, TABLE_NAME) = (%s, %s)"
        names = [str(name) for (name,) in self._home.server.execute(columns, record.table.pair)]
        return is_allowed(record.fault.code, record.fault.reason) or are_taken_for_one(names)

    def _late(self, number: int, target: tuple[int, int]) -> Failure | None:
        """Return what is late: a cursor, a snapshot, or a table of the cut that is not quarantined."""
        home = self._home
        drain = home.pipeline.cursors.load(home.config.source, DRAIN)
        lake = home.pipeline.cursors.load(home.config.source, LAKE)
        assert drain is not None
        for cursor in (drain, lake):
            if cursor is None or (int(cursor.position.file.rpartition(".")[2]), cursor.position.offset) < target:
                return Failure("late", f"the {'lake' if cursor is lake else 'drain'} cursor", (), number)
        if drain.open_snapshots or drain.tables_to_resnapshot:
            return Failure("late", "a snapshot", tuple(map(str, drain.tables_to_resnapshot)), number)
        cut = last_cut(home.store, home.config.source)
        late = (
            [one.table for one in cut.tables if one.as_of is not None and one.table.pair not in self._quarantined]
            if cut is not None
            else []
        )
        for table in late:
            if home.has(*table.pair):
                return Failure("late", "a table in the cut", (str(table),), number, table.table)
        return None

    def _differences(self, number: int) -> Iterator[Failure]:
        with ExitStack() as stack:
            session = stack.enter_context(self._home.server.connect())
            for database in self._home.databases():
                left_out = [table for name, table in self._quarantined if name == database]
                found = differences(session, database, self._home.catalog, left_out, added_columns=False)
                for one in found:
                    yield Failure(one.kind, one.what, (f"table {one.table}", *one.examples), number, one.table)


def _ended_by(error: Exception, number: int) -> Failure:
    """Return the failure of a run that ended by an error."""
    if isinstance(error, CdcError):
        table = str(error.context.get("table", "")).partition(".")[2].strip("`")
        return Failure("error", f"{type(error).__name__}: {without_names(error.message)}", (str(error),), number, table)
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f"{one.filename}:{one.lineno} in {one.name}" for one in frames if "site-packages" not in one.filename]
    at = f"{ours[-1].rpartition('/')[2]}" if ours else ""
    return Failure(
        "error",
        f"{type(error).__name__} {at.partition(':')[0]}: {without_names(str(error))}",
        (str(error)[:500], *ours[-3:]),
        number,
    )


def _end_of(home: Home) -> str:
    return (
        home.server.in_server_syntax("SHOW BINARY LOG STATUS")
        if home.server.flavor == "mysql"
        else "SHOW MASTER STATUS"
    )
