"""``schema_changes:`` what lake tables do about columns, tables and rows that statements add or remove at the source."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_lib import requests
from cdc_lib.config.schema_changes import SchemaChangesConfig
from cdc_lib.errors import ConfigError, MergeError, SchemaChangeAsked
from cdc_lib.merge.answers import answer_question, open_questions
from cdc_lib.model.backfill import BackfillRequest, Period
from cdc_lib.model.window import Window
from cdc_lib.snapshot.partial import PartialRequest
from spark_jobs.backfill import backfill
from spark_jobs.iceberg.arrow_rows import ArrowRows
from spark_jobs.merging.run import merge
from tests.harness.lake.verify import Compared
from tests.harness.shop.quarantine import as_statement

MODES = ("mirror", "soft_delete", "append", "scd2")


class Changed(Compared):
    """A source with a table for each of some names, three rows each, and its lake."""

    def __init__(self, server, database, folder, lake, **settings):
        modes = [{"tables": f"{database}.*{mode}", "mode": mode} for mode in MODES]
        super().__init__(server, database, folder, lake, modes=modes, **settings)

    def create(self, *names):
        for name in names:
            self.execute(f"CREATE TABLE {name} (id INT PRIMARY KEY, v VARCHAR(9), w INT)")
            self.execute(f"INSERT INTO {name} VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3)")
        self.round()

    def run(self, *statements):
        for statement in statements:
            self.execute(statement)

    def says(self, **behaviours):
        """Write other behaviours into the source file."""
        config = SchemaChangesConfig.model_validate(behaviours)
        self.capture.config = self.capture.config.model_copy(update={"schema_changes": config})
        self.capture.pipeline = replace(self.capture.pipeline, config=self.capture.config)

    def twice(self):
        """Do one run of the DAG whose merge runs twice."""
        self.drain()
        plan = self.capture.pipeline.plan_merge(by="test")
        for _ in range(2):
            merge(self.lake.spark, self.capture.config, plan, self.capture.store, self.lake.said.append)
        self.capture.pipeline.ack_lake(by="test")

    def answer(self, name, decision, position=None):
        return answer_question(self.capture.pipeline, f"{self.database}.{name}", decision, position, by="ann")

    def rows(self, name, *columns):
        return self.lake.rows(f"{self.database}.{name}", *(columns or ("id", "v")))

    def columns(self, name):
        return [one.name for one in self.lake.state(f"{self.database}.{name}").columns if not one.name.startswith("_")]

    def read_again(self, *names):
        requests.resnapshot(self.capture.pipeline, [f"{self.database}.{name}" for name in names], by="test", why="test")
        self.round()
        self.round()

    def backfill(self):
        config, pipeline = self.capture.config, self.capture.pipeline
        request = BackfillRequest(Period(), (), "live")
        backfill(self.lake.spark, config, pipeline, request, self.lake.said.append)


@pytest.fixture
def source(any_server, database, tmp_path, lake):
    return Changed(any_server, database, tmp_path, lake)


def test_rows_that_a_truncate_removed_stay_through_snapshots_backfills_and_repairs(source):
    """Later changes apply to them; the comparison says which rows it left out, and finds others that are wrong."""
    source.says(truncate="keep")
    source.create("t")
    source.run(
        "UPDATE t SET v = 'old' WHERE id = 1",
        "TRUNCATE t",
        "INSERT INTO t VALUES (2, 'new', 2), (9, 'new', 9)",
    )
    source.twice()
    kept = [(1, "old"), (2, "new"), (3, "c"), (9, "new")]
    assert source.rows("t") == kept
    report = source.table("t")
    assert (report.clean, report.source_rows, report.lake_rows) == (True, 2, 2)
    assert "are kept (schema_changes.truncate)" in report.kept

    source.unlogged("DELETE FROM t WHERE id = 9")
    assert (source.table("t").extra, source.table("t", repair=True).repaired) == (1, 1)
    assert source.rows("t") == kept[:3]
    source.backfill()
    source.unlogged("INSERT INTO t VALUES (9, 'new', 9)", "DELETE FROM t WHERE id = 2")
    source.read_again("t")
    assert source.rows("t") == [(1, "old"), (3, "c"), (9, "new")]
    requests.snapshot_rows(source.capture.pipeline, PartialRequest(f"{source.database}.t", "1", "9"), by="test")
    source.round()
    assert source.rows("t") == [(1, "old"), (3, "c"), (9, "new")]
    assert source.table("t").clean
    source.run("INSERT INTO t VALUES (3, 'mine', 1)", "DELETE FROM t WHERE id = 3")
    source.twice()
    assert source.rows("t") == [(1, "old"), (9, "new")]
    source.run(
        "DROP TABLE t", "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(9), w INT)", "INSERT INTO t VALUES (5, 'e', 5)"
    )
    source.twice()
    assert source.rows("t") == [(5, "e")]
    assert (source.table("t").clean, source.table("t").kept) == (True, "")


def test_in_other_modes_nothing_says_that_kept_rows_were_removed(source):
    """Neither deletes, nor ended versions, nor an entry of the list; and the tables still equal the source besides."""
    source.says(truncate="keep", drop_table="keep")
    source.create(*MODES)
    for mode in MODES:
        source.run(f"TRUNCATE {mode}", f"INSERT INTO {mode} VALUES (2, 'new', 2)")
    source.twice()
    assert source.rows("soft_delete", "id", "_is_deleted") == [(1, False), (2, False), (3, False)]
    assert source.rows("scd2", "id", "v", "_is_current") == [
        (1, "a", True), (2, "b", False), (2, "new", True), (3, "c", True),
    ]  # fmt: skip
    assert [op for (op,) in source.rows("append", "_op")] == ["c", "r", "r", "r"]
    assert {one.table.table: (one.clean, bool(one.kept)) for one in source.report().tables} == dict.fromkeys(
        MODES, (True, True)
    )
    for mode in MODES:
        source.run(f"DROP TABLE {mode}")
    source.twice()
    assert len(source.rows("mirror")) == 3
    assert source.rows("soft_delete", "id", "_is_deleted") == [(1, False), (2, False), (3, False)]
    assert [row for row in source.rows("scd2", "id", "_is_current") if row[1]] == [(1, True), (2, True), (3, True)]
    assert [op for (op,) in source.rows("append", "_op")] == ["c", "r", "r", "r"]


def test_a_dropped_table_leaves_an_empty_one_where_the_lake_follows(source):
    """Others keep their rows as before; a table that is created again begins empty in both."""
    source.says(tables=[{"tables": "*.followed*", "drop_table": "follow"}])
    source.create("followed", "stays")
    source.run("UPDATE followed SET v = 'x' WHERE id = 1", "DROP TABLE followed", "DROP TABLE stays")
    source.twice()
    assert (source.rows("followed"), len(source.rows("stays"))) == ([], 3)
    for name in ("followed", "stays"):
        source.run(
            f"CREATE TABLE {name} (id INT PRIMARY KEY, v VARCHAR(9), w INT)", f"INSERT INTO {name} VALUES (7, 'g', 7)"
        )
    source.twice()
    assert source.rows("followed") == source.rows("stays") == [(7, "g")]
    assert source.report().clean


def test_a_dropped_column_leaves_the_lake_where_it_follows(source, monkeypatch):
    """In every mode, also if the merge dies between the column and the rows; earlier batches do not bring it back."""
    source.says(drop_column="follow")
    source.create(*MODES)
    for mode in MODES:
        source.run(
            f"UPDATE {mode} SET w = 20 WHERE id = 2",
            f"ALTER TABLE {mode} DROP COLUMN w",
            f"UPDATE {mode} SET v = 'after' WHERE id = 1",
        )
    source.drain()
    plan = source.capture.pipeline.plan_merge(by="test")
    with monkeypatch.context() as patch:

        def killed(*_, **__):
            raise MergeError("killed")

        patch.setattr(ArrowRows, "apply", killed)
        with pytest.raises(MergeError, match="killed"):
            merge(source.lake.spark, source.capture.config, plan, source.capture.store, source.lake.said.append)
    assert {mode: source.columns(mode) for mode in MODES} == {mode: ["id", "v"] for mode in MODES}
    source.merge()
    assert {mode: source.columns(mode) for mode in MODES} == {mode: ["id", "v"] for mode in MODES}
    assert source.rows("mirror") == [(1, "after"), (2, "b"), (3, "c")]
    assert all((one.clean, one.uncompared) == (True, ()) for one in source.report().tables)
    source.backfill()
    source.read_again("mirror")
    assert {mode: source.columns(mode) for mode in MODES} == {mode: ["id", "v"] for mode in MODES}
    source.run("ALTER TABLE mirror ADD COLUMN w INT DEFAULT 5", "UPDATE mirror SET w = 6 WHERE id = 3")
    source.twice()
    assert source.rows("mirror", "id", "w") == [(1, 5), (2, 5), (3, 6)]
    assert source.report().clean


@pytest.mark.parametrize("further", [False, True], ids=["to the snapshot", "beyond the snapshot"])
def test_a_column_that_came_while_its_table_was_quarantined_is_that_of_its_snapshot(
    any_server, database, tmp_path, lake, further
):
    """Also where a merge has moved on to the snapshot, or beyond it, before it has the snapshot's rows."""
    source = Changed(any_server, database, tmp_path, lake, on_error="quarantine")
    source.says(drop_column="follow")
    source.create(*MODES)
    for mode in MODES:
        source.run(f"UPDATE {mode} SET w = 7 WHERE id = 1")
    source.drain()
    for mode in MODES:
        as_statement(source.capture, f"UPDATE {mode} SET v = 'x' WHERE id = 1")
        source.run(f"ALTER TABLE {mode} ADD COLUMN n INT", f"UPDATE {mode} SET n = 10 * id WHERE id > 1")
    source.drain()
    for mode in MODES:
        requests.resume_table(source.capture.pipeline, f"{source.database}.{mode}", by="test")
    if further:
        source.run("CREATE TABLE beside (id INT PRIMARY KEY)", "INSERT INTO beside VALUES (1)")
        for unit in source.capture.pipeline.plan(by="test"):
            if isinstance(unit, Window):
                source.capture.pipeline.drain(unit)
        source.capture.pipeline.ack_drain(by="test")
    source.merge()
    source.round()
    source.round()
    assert {mode: source.columns(mode) for mode in MODES} == {mode: ["id", "v", "w", "n"] for mode in MODES}
    assert source.rows("mirror", "id", "v", "w", "n") == [(1, "x", 7, None), (2, "b", 2, 20), (3, "c", 3, 30)]
    assert all((one.clean, one.uncompared) == (True, ()) for one in source.report().tables)
    for mode in MODES:
        source.run(f"ALTER TABLE {mode} DROP COLUMN n", f"UPDATE {mode} SET v = 'y' WHERE id = 3")
    source.twice()
    assert {mode: source.columns(mode) for mode in MODES} == {mode: ["id", "v", "w"] for mode in MODES}
    assert all((one.clean, one.uncompared) == (True, ()) for one in source.report().tables)


