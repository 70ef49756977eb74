"""What the pages of Airflow say about a source's DAG and its tasks."""

from __future__ import annotations

from cdc_lib.config import SourceConfig

PLAN = """
Looks where the drain cursor is and fixes what is read next: stretches of the binlog (*windows*) and tables to be read
whole (*snapshots*). Both are written into the cursor before anything is read. What is in flight already is taken up as it
is, bounds and all.

* **Retry, clear**: finds the same windows again.
* **Mark success**: nothing is lost. Without a plan this run goes no further; the next one takes up what is in flight.
* **Nothing to do**: the tasks after it are skipped, and the run ends here.
"""

DRAIN = """
One task for each window or snapshot; many snapshots are divided among a few tasks. Reads it from the server and writes Parquet
files and, last, the manifest that makes them a *batch*.

* **Retry, clear**: a batch that is there is left alone; one that is not is written, with the same bytes.
* **Mark success**: writes nothing, so that `ack_drain` does not count the window. The next run drains it.
"""

ACK_DRAIN = """
Moves the drain cursor over the windows whose manifests lie in the store, one after another, and stops before the first
that has none. Other tasks' results are not asked.

* **Retry, clear**: an ack that is done already moves nothing.
* **Mark success**: the cursor stays; the next run's ack moves it.
"""

PLAN_MERGE = """
Fixes in the lake cursor which batches are merged next. A merge that is in flight is taken up as it is.

* **Retry, clear**: finds the same merge.
* **Mark success**: `merge` looks automatically and finds what there is to do.
"""

MERGE = """
Runs Spark, which applies the batches to the lake tables and publishes a *cut*: the snapshots of all tables as of one
position. Skipped when nothing waits. Spark's log is this task's log, and Spark ends with the task.

* **Retry, clear**: tables that have the batches already are left alone; the others get them.
* **Mark success**: publishes no cut, so that `ack_lake` does not move. The next run merges the same batches. A merge that
  was running is ended.
"""

ACK_LAKE = """
Moves the lake cursor to the published cut, then announces each table that changed as an asset, so that DAGs which are
scheduled on it start.

* **Retry, clear**: moves nothing that is moved; announces the same merge once more, with the same `merge_id`.
* **Mark success**: the cursor stays and nothing is announced; the next run merges nothing twice and moves it.
"""

SEAL_DAYS = """
Announces each day that is complete in the lake as a partition of the asset `cdc://<source>/days`, so that DAGs of daily reports
start. Skipped when no day has become complete. `sealed_days` of the source file has the time zone.

* **Retry, clear**: a day that is announced is not announced again.
* **Mark success**: announces nothing; the next run announces the day.
"""

COLLECT = """
Removes the source's batches that the lake and every other consumer have acknowledged and that are older than
`store.keep_batches_for`, and what no manifest names. The log says what stays, and for whom. `cdc batches gc` shows the same.

* **Retry, clear**: removes the remaining batches; removed batches stay removed.
* **Mark success**: removes nothing; the next day's run does.
"""

MAINTAIN = """
Runs Spark, which writes small files of the source's lake tables, and those with many deleted rows, again in key order, and
removes snapshots older than `maintenance.keep_snapshots_for` and files that no snapshot names. Safe beside merges: what comes
second begins again. `cdc lake maintain` does the same.

* **Retry, clear**: does what is left to do.
* **Mark success**: nothing is done; the next day's run does it. A job that was running is ended.
"""

VERIFY = """
Compares the tables that `verify.tables` of the source file names with the lake, row by row: checksums of key ranges first,
then the rows of ranges that are not the same. A row that differs is looked at again once the lake has come so far, so that
what is merely on its way is no drift. Reads only; what was found is in `cdc status`.

* **Retry, clear**: compares again.
* **Mark success**: hides what was found until the next run finds it again.
"""

SNAPSHOT = """
Writes into the drain cursor that tables, or rows of one table, are read again by SELECT. Reads nothing itself: the next runs of the
source's DAG do, and merge what they read. Until then the lake of the source does not change; draining continues.
`cdc snapshot` does the same.

* **Retry, clear**: asks again; a table that waits for its snapshot already stays as it is.
* **Mark success**: nothing is asked for.
"""

