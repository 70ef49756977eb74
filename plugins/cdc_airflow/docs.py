"""Texts of the DAGs and tasks: Airflow shows them, and the site's page of DAGs is made from them."""

from __future__ import annotations

from cdc_lib.config import SourceConfig

PLAN = """
Decides what is read next, from the drain cursor to the end of the binlog: ranges of the binlog (*windows*), and tables that are read
whole (*snapshots*). Both are stored in the cursor before anything is read. Windows that are in flight keep their bounds.

* **Retry, clear**: finds the same windows again. A task of `drain` that it has no work for is skipped if it is cleared too.
* **Mark success**: plans nothing. The next run continues with what is in flight.
* **Nothing to do**: the other tasks are skipped, and the run ends.
"""

DRAIN = """
One task for each window or snapshot; many snapshots are divided among a few tasks. A task reads from the server and writes Parquet
files. It writes the manifest last, which makes the files a *batch*. Snapshots are read until the run is `snapshot.run_for` old; the next
run goes on.

* **Retry, clear**: an existing batch is not changed; a missing one is written, with the same bytes.
* **Mark success**: writes nothing, and `ack_drain` stops at this window. The next run drains it.
"""

ACK_DRAIN = """
Moves the drain cursor over the windows that have a manifest in the store, in order. Stops at the first window without one, and fails
if nothing that is in flight has one. Results of other tasks do not count.

* **Retry, clear**: an ack that is already done moves nothing.
* **Mark success**: the cursor does not move. The ack of the next run moves it.
"""

PLAN_MERGE = """
Stores in the lake cursor which batches are merged next. A merge that is in flight is continued without a change.

* **Retry, clear**: finds the same merge.
* **Mark success**: `merge` plans the merge instead.
"""

MERGE = """
Runs Spark, which merges the batches into the lake tables and publishes a *cut*: one snapshot of each table, all as of one position.
Skipped if nothing waits. Spark's log is this task's log, and Spark ends with the task.

* **Retry, clear**: tables that have the batches already are not changed; the others get them.
* **Mark success**: ends a running merge and publishes no cut, so `ack_lake` does not move. The next run merges the same batches.
"""

ACK_LAKE = """
Moves the lake cursor to the published cut. Then emits an asset event for each table that changed, which starts the DAGs that are
scheduled on it.

* **Retry, clear**: does not move the cursor twice; emits the events of the same merge again, with the same `merge_id`.
* **Mark success**: the cursor does not move, and no event is emitted. The next run moves it and merges nothing twice.
"""

SEAL_DAYS = """
Announces each day that is complete in the lake as a partition of the asset `cdc://<source>/days`, which starts DAGs of daily reports.
Skipped if no day has become complete. `sealed_days` of the source file has the time zone.

* **Retry, clear**: an announced day is not announced again.
* **Mark success**: announces nothing. The next run announces the day.
"""

COLLECT = """
Removes batches of the source that the lake and all other consumers have acknowledged and that are older than
`store.keep_batches_for`, and files that no manifest names. The log says which batches are kept, and for which consumer.
`cdc batches gc` does the same.

* **Retry, clear**: removes the remaining batches; removed batches stay removed.
* **Mark success**: removes nothing; the next day's run does.
"""

MAINTAIN = """
Runs Spark. It rewrites small files of the source's lake tables, and files with many deleted rows, in key order. It removes snapshots
older than `maintenance.keep_snapshots_for`, and files that no snapshot names. It may run beside merges: the second commit of two that
conflict is repeated. `cdc lake maintain` does the same.

* **Retry, clear**: does the rest of the work.
* **Mark success**: ends a running job. The run of the next day does the work.
"""

VERIFY = """
Compares the tables of `verify.tables` with the lake: first checksums of key ranges, then the rows of ranges that differ. A row that
differs is compared again when the lake has reached the source's position, so changes that are not merged yet do not count as
differences. Reads only, unless *Repair* is on. `cdc status` shows the result.

* **Retry, clear**: compares again.
* **Mark success**: hides the result until the next run.
"""

SNAPSHOT = """
Requests in the drain cursor that tables, or rows of one table, are read again by SELECT. The next runs of the source's DAG read and
merge them. Until then the lake does not change these tables; the others are merged. `cdc snapshot` does the same.

* **Retry, clear**: requests again. A table that already waits for its snapshot is not requested twice.
* **Mark success**: requests nothing.
"""