def test_a_dropped_column_that_is_kept_stays_through_a_new_snapshot(source):
    """It is null in rows that were written since, and the comparison says that it is not compared."""
    source.create("t")
    source.run("ALTER TABLE t DROP COLUMN w", "UPDATE t SET v = 'x' WHERE id = 1")
    source.twice()
    assert source.rows("t", "id", "v", "w") == [(1, "x", None), (2, "b", 2), (3, "c", 3)]
    (column,) = source.table("t").uncompared
    assert (column.column, column.why) == ("w", "the source does not have it, and the lake keeps it")
    source.read_again("t")
    assert source.rows("t", "id", "v", "w") == [(1, "x", None), (2, "b", None), (3, "c", None)]
    assert source.table("t").clean


def test_an_added_column_is_ignored_until_the_source_file_follows(source):
    """By merges, new snapshots and repairs; a new snapshot then has its values."""
    source.says(add_column="keep")
    source.create("t")
    source.run("ALTER TABLE t ADD COLUMN n INT NOT NULL DEFAULT 5", "UPDATE t SET n = 6, v = 'x' WHERE id = 1")
    source.twice()
    assert (source.columns("t"), source.rows("t")) == (["id", "v", "w"], [(1, "x"), (2, "b"), (3, "c")])
    report = source.table("t")
    assert (report.clean, [one.column for one in report.uncompared]) == (True, ["n"])
    assert "schema_changes.add_column" in report.uncompared[0].why
    source.unlogged("UPDATE t SET v = 'wrong' WHERE id = 2")
    assert source.table("t", repair=True).repaired == 1
    source.backfill()
    source.read_again("t")
    assert (source.columns("t"), source.rows("t")) == (["id", "v", "w"], [(1, "x"), (2, "wrong"), (3, "c")])
    source.says()
    source.read_again("t")
    assert source.rows("t", "id", "n") == [(1, 6), (2, 5), (3, 5)]
    assert source.table("t").uncompared == ()