SNAPSHOT_DAG = """
### {source}: new snapshots

*Trigger* opens a form: tables, or one table with a range of keys or a condition. The runs of `cdc_{source}` read them.
"""

RESUME = """
Ends the quarantine of a table: its changes count again from here on, and the next runs of the source's DAG read it whole. The
source's own fault, for which the table was quarantined, must be corrected first. `cdc quarantine resume` does the same.

* **Retry, clear**: fails when the table is resumed already, and changes nothing.
* **Mark success**: the table stays quarantined.
"""

RESUME_DAG = """
### {source}: resume

*Trigger* opens a form: the name of a quarantined table. The runs of `cdc_{source}` read it whole and merge it.
"""

REWIND = """
Finds a position in the binlog. With `move` the drain cursor continues there, in a new epoch, and what follows is read again and merged
over what the lake has; without, the log says what the position is. `cdc cursor rewind` does the same.

* **Clear**: moves to the same position once more.
* **Mark success**: nothing moves.
"""

REWIND_DAG = """
### {source}: rewind

*Trigger* opens a form: a time, a position or a set of GTIDs. Run it without *Move the cursor* first, and read the log.
"""

VERIFY_DAG = """
### {source}: source and lake

Runs by `verify.schedule` of the source file, and when somebody triggers it; a form takes tables and whether wrong rows are repaired.

Fails when rows of the lake are wrong, and its log names the tables. `cdc verify {source} TABLE --html report.html` shows which
rows and columns.
"""

BACKFILL = """
Runs Spark, which merges the batches of the run's date that the store still holds once more: into the lake tables, where it
repairs rows and changes nothing else, or into tables beside them (`into: copy`). The source is not asked, and no cursor moves.
`cdc backfill` does the same.

* **Retry, clear**: merges again; the tables are the same afterwards.
* **Mark success**: nothing more is merged; a job that was running is ended, and each table has all of its commit or nothing.
"""

BACKFILL_DAG = """
### {source}: backfill

Runs that Airflow's backfill asks for, one for each date, merge the batches of that date again:

```
airflow backfill create --dag-id cdc_{source}.backfill --from-date 2026-11-01 --to-date 2026-11-07
```

A run by hand takes its times from `from` and `to`, and all that is stored without. Safe beside the runs of `cdc_{source}`. A date whose
batches were removed fails and says so: `store.keep_batches_for` says how long they stay.
"""

MAINTENANCE = """
### Maintenance

For each source one task removes batches that are no longer needed, and one keeps its lake tables small. A consumer that has not acknowledged for long is named
in the task's log: it holds batches back until it continues, or until `cdc consumers drop SOURCE NAME`.
"""

_ON_ERROR = {
    "stop": "What is not understood of one table stops the source (`on_error: stop`).",
    "quarantine": "A table of which something is not understood is quarantined, and the others continue (`on_error: quarantine`): "
    "`drain` and `ack_drain` warn of it in their logs, `cdc status {source}` lists it, and `cdc quarantine resume {source} TABLE` brings "
    "it back with a new snapshot.",
}

_DAG = """
### {source}

Carries the changes of **{server}** into the lake: tables {tables}. What is wrong with the source file is shown under
*Dag import errors*.

| task | does |
|---|---|
| `plan` | fixes which stretches of the binlog and which tables are read |
| `drain` | reads each of them and writes a batch to the store, {parallelism} at once |
| `ack_drain` | moves the drain cursor over what is durable |
| `plan_merge` | fixes which batches are merged |
| `merge` | applies them to the lake tables in Spark |
| `ack_lake` | moves the lake cursor and announces the tables that changed |
| `seal_days` | announces days that are complete |

The state is kept in the store under `{source}/cursors/`, not in Airflow: **clearing, retrying or marking any task
of any run loses nothing and doubles nothing**. The worst that marking success does is to leave work to the next run.
Backfills are refused, because a run's date decides nothing: `cdc_{source}.backfill` is made for them. To begin again at another
place use `cdc cursor locate` or `cdc cursor rewind`.

{on_error}

A red task that Airflow does not try again needs a hand: its log ends with what happened, where, and what to do.
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
