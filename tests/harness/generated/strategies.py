"""Hypothesis strategies for the models."""

from __future__ import annotations

from datetime import UTC

from hypothesis import strategies as st

from cdc_lib.model.binlog_checkpoint import BinlogCheckpoint
from cdc_lib.model.cursor import Cursor, EpochChange, Move
from cdc_lib.model.manifest import DataFile, Ddl, Manifest, SnapshotChunk
from cdc_lib.model.merge_plan import Cut, MergePlan, TableCut
from cdc_lib.model.position import Position
from cdc_lib.model.quarantine import Fault, LaggingTable, QuarantinedTable, QuarantineRecord
from cdc_lib.model.schema import Column, SourceType, TableSchema
from cdc_lib.model.sealed_days import AnnouncedDays, Announcement
from cdc_lib.model.server_identity import ServerIdentity
from cdc_lib.model.subscription import Interest, Lease
from cdc_lib.model.table_name import TableName
from cdc_lib.model.window import SnapshotTask, TaskRange, Window
from cdc_lib.model.xa import Decision, OpenTransaction, Prepared

INT64 = st.integers(-(2**63), 2**63 - 1)
COUNTS = st.integers(0, 2**63 - 1)
SOURCES = st.from_regex(r"[a-z][a-z0-9_-]{0,10}", fullmatch=True)
TIMES = st.datetimes(timezones=st.just(UTC))
MAYBE_TIME = st.none() | TIMES
KEY_TEXTS = st.none() | st.lists(st.text(max_size=5), max_size=3).map(tuple)


def tuples(of: st.SearchStrategy, most: int = 3) -> st.SearchStrategy:
    return st.lists(of, max_size=most).map(tuple)


def positions(base: str = "binlog", files: int = 2**31 - 1, offsets: int = 2**40) -> st.SearchStrategy[Position]:
    """Positions in the binlog of one server; file numbers may have more than six digits."""
    return st.builds(lambda n, o: Position(f"{base}.{n:06d}", o), st.integers(1, files), st.integers(4, offsets))


def windows(source: st.SearchStrategy[str] = SOURCES) -> st.SearchStrategy[Window]:
    bounds = st.tuples(positions(), positions()).map(sorted)
    return st.builds(lambda s, e, b: Window(s, e, *b), source, st.integers(1, 999_999), bounds)