STOPS = {
    "truncate": ("TRUNCATE {}", "the source ran TRUNCATE at "),
    "drop_table": ("DROP TABLE {}", "the source dropped the table at "),
    "add_column": ("ALTER TABLE {} ADD COLUMN n INT", "the source added column n at "),
    "drop_column": ("ALTER TABLE {} DROP COLUMN w", "the source dropped column w at "),
    "widen": ("ALTER TABLE {} MODIFY w BIGINT", "the source changed column w, which is int in the lake, to bigint at "),
    "rename": ("ALTER TABLE {} RENAME COLUMN w TO x", "the source renamed columns (w to x) at "),
}
"""By key, the statement and the message."""

LEFT = {"follow": [(4, "after")], "keep": [(1, "a"), (2, "before"), (3, "c"), (4, "after")]}
"""The rows after a TRUNCATE, by what was answered."""


def test_stopped_tables_continue_where_they_were_once_the_source_file_says_how(source):
    """The other tables are merged; afterwards each stops at its next change alone."""
    tables = {f"{kind}_{answer}": (kind, answer) for kind in STOPS for answer in ("follow", "keep")}
    del tables["widen_keep"], tables["rename_keep"]
    stops = [{"tables": f"*.{kind}_*", kind: "stop"} for kind in STOPS]
    source.says(tables=stops)
    source.create(*tables, "other")
    for name, (kind, _) in tables.items():
        source.run(f"UPDATE {name} SET v = 'before' WHERE id = 2", STOPS[kind][0].format(name))
        if kind != "drop_table":
            source.run(f"INSERT INTO {name} (id, v) VALUES (4, 'after')")
    source.run("UPDATE other SET v = 'merged' WHERE id = 1")
    source.drain()
    for _ in range(2):
        with pytest.raises(MergeError) as stopped:
            source.merge()
    for kind, (_, message) in STOPS.items():
        assert message in str(stopped.value)
        assert f"(schema_changes.{kind}: stop)" in str(stopped.value)
    assert source.rows("other")[0] == (1, "merged")
    assert {name: source.rows(name) for name in tables} == {name: [(1, "a"), (2, "b"), (3, "c")] for name in tables}

    source.says(tables=[{"tables": f"*.{name}", kind: answer} for name, (kind, answer) in tables.items()])
    source.merge()
    for name, (kind, answer) in tables.items():
        rows = {"truncate": LEFT[answer], "drop_table": LEFT[answer][:-1]}.get(kind, LEFT["keep"])
        assert (name, source.rows(name)) == (name, rows)
        others = {"drop_column_follow": [], "add_column_follow": ["w", "n"], "rename_follow": ["x"]}
        assert source.columns(name) == ["id", "v", *others.get(name, ["w"])]
    source.says(tables=stops)
    for name, (kind, _) in tables.items():
        if kind != "drop_table":
            source.run(f"UPDATE {name} SET v = 'later' WHERE id = 4")
    source.twice()
    report = source.report()
    assert {one.table.table for one in report.tables if not one.clean} == set()
    assert {source.rows(name)[-1] for name, (kind, _) in tables.items() if kind != "drop_table"} == {(4, "later")}