SNAPSHOT_DAG = """
### {source}: new snapshots

*Trigger* opens a form: tables, or one table with a range of keys or a condition. The runs of `cdc_{source}` read them.
"""

RESUME = """
Ends the quarantine of a table. Its changes are merged again from now on, and the next runs of the source's DAG read it whole. First
correct the fault for which it was quarantined. `cdc quarantine resume` does the same.

* **Retry, clear**: fails if the table is already resumed, and changes nothing.
* **Mark success**: the table remains quarantined.
"""

RESUME_DAG = """
### {source}: resume

*Trigger* opens a form: the name of a quarantined table. The runs of `cdc_{source}` read it whole and merge it.
"""

REWIND = """
Finds a position in the binlog, and writes it into the log. With `move`, the drain cursor continues there in a new epoch: the changes
after it are read and merged again. `cdc cursor rewind` does the same.

* **Clear**: moves to the same position once more.
* **Mark success**: nothing moves.
"""

REWIND_DAG = """
### {source}: rewind

*Trigger* opens a form: a time, a position or a set of GTIDs. Run it without *Move the cursor* first, and read the log.
"""

ANSWER = """
Records the answer to the schema change at which a table waits (`ask` in `schema_changes`). `follow`: the lake does as the source. `keep`: it
keeps what it has. The answer is about this statement only, and the next merge applies it. The source is not queried. `cdc schema answer`
does the same.

* **Retry, clear**: the same answer changes nothing. Fails if the table does not wait any more.
* **Mark success**: records nothing, and the table waits.
"""

ANSWER_DAG = """
### {source}: answer

*Trigger* opens a form: a table that waits at a schema change, and the answer. The next run of `cdc_{source}` applies it. If the form
names a table that does not wait, the log lists those that do, with the possible answers.
"""

VERIFY_DAG = """
### {source}: source and lake

Runs by `verify.schedule` of the source file, and by hand: the form takes tables, and whether wrong rows are repaired.

Fails if rows of the lake are wrong; the log names the tables. `cdc verify {source} TABLE --html report.html` shows the rows and
columns.
"""

DECODE_AGAIN = """
Decodes `verify.daily_windows` windows, chosen at random among those that were not compared yet and that the server still has, with a second
decoder, and compares every change with the batch. Reads only. Fails if changes differ; the log names them, and what is not comparable.

* **Retry, clear**: compares the same windows of the day again, without those that are equal.
* **Mark success**: compares nothing more on this day.
"""

COVER = """
Compares the key ranges that are due with the source, without Spark, so that each range of each table is compared within
`verify.cover_every`. Reads only. A row that differs and may not be merged yet is looked at again by a later run. `cdc status` and the
page show how much was compared, and which rows are wrong.

* **Retry, clear**: compares what is due by then.
* **Mark success**: compares nothing; the next run makes up for it.
"""

REPAIR = """
Compares the tables in which `cover` found wrong rows with the source, as a whole, and writes the wrong rows again. It is skipped while no row
is wrong.

* **Retry, clear**: compares and repairs again.
* **Mark success**: repairs nothing; the next run does.
"""

COVER_DAG = """
### {source}: key ranges in turns

Runs by `verify.cover_schedule` of the source file. Each run compares the part of each table that is due, so that the whole of it is
compared within `verify.cover_every`, outside of `verify.cover_hours` nothing.

Wrong rows are in the log and in `cdc status {source}`. With `verify.on_difference: fail` the run fails too; with `repair` the task `repair`
repairs them. `cdc verify {source} TABLE --repair` does the same.
"""

BACKFILL = """
Runs Spark, which merges the stored batches of the run's date again: into the lake tables, where it repairs rows and changes nothing
else, or into copies of them (`into: copy`). The source is not queried, and no cursor moves. `cdc backfill` does the same.

* **Retry, clear**: merges again, with the same result.
* **Mark success**: ends a running job. Each table has its whole commit, or none of it.
"""

BACKFILL_DAG = """
### {source}: backfill

Each run of Airflow's backfill merges the batches of one date again:

```
airflow backfill create --dag-id cdc_{source}.backfill --from-date 2026-11-01 --to-date 2026-11-07
```

A run by hand takes the times `from` and `to`; without them it merges all stored batches. It may run beside the runs of
`cdc_{source}`. The run of a date fails if its batches were removed; `store.keep_batches_for` says how long they are kept.
"""

