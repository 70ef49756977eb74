"""The readers that are measured, each in its own process: ``python -m tests.bench.readers drain '{...}'``.

The process prints its figures in its last line. The CPU of Python's start and imports is separate (``start_cpu``): it is the
same for one row and for a million. The drain first reads a small window of the same table, so that numba's compiled kernels
are loaded from its cache, or compiled on a new machine; that counts as start too.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from cdc_lib.source import Source


@dataclass(frozen=True, slots=True)
class Job:
    """What a reader reads; sent to its process as JSON.

    Args:
        flavor: of the server.
        host: of the server.
        port: of the server.
        user: who may read the binlog.
        password: of the user.
        file: binlog file.
        start: offset of its first event.
        stop: offset after its last event.
        rows: stop after this many row changes; only mysql-replication does.
        warm_file: binlog file to warm up with.
        warm_stop: offset after the last event of the warm-up.
        stop_file: binlog file of ``stop``, if it is not ``file``.
        tls: whether the server offers TLS; the readers in Python detect it.
    """

    flavor: str
    host: str
    port: int
    user: str
    password: str
    file: str
    start: int
    stop: int
    rows: int
    warm_file: str
    warm_stop: int
    stop_file: str = ""
    tls: bool = False

    def text(self) -> str:
        """Return it as the argument of its process."""
        return json.dumps(asdict(self))


@dataclass(frozen=True, slots=True)
class Measured:
    """The cost of reading.

    Args:
        rows: row changes read; None for a reader that does not look into events.
        wall: wall seconds.
        cpu: seconds of CPU, user and system, of all threads.
        peak_rss: peak memory in bytes; None if it is not known.
        start_cpu: seconds of CPU before: Python, imports, warm-up.
        written: bytes written; None for a reader that writes nothing.
        stages: seconds of CPU by stage, if requested.
    """

    rows: int | None
    wall: float
    cpu: float
    peak_rss: int | None
    start_cpu: float = 0.0
    written: int | None = None
    stages: dict[str, float] = field(default_factory=dict)


def cpu_seconds(usage: resource.struct_rusage) -> float:
    """Return user and system time together."""
    return usage.ru_utime + usage.ru_stime


def cpu_now() -> float:
    """Return the CPU seconds that this process has used."""
    return cpu_seconds(resource.getrusage(resource.RUSAGE_SELF))


def _measure(work: Callable[[], tuple[int, int | None]]) -> Measured:
    before, began = cpu_seconds(resource.getrusage(resource.RUSAGE_SELF)), time.perf_counter()
    rows, written = work()
    wall = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_SELF)
    return Measured(rows, wall, cpu_seconds(after) - before, _peak_rss(), before, written)


def _peak_rss() -> int | None:
    """Return the kernel's high-water mark; ``ru_maxrss`` would start with the size of the parent process."""
    status = Path("/proc/self/status")
    if not status.exists():
        return None
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def drain(job: Job, warmed: Callable[[], None] = lambda: None) -> Measured:
    """Drain the window into a local store, as an Airflow task or ``cdc step drain`` does; ``warmed`` is called before it."""
    return drain_all([job], warmed)


def drain_all(jobs: Sequence[Job], warmed: Callable[[], None]) -> Measured:
    """Drain several windows of one server, one after the other."""
    job = jobs[0]
    from cdc_lib.config import Credentials, SourceConfig
    from cdc_lib.drain.window import Drainer
    from cdc_lib.model.position import FIRST_EVENT_OFFSET, Position
    from cdc_lib.model.window import Window
    from cdc_lib.mysql.connection import connect
    from cdc_lib.mysql.server_facts import read_facts
    from cdc_lib.store.objects.local import LocalStore

    with tempfile.TemporaryDirectory(prefix="lakecdc-bench-") as folder:
        config = SourceConfig.model_validate(
            {
                "source": "bench",
                "server": {"host": job.host, "port": job.port, "user": job.user, "password_env": "UNUSED"},
                "tables": {"include": ["bench.*"]},
                "store": {"url": f"file://{folder}"},
                "lake": {"type": "jdbc", "uri": "jdbc:sqlite:unused.db", "warehouse": "file:///unused"},
            }
        )
        credentials = Credentials(job.user, job.password)
        drainer = Drainer(Source.over(config, LocalStore(Path(folder)), credentials))
        with connect(config.server, credentials) as connection:
            identity = read_facts(connection, config.server).identity

        def window(file: str, start: int, stop: int, stop_file: str = "") -> tuple[int, int]:
            end = Position(stop_file or file, stop)
            read = drainer.window(Window("bench", 1, Position(file, start), end), identity)
            return read.rows, read.bytes

        window(job.warm_file, FIRST_EVENT_OFFSET, job.warm_stop)
        warmed()

        def all_windows() -> tuple[int, int]:
            read = [window(each.file, each.start, each.stop, each.stop_file) for each in jobs]
            return sum(rows for rows, _ in read), sum(size for _, size in read)

        return _measure(all_windows)


def drain_by_stages(job: Job) -> Measured:
    """Drain the window and return the CPU seconds of each stage; reading the clocks takes some of them."""
    from tests.bench.stages import REST, Stages

    stages = Stages()
    measured = drain(job, stages.clear)
    known = dict(stages.seconds)
    return replace(measured, stages={**known, REST: measured.cpu - sum(known.values())})


def mysql_replication(job: Job) -> Measured:
    """Read the values of every row with BinLogStreamReader, from the same position, and discard them."""
    from pymysqlreplication import BinLogStreamReader
    from pymysqlreplication.row_event import DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent

    def read() -> tuple[int, None]:
        stream = BinLogStreamReader(
            connection_settings={"host": job.host, "port": job.port, "user": job.user, "passwd": job.password},
            server_id=4_000_000_001,
            log_file=job.file,
            log_pos=job.start,
            resume_stream=True,
            blocking=False,
            only_events=[DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent],
        )
        rows = 0
        for event in stream:
            rows += len(event.rows)
            if rows >= job.rows:
                break
        stream.close()
        return rows, None

    return _measure(read)


READERS: dict[str, Callable[[Job], Measured]] = {
    "drain": drain,
    "drain-by-stages": drain_by_stages,
    "mysql-replication": mysql_replication,
}


if __name__ == "__main__":
    print(json.dumps(asdict(READERS[sys.argv[1]](Job(**json.loads(sys.argv[2]))))))