ASKED = {
    "truncate": ("TRUNCATE {}", ("follow", "keep")),
    "add_column": ("ALTER TABLE {} ADD COLUMN n INT", ("keep",)),
    "drop_column": ("ALTER TABLE {} DROP COLUMN w", ("follow",)),
    "narrow": ("ALTER TABLE {} MODIFY b INT", ("keep",)),
}
"""By key, the statement, and what is answered."""


def test_asked_tables_continue_where_they_were_once_somebody_has_answered(source):
    """They end as tables whose source file said so from the start; the next change asks again."""
    tables = {f"{kind}_{answer}": (kind, answer) for kind, (_, answers) in ASKED.items() for answer in answers}
    said = [{"tables": f"*.{name}_said", kind: answer} for name, (kind, answer) in tables.items()]
    asks = [{"tables": f"*.{kind}_*", kind: "ask"} for kind in ASKED]
    source.says(tables=[*said, *asks])
    for name in (*tables, *(f"{one}_said" for one in tables)):
        source.run(f"CREATE TABLE {name} (id INT PRIMARY KEY, v VARCHAR(9), w INT, b BIGINT)")
        source.run(f"INSERT INTO {name} VALUES (1, 'a', 1, 1), (2, 'b', 2, 2), (3, 'c', 3, 3)")
    source.round()
    for name, (kind, _) in tables.items():
        for one in (name, f"{name}_said"):
            source.run(f"UPDATE {one} SET v = 'before' WHERE id = 2", ASKED[kind][0].format(one))
            source.run(f"INSERT INTO {one} (id, v) VALUES (4, 'after')")
    source.drain()
    with pytest.raises(MergeError) as stopped:
        source.merge()
    assert all(f"(schema_changes.{kind}: ask)" in str(stopped.value) for kind in ASKED)
    assert all(source.rows(name) == [(1, "a"), (2, "b"), (3, "c")] for name in tables)

    store, config = source.capture.store, source.capture.config
    assert {one.question.table.table for one in open_questions(store, config.source)} == set(tables)
    with pytest.raises(ConfigError, match="does not wait for an answer"):
        source.answer("truncate_keep_said", "keep")
    for name, (_, answer) in tables.items():
        source.answer(name, answer)
    with pytest.raises(ConfigError, match="ann has answered keep"):
        source.answer("truncate_keep", "follow")
    source.merge()
    assert open_questions(store, config.source) == []
    with pytest.raises(ConfigError, match="does not wait for an answer"):
        source.answer("truncate_keep", "keep")
    for name in tables:
        assert (name, source.rows(name), source.columns(name)) == (
            name, source.rows(f"{name}_said"), source.columns(f"{name}_said"),
        )  # fmt: skip
    source.run("UPDATE truncate_keep SET v = 'later' WHERE id = 4", "UPDATE add_column_keep SET n = 9 WHERE id = 4")
    source.twice()
    assert source.rows("truncate_keep") == [(1, "a"), (2, "before"), (3, "c"), (4, "later")]
    assert source.columns("add_column_keep") == ["id", "v", "w", "b"]
    assert {one.table.table for one in source.report().tables if not one.clean} == set()
    source.run("TRUNCATE truncate_keep")
    source.drain()
    with pytest.raises(SchemaChangeAsked):
        source.merge()