ERASE = """
Removes rows that the source deleted from the lake and the store, with all of their versions, and searches for what is left. Waits until a
person has approved it, unless `approvals.erase` is off. Earlier snapshots and cuts of the lake table go. Fails if something is left: let a
run of the source's DAG merge, then clear the task. `cdc lake erase` does the same.

* **Retry, clear**: goes on with the same erasure.
* **Mark success**: ends a running job. The rows are not erased.
"""

ERASE_DAG = """
### {source}: erase rows

*Trigger* opens a form: a table, and the keys of rows or a condition. First delete the rows at the source, and let `cdc_{source}` merge that.

Airflow keeps the values of the form until `airflow db clean`. Use `cdc lake erase` where a key says who it is.
"""

MAINTENANCE = """
### Maintenance

For each source, one task removes batches that are no longer needed, and one compacts its lake tables. The log names a consumer that
has not acknowledged for a long time: its batches are kept until it continues, or until `cdc consumers drop SOURCE NAME`.
"""

OF_A_SOURCE = {
    "": {
        "plan": PLAN,
        "drain": DRAIN,
        "ack_drain": ACK_DRAIN,
        "plan_merge": PLAN_MERGE,
        "merge": MERGE,
        "ack_lake": ACK_LAKE,
        "seal_days": SEAL_DAYS,
    },
    ".snapshot": {"snapshot": SNAPSHOT},
    ".verify": {"verify": VERIFY},
    ".cover": {"cover": COVER, "repair": REPAIR},
    ".backfill": {"backfill": BACKFILL},
    ".rewind": {"rewind": REWIND},
    ".resume": {"resume": RESUME},
    ".answer": {"answer": ANSWER},
    ".erase": {"erase": ERASE},
}
"""The tasks of each DAG of a source, in their order, by what follows ``cdc_<source>`` in its id."""

OF_REQUESTS = {
    "verify": VERIFY_DAG,
    "backfill": BACKFILL_DAG,
    "snapshot": SNAPSHOT_DAG,
    "resume": RESUME_DAG,
    "answer": ANSWER_DAG,
    "rewind": REWIND_DAG,
    "erase": ERASE_DAG,
}
"""The pages of the DAGs that people ask for, by their kind."""

OF_MAINTENANCE = {"collect": COLLECT, "maintain": MAINTAIN, "decode_again": DECODE_AGAIN}
"""The tasks of ``cdc_maintenance`` for each source; they do not depend on each other."""

_ON_ERROR = {
    "stop": "An error in one table stops the source (`on_error: stop`).",
    "quarantine": "A table with an error is quarantined, and the others continue (`on_error: quarantine`). The logs of `drain` and "
    "`ack_drain` name it, and `cdc status {source}` lists it. `cdc quarantine resume {source} TABLE` ends the quarantine with a new "
    "snapshot.",
}

_DAG = """
### {source}

Copies the changes of **{server}** into the lake: tables {tables}. Errors in the source file are listed under *Dag import errors*.

| task | does |
|---|---|
| `plan` | decides which ranges of the binlog and which tables are read |
| `drain` | reads each of them and writes a batch to the store, {parallelism} at once |
| `ack_drain` | moves the drain cursor over what is durable |
| `plan_merge` | decides which batches are merged |
| `merge` | merges them into the lake tables with Spark |
| `ack_lake` | moves the lake cursor and announces the tables that changed |
| `seal_days` | announces days that are complete |

The state is in the store under `{source}/cursors/`, not in Airflow. **You may clear, retry or mark any task of any run: no change is
lost, and none is applied twice.** Marking success only leaves work to the next run. Backfills are refused, because the date of a run
has no meaning here: use `cdc_{source}.backfill`. To continue at another position, use `cdc_{source}.rewind` or `cdc cursor rewind`.

{on_error}

If a task fails and Airflow does not retry it, its log begins with the error, its place, and what to do.
"""


def of_dag(config: SourceConfig) -> str:
    """Return the page of one source."""
    return _DAG.format(
        source=config.source,
        server=f"{config.server.host}:{config.server.port}",
        tables=", ".join(f"`{pattern}`" for pattern in config.tables.include),
        parallelism=config.drain.parallelism,
        on_error=_ON_ERROR[config.on_error].format(source=config.source),
    )