IDENTITIES = st.builds(
    ServerIdentity, st.sampled_from(["mysql", "mariadb"]), st.text(max_size=5), COUNTS, COUNTS, st.text(max_size=5)
)
KEYS = st.none() | tuples(st.text(max_size=5))
TASKS = st.builds(
    SnapshotTask, SOURCES, COUNTS, st.text(max_size=5), st.text(max_size=5), st.text(max_size=5), COUNTS, st.booleans(),
    ranges=tuples(st.builds(TaskRange, KEYS, KEYS, COUNTS, st.booleans())), range_key=tuples(st.text(max_size=5)),
    range_number=st.none() | COUNTS, to_divide=st.booleans(),
)  # fmt: skip
TABLE_NAMES = st.builds(TableName, st.text(min_size=1, max_size=4), st.text(min_size=1, max_size=4))
PREPARED = st.builds(Prepared, st.text(max_size=5), positions(), positions(), tuples(TABLE_NAMES))
DECISIONS = st.builds(Decision, st.text(max_size=5), positions(), TIMES, st.text(max_size=5), st.booleans())
OPEN_TRANSACTIONS = st.builds(OpenTransaction, st.text(max_size=5), PREPARED, COUNTS, IDENTITIES)
FAULTS = st.builds(Fault, positions(), st.text(max_size=5), st.text(max_size=5), st.text(max_size=5))
SET_ASIDE = st.builds(QuarantinedTable, TABLE_NAMES, FAULTS)
ASIDES = st.builds(
    QuarantineRecord,
    table=st.sampled_from([TableName("a", "a"), TableName("a", "b"), TableName("a.b", "a")]),
    epoch=st.integers(1, 3),
    start=positions(),
    as_of=positions(),
    skip_decode_from=positions(),
    fault=st.none() | FAULTS,
    oldest_missing_commit=MAYBE_TIME,
    at=TIMES,
    by=st.text(max_size=5),
    released_position=st.none() | positions(),
    released_epoch=st.integers(0, 3),
    snapshot_id=st.text(max_size=5),
    released_at=MAYBE_TIME,
    released_by=st.text(max_size=5),
    why=st.text(max_size=5),
)
STANDINGS = st.builds(LaggingTable, TABLE_NAMES, positions(), ASIDES)
MOVES = st.builds(Move, TIMES, st.text(max_size=5), st.none() | positions(), positions(), st.text(), st.text())
CHECKPOINTS = st.builds(
    BinlogCheckpoint, IDENTITIES, positions(), MAYBE_TIME, st.text(max_size=5), st.booleans(), MAYBE_TIME
)
SWITCHES = st.builds(
    EpochChange, COUNTS, st.sampled_from(["failover", "rewind"]), TIMES, st.text(), st.text(), CHECKPOINTS, CHECKPOINTS
)
CURSORS = st.builds(
    Cursor,
    source=SOURCES,
    consumer=SOURCES,
    generation=COUNTS,
    epoch=COUNTS,
    identity=IDENTITIES,
    position=positions(),
    gtid_set=st.text(),
    event_time=MAYBE_TIME,
    in_flight=tuples(windows()),
    snapshots=tuples(TASKS),
    in_flight_snapshots=tuples(TASKS),
    moves=tuples(MOVES),
    prepared=tuples(OPEN_TRANSACTIONS),
    quarantine=tuples(ASIDES),
    writer=st.text(),
    lease=st.none() | st.builds(Lease, st.text(max_size=5), st.text(max_size=5), TIMES),
    interest=st.none() | st.builds(Interest, *[tuples(st.text(max_size=5))] * 3),
    gtids_known=st.booleans(),
    file_times=st.dictionaries(st.text(max_size=5), TIMES, max_size=2),
    epoch_changes=tuples(SWITCHES),
)
SCHEMAS = st.builds(
    TableSchema,
    st.text(max_size=5),
    st.text(max_size=5),
    tuples(st.builds(Column, st.text(max_size=5), st.from_type(SourceType), st.booleans())),
    tuples(st.text(max_size=5)),
)
DATA_FILES = st.builds(DataFile, st.text(), TABLE_NAMES, st.text(), COUNTS, COUNTS, st.text())
CHUNKS = st.builds(SnapshotChunk, st.text(), TABLE_NAMES, COUNTS, positions(), KEY_TEXTS, KEY_TEXTS, st.booleans())
MANIFESTS = st.builds(
    Manifest,
    source=SOURCES,
    epoch=COUNTS,
    identity=IDENTITIES,
    window=st.none() | windows(),
    chunk=st.none() | CHUNKS,
    gtid_first=st.text(max_size=5),
    gtid_last=st.text(max_size=5),
    first_time=MAYBE_TIME,
    last_time=MAYBE_TIME,
    transactions=COUNTS,
    events=COUNTS,
    files=tuples(DATA_FILES),
    schemas=st.dictionaries(st.text(max_size=5), SCHEMAS, max_size=2),
    ddl=tuples(st.builds(Ddl, positions(), st.text(), st.text())),
    prepared=tuples(PREPARED),
    xa_decisions=tuples(DECISIONS),
    prepared_files=tuples(DATA_FILES),
    quarantined=tuples(SET_ASIDE),
    gtid_set=st.text(max_size=5),
)
PLANS = st.builds(
    MergePlan,
    SOURCES,
    COUNTS,
    st.text(),
    positions(),
    positions(),
    tuples(st.text()),
    tuples(OPEN_TRANSACTIONS),
    tuples(ASIDES),
    tuples(STANDINGS),
)
TABLE_CUTS = st.builds(TableCut, TABLE_NAMES, st.text(), INT64, COUNTS, st.none() | positions())
CUTS = st.builds(Cut, SOURCES, st.text(), COUNTS, positions(), MAYBE_TIME, TIMES, tuples(TABLE_CUTS))
DAYS = st.dates()
ANNOUNCED_DAYS = st.builds(
    AnnouncedDays,
    SOURCES,
    DAYS,
    st.none() | st.builds(Announcement, tuples(DAYS), st.text(), st.text(), st.text()),
)
DOCUMENTS = st.one_of(CURSORS, MANIFESTS, PLANS, CUTS, windows(), TASKS, ANNOUNCED_DAYS)
