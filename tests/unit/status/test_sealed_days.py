"""Up to which time the lake has every commit, and which days are complete."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from cdc_lib.config import Credentials, load_source
from cdc_lib.errors import ConfigError
from cdc_lib.model.commit import Commit
from cdc_lib.model.complete import Complete
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor
from cdc_lib.model.merge_plan import Cut
from cdc_lib.model.position import Position
from cdc_lib.model.quarantine import Fault, QuarantineRecord
from cdc_lib.model.row_selection import RowSelection
from cdc_lib.model.sealed_days import AnnouncedDays, Announcement
from cdc_lib.model.server_identity import ServerIdentity
from cdc_lib.model.table_name import TableName
from cdc_lib.model.window import SnapshotTask
from cdc_lib.source import Source
from cdc_lib.status.day_progress import DayProgress, merged_to
from cdc_lib.status.sealed_days import day_ended, sealed_days_of
from cdc_lib.store.announced_days import announced_days, note_announced, note_announcement
from cdc_lib.store.complete import note_complete
from cdc_lib.store.cuts import publish
from cdc_lib.store.objects.local import LocalStore
from tests.harness.store.memory_cursors import MemoryCursorStore

FILE = """
server: {host: db.example, user: cdc, password_env: P}
tables: ["shop.*"]
store: {url: "file:///tmp/store"}
lake: {type: jdbc, uri: "jdbc:sqlite:/tmp/cat.db", warehouse: "file:///tmp/lake"}
"""
MIDNIGHT = datetime(2026, 11, 21, tzinfo=UTC)
AT = Position("binlog.000007", 400)
SERVER = ServerIdentity("mysql", "6f1c", 1, 0, "db.example", 3306)


def after(seconds: float) -> datetime:
    """Return a time after (or before) midnight."""
    return MIDNIGHT + timedelta(seconds=seconds)


def cursor(consumer: str, seconds: float | None, **changed) -> Cursor:
    """Return a cursor whose last commit was some seconds after midnight."""
    time = after(seconds) if seconds is not None else None
    return replace(Cursor("shop", consumer, 1, 1, SERVER, AT, event_time=time), **changed)


def cut(seconds: float) -> Cut:
    """Return a cut that was published some seconds after midnight."""
    return Cut("shop", "m1", 1, AT, None, after(seconds), ())


def reached(last_commit: float | None, complete: Complete | None = None, *, at: float = 900, **drain) -> float | None:
    """Return the seconds after midnight up to which a lake has every commit."""
    lake = cursor(LAKE, last_commit)
    found = merged_to(DayProgress(cut(at), cursor(DRAIN, last_commit, **drain), lake, complete))
    return None if found is None else (found - MIDNIGHT).total_seconds()


def test_the_last_merged_commit_says_how_far_the_lake_is():
    """Commits come in their order: what is not merged is later."""
    assert reached(-5) == -5
    assert reached(61) == 61


def test_a_source_without_commits_is_as_far_as_its_server_was_asked():
    """By the slower of both clocks: a server whose clock is slow still writes commits of yesterday."""
    assert reached(-3600, Complete("shop", after(30), after(28))) == 28
    assert reached(-3600, Complete("shop", after(30), after(-240))) == -240
    assert reached(-3600, Complete("shop", after(30), after(500))) == 30
    assert reached(-3600, Complete("shop", after(30))) == -3600
    assert reached(None, Complete("shop", after(30), after(28))) == 28


def test_a_commit_time_of_the_future_seals_no_day():
    """A session may set its timestamp, and a clock may have been wrong for a moment."""
    assert reached(10**9, at=-50) == -50
    lake = cursor(LAKE, 10**9, last=Commit(1, after(-600)))
    assert merged_to(DayProgress(cut(900), cursor(DRAIN, 0), lake, None)) == after(-600)


def test_without_a_cut_nothing_is_known():
    """An empty lake has no day."""
    complete = Complete("shop", after(30), after(28))
    assert merged_to(DayProgress(None, cursor(DRAIN, 5), cursor(LAKE, 5), complete)) is None
    assert merged_to(DayProgress(cut(900), None, None, complete)) is None


def test_a_table_whose_rows_are_still_read_holds_the_days_back():
    """Its rows are not in the lake, regardless of what was merged. Rows that are read again of a part of a table are."""
    task = SnapshotTask("shop", 1, "s1", "shop", "orders", chunks=2)
    assert reached(61, snapshots=(task,)) is None
    assert reached(61, snapshots=(replace(task, complete=True),)) is None  # read, and not merged
    part = replace(task, selection=RowSelection(("id",), where="id < 5"))
    assert reached(61, snapshots=(part,)) == 61
    wanted = QuarantineRecord(TableName("shop", "orders"), 1, AT, AT, AT, None, None, MIDNIGHT)
    assert reached(61, quarantine=(wanted,)) is None


def test_a_quarantined_table_holds_no_day_back():
    """The others go on without it; nobody knows until when."""
    fault = Fault(AT, "unknown_event", "a statement whose effect is not shown")
    record = QuarantineRecord(TableName("shop", "orders"), 1, AT, AT, AT, fault, None, MIDNIGHT)
    assert reached(61, quarantine=(record,)) == 61


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    """An empty store."""
    return LocalStore(tmp_path / "store")


def loaded(folder: Path, more: str = ""):
    """Return the source with some more lines in its file."""
    (folder / "shop.yaml").write_text(FILE + more)
    return load_source(folder / "shop.yaml")


def source_at(store: LocalStore, seconds: float) -> MemoryCursorStore:
    """Return the cursors of a source whose lake has everything up to some seconds after midnight (UTC)."""
    cursors = MemoryCursorStore()
    for consumer in (DRAIN, LAKE):
        cursors.swap(None, replace(cursor(consumer, seconds), generation=0))
    publish(store, cut(seconds + 60))
    return cursors


@pytest.mark.parametrize(
    ("more", "seconds", "sealed"),
    [
        ("", 59, 19),
        ("", 60, 20),
        ("sealed_days: {delay: 0s}\n", 0, 20),
        ("sealed_days: {delay: 0s}\n", -0.000001, 19),
        ("sealed_days: {delay: 2h}\n", 7199, 19),
        ("sealed_days: {time_zone: Europe/Berlin, delay: 0s}\n", -3600, 20),
        ("sealed_days: {time_zone: Europe/Berlin, delay: 0s}\n", -3601, 19),
        ("sealed_days: {time_zone: America/New_York}\n", 3600, 19),
    ],
)
def test_a_day_is_complete_when_the_lake_has_passed_its_midnight_and_the_delay(
    store: LocalStore, tmp_path: Path, more: str, seconds: float, sealed: int
):
    """The midnight of the zone that the source file names."""
    source = Source(loaded(tmp_path, more), Credentials("", ""), store, source_at(store, seconds))
    assert sealed_days_of(source).sealed == date(2026, 11, sealed)


def test_days_wait_from_the_first_look_on(store: LocalStore, tmp_path: Path):
    """What ended before is not announced; after a pause, several days are."""
    source = Source(loaded(tmp_path), Credentials("", ""), store, source_at(store, 3600))
    first = sealed_days_of(source)
    assert (first.waiting, first.needs_a_look) == ((), True)
    note_announced(store, "shop", date(2026, 11, 20))
    second = sealed_days_of(source)
    assert (second.waiting, second.needs_a_look) == ((), False)
    later = after(3 * 86400)
    note_complete(store, "shop", later, later)
    third = sealed_days_of(source)
    assert third.waiting == (date(2026, 11, 21), date(2026, 11, 22))
    assert third.needs_a_look


def test_what_is_noted_never_goes_back(store: LocalStore):
    """A slow task that notes an earlier day gets the later one."""
    for day, noted in ((20, 20), (22, 22), (21, 22)):
        assert note_announced(store, "shop", date(2026, 11, day)).through == date(2026, 11, noted)
    begun = Announcement((date(2026, 11, 23),), "cdc_shop", "r1", "seal_days")
    note_announcement(store, "shop", begun)
    note_announced(store, "shop", date(2026, 11, 21))
    assert announced_days(store, "shop") == AnnouncedDays("shop", date(2026, 11, 22), begun)


def test_a_watched_source_needs_a_run_when_a_day_has_ended(store: LocalStore, tmp_path: Path):
    """Once somebody looked at its days: a DAG without the task is not run for them."""
    config = loaded(tmp_path, "sealed_days: {delay: 10s}\n")
    assert not day_ended(Source.over(config, store), after(3600))
    note_announced(store, "shop", date(2026, 11, 19))
    assert not day_ended(Source.over(config, store), after(9))
    assert day_ended(Source.over(config, store), after(10))


@pytest.mark.parametrize("name", ["Europe/Nowhere", "", "../etc/passwd", "/etc/localtime", "Europe"])
def test_a_time_zone_that_is_none_is_refused(tmp_path: Path, name: str):
    """When the file is read, and not at midnight."""
    with pytest.raises(ConfigError, match=r"sealed_days\.time_zone.*no time zone"):
        loaded(tmp_path, f'sealed_days: {{time_zone: "{name}"}}\n')
