"""The search for a row finds it in each place where its values may be, and nowhere else."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from pyiceberg.expressions import EqualTo

from cdc_lib.erase.erasing import ErasureResult
from cdc_lib.erase.needles import Needles
from cdc_lib.erase.places import LOST_FILE
from cdc_lib.erase.search import RowSearch
from cdc_lib.model.changed_rows import AfterMerge, ChangedRows, OpenRow, WrongRow
from cdc_lib.model.coverage import Coverage, CoveredRange, FoundWrong
from cdc_lib.model.cursor import DRAIN
from cdc_lib.model.failed_table import Stopped, StoppedTable
from cdc_lib.model.position import Point
from cdc_lib.model.quarantine import Fault, QuarantineRecord
from cdc_lib.model.table_name import TableName
from cdc_lib.model.window import SnapshotTask, TaskRange
from cdc_lib.source import Source as Opened
from cdc_lib.store import documents, layout
from cdc_lib.store.cursors import ObjectCursorStore
from tests.harness.lake.archived_source import PEOPLE, Source, change
from tests.harness.lake.batches import START_TIME, Row, at, table
from tests.harness.lake.small_lake import row

MAIL = "ann.lind@example.org"
ANN = 4711
TABLE = TableName("shop", "people")
LAKE = "lake.shop.people"
WRONG = WrongRow("different", {"id": str(ANN)}, ("name",), "batch", "merge", 1, at(4), START_TIME)
OPEN = OpenRow((str(ANN),), "batch", "merge", Point(1, 1, 4), Point(1, 1, 4), "digest")


class People(Source):
    """A source with a table whose key is one number, a lake table of it, and batches; the row of Ann is in none of them."""

    def __init__(self, folder):
        super().__init__(folder)
        self.folder = folder
        self.schema = table("shop.people", PEOPLE, key=("id",))
        self.other = table("shop.orders", PEOPLE, key=("id",))
        self.window(person(1, "bob"), person(9000, "zoe"))
        self.merged([row("de", 1, "bob"), row("de", 9000, "zoe")], key=("id",))

    def put(self, key, document):
        self.store.put(key, documents.dump(document))

    def in_lake(self, name):
        path = self.folder / "warehouse/shop/people" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def search(self, columns=(), values=(MAIL,), keys=((ANN,),)):
        needles = Needles(("id",), keys, {"": frozenset(values)} if values else {})
        search = RowSearch(Opened.over(self.config, self.store), TABLE, needles)
        if columns:
            search.look_for_values(columns)
        return search.run()


def person(number, name, **more):
    return Row("c", 100 + number % 7, {"country": "de", "id": number, "name": name, "raw": b""}, **more)


def parquet(path: Path, **metadata):
    names = pa.table({"id": pa.array([1, 2]), "name": ["bob", "zoe"]})
    pq.write_table(names.replace_schema_metadata(metadata), path)


def live_row(people):
    people.lake.add(people.table, [row("de", ANN, "x")])
    return ".parquet"


def deleted_row(people):
    people.lake.add(people.table, [row("de", ANN, "x")])
    people.table.refresh().delete(EqualTo("id", ANN))
    return ".parquet"


def row_of_a_branch(people):
    people.table.append(pa.Table.from_pylist([row("de", ANN, "x")], people.table.schema().as_arrow()), branch="audit")
    return ".parquet"


def orphan_file(people):
    pq.write_table(pa.table({"id": [ANN]}), people.in_lake("data/orphan.parquet"))
    return "data/orphan.parquet"


def file_of_a_dropped_table(people):
    live_row(people)
    people.lake.catalog.drop_table(("shop", "people"))
    return ".parquet"


def file_beside_the_folder(people):
    pq.write_table(pa.table({"id": [ANN]}), people.in_lake("../people@_0123abcd/data/a.parquet"))
    return "people@_0123abcd/data/a.parquet"


def value_in_another_row(people):
    people.lake.add(people.table, [row("de", 5, MAIL)])
    return ".parquet"


def bounds_in_a_manifest(people):
    deleted_row(people)
    for file in (people.folder / "warehouse/shop/people/data").glob("*.parquet"):
        file.unlink()
    return "-m0.avro"


def property_of_the_table(people):
    with people.table.transaction() as change_of_table:
        change_of_table.set_properties(comment=f"asked for by {MAIL}")
    return ".metadata.json"


def compressed_metadata(people):
    people.in_lake("metadata/00009-x.gz.metadata.json").write_bytes(gzip.compress(json.dumps({"c": MAIL}).encode()))
    return ".gz.metadata.json"


def name_of_a_file(people):
    people.in_lake(f"data/name={MAIL}/x.txt").write_bytes(b"")
    return "x.txt"


def puffin(people):
    footer = json.dumps({"blobs": [], "properties": {"of": MAIL}}).encode()
    data = b"PFA1" + b"PFA1" + footer + len(footer).to_bytes(4, "little") + bytes(4) + b"PFA1"
    people.in_lake("metadata/x.puffin").write_bytes(data)
    return "x.puffin"


def blob_of_a_puffin_file(people):
    blob = zstandard.compress(b"x" * 99 + MAIL.encode())
    one = {"type": "t", "fields": [1], "snapshot-id": 1, "sequence-number": 1, "offset": 4, "length": len(blob)}
    footer = json.dumps({"blobs": [one | {"compression-codec": "zstd"}]}).encode()
    data = b"PFA1" + blob + b"PFA1" + footer + len(footer).to_bytes(4, "little") + bytes(4) + b"PFA1"
    people.in_lake("metadata/x.stats").write_bytes(data)
    return "x.stats"


def footer_of_a_file(people):
    parquet(people.in_lake("data/footer.parquet"), of=MAIL)
    return "footer.parquet"


def unknown_file(people):
    people.in_lake("data/part.orc").write_bytes(b"\0" * 20_000_000 + MAIL.encode("utf-16-le"))
    return "part.orc"


def batch(people):
    people.window(person(ANN, "x"))
    return "/shop.people/part-00000.parquet"


def batch_before_a_rename(people):
    columns = {"number" if name == "id" else name: of for name, of in PEOPLE.items()}
    people.window(Row("c", 150, {"number": ANN}), schema=table("shop.people", columns, key=("number",)))
    return "/shop.people/part-00000.parquet"


def batch_of_wider_numbers(people):
    wider = {**PEOPLE, "id": replace(PEOPLE["id"], width=8)}
    people.window(person(ANN, "x"), schema=table("shop.people", wider, key=("id",)))
    return "/shop.people/part-00000.parquet"


def prepared_rows(people):
    people.window(prepared={"xid": (110, {people.schema: [person(ANN, "x")]})})
    return "/shop.people/prepared-00000.parquet"


def chunk(people):
    people.batches.chunk(people.schema, 50, [{"country": "de", "id": ANN, "name": "x", "raw": b""}])
    return "/shop.people/000000/part-00000.parquet"


def file_without_a_manifest(people):
    key = layout.beside(layout.reselected_key("shop", TABLE, "token"), "part-00000.parquet")
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": [ANN]}), sink)
    people.store.put(key, sink.getvalue().to_pybytes())
    return key


def bound_of_a_chunk(people):
    people.batches.chunk(people.schema, 50, [], last_key=(str(ANN),))
    return "/shop.people/000000/manifest.json"


def range_of_a_snapshot(people):
    task = SnapshotTask("shop", 1, "s1", "shop", "people", ranges=(TaskRange(None, (str(ANN),)),), range_key=("id",))
    stored = ObjectCursorStore(people.store)
    drain = stored.load("shop", DRAIN)
    stored.swap(drain, replace(drain, snapshots=(task,)))
    return "cursors/drain.json"


def reason_of_a_quarantine(people):
    fault = Fault(at(4), "CDC-001", f"a row of {MAIL} cannot be read")
    record = QuarantineRecord(TABLE, 1, at(4), at(4), at(4), fault, None, START_TIME)
    stored = ObjectCursorStore(people.store)
    drain = stored.load("shop", DRAIN)
    stored.swap(drain, replace(drain, quarantine=(record,)))
    return "cursors/drain.json"


def ends_of_compared_ranges(people):
    ranges = (CoveredRange((str(ANN),), (str(ANN),), 1),)
    people.put(
        layout.coverage_key("shop", TABLE, LAKE),
        Coverage("shop", TABLE, LAKE, START_TIME, START_TIME, ("id",), ranges=ranges),
    )
    return "people.json"


def wrong_row_of_a_range(people):
    wrong = (FoundWrong((str(ANN),), WRONG),)
    people.put(
        layout.coverage_key("shop", TABLE, LAKE),
        Coverage("shop", TABLE, LAKE, START_TIME, START_TIME, ("id",), wrong=wrong),
    )
    return "people.json"


def wrong_row_after_a_merge(people):
    rows = ChangedRows(TABLE, LAKE, "m", 1, at(4), "", START_TIME, differences=(WRONG,))
    people.put(layout.after_merge_key("shop"), AfterMerge("shop", "m", START_TIME, "", (rows,)))
    return "after_merge.json"


def open_row_after_a_merge(people):
    rows = ChangedRows(TABLE, LAKE, "m", 1, at(4), "", START_TIME, open_rows=(OPEN,))
    people.put(layout.after_merge_key("shop"), AfterMerge("shop", "m", START_TIME, "", (rows,)))
    return "after_merge.json"


def message_of_a_merge(people):
    stopped = StoppedTable((TABLE,), LAKE, "CDC-001", f"{MAIL} does not fit", "")
    people.put(layout.stopped_key("shop"), Stopped("shop", "m", START_TIME, (stopped,)))
    return "stopped.json"


def document_of_another_release(people):
    people.store.put("shop/later/x.json", json.dumps({"note": {"by": [f"mail {MAIL.encode().hex()}"]}}).encode())
    return "later/x.json"


def object_of_another_kind(people):
    people.store.put("shop/later/x.bin", MAIL.encode("latin-1"))
    return "later/x.bin"


PLACES = [
    live_row, deleted_row, row_of_a_branch, orphan_file, file_of_a_dropped_table, file_beside_the_folder, value_in_another_row,
    bounds_in_a_manifest, property_of_the_table, compressed_metadata, name_of_a_file, puffin, blob_of_a_puffin_file,
    footer_of_a_file, unknown_file, batch, batch_before_a_rename, batch_of_wider_numbers, prepared_rows, chunk,
    file_without_a_manifest, bound_of_a_chunk, range_of_a_snapshot, reason_of_a_quarantine, ends_of_compared_ranges,
    wrong_row_of_a_range, wrong_row_after_a_merge, open_row_after_a_merge, message_of_a_merge, document_of_another_release,
    object_of_another_kind,
]  # fmt: skip


@pytest.fixture
def people(tmp_path):
    return People(tmp_path)


def test_a_row_that_is_nowhere_is_found_nowhere(people):
    """Also if keys of other tables, and other rows of this one, are the same numbers or lie around it."""
    people.window(person(ANN, MAIL.upper()), schema=people.other)
    people.batches.chunk(people.other, 50, [], last_key=(str(ANN),))
    stored = ObjectCursorStore(people.store)
    drain = stored.load("shop", DRAIN)
    task = SnapshotTask("shop", 1, "s1", "shop", "orders", ranges=(TaskRange(None, (str(ANN),)),), range_key=("id",))
    stored.swap(drain, replace(drain, snapshots=(task,)))
    result = people.search()
    assert (result.found, result.unread) == ([], [])
    assert result.objects > 5


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
def test_each_place_is_found(people, place):
    """The row is put into one place; without the part of the search that reads this place the test fails."""
    ending = place(people)
    found = people.search().found
    assert any(one.place.endswith(ending) for one in found), found


def test_values_of_a_found_row_are_looked_for_everywhere(people):
    """The row is in a batch alone; its mail is in a message, which has no key."""
    people.window(person(ANN, MAIL), change("u", 150, "Ann@Lind", number=ANN))
    message_of_a_merge(people)
    assert not any(one.place.endswith("stopped.json") for one in people.search(values=()).found)
    assert any(one.place.endswith("stopped.json") for one in people.search(["name"], values=()).found)


def test_what_cannot_be_read_is_named(people):
    """A damaged file, events without their manifest, and the write of a killed process: nothing found does not mean nothing there."""
    people.in_lake("data/broken.parquet").write_bytes(b"PAR1" + bytes(20))
    people.store.put("shop/batches/000001/x/raw/events.zst", zstandard.compress(b"events"))
    (people.store.root / "shop/.tmp-x").write_bytes(MAIL.encode())
    result = people.search()
    assert result.found == []
    assert {one.kind for one in result.unread} == {LOST_FILE, "raw events", "unfinished write"}


@pytest.mark.parametrize(
    ("place", "kind", "remedy"),
    [
        (orphan_file, LOST_FILE, "keep_orphans_for"),
        (deleted_row, "lake", "let a run merge"),
        (row_of_a_branch, "lake", "let a run merge"),
    ],
)
def test_what_is_left_says_what_removes_it(people, place, kind, remedy):
    """A merge does not remove the files of a stopped job."""
    place(people)
    left = people.search()
    assert {one.kind for one in left.found} == {kind}
    assert remedy in ErasureResult(left, 0).remedy


def test_compressed_events_are_searched(people):
    """Also in the character set of the source."""
    for charset in ("utf-8", "latin-1", "utf-16-be"):
        people.store.put(
            "shop/batches/000001/x/raw/events.zst", zstandard.compress(bytes(3_000_000) + MAIL.encode(charset))
        )
        assert [one.kind for one in people.search().found] == ["raw events"]


def test_times_of_keys_have_the_forms_of_documents():
    """As chunks of snapshots and comparisons write them."""
    needles = Needles(("at",), ((datetime(2026, 1, 31, 12, tzinfo=UTC),),))
    for text in ("2026-01-31 12:00:00", "2026-01-31 12:00:00.000000", "2026-01-31T12:00:00"):
        assert needles.is_key([text])
    assert not needles.is_key(["2026-01-31 12:00:01"])


def test_a_row_with_parts_of_two_keys_is_not_looked_for():
    needles = Needles(("country", "id"), (("de", 1), ("fr", 2), ("at", 70_000)))
    rows = [pa.array(["de", "de", "fr", "fr", None, "at"]), pa.array([1, 2, 1, 2, 1, 464], pa.int16())]
    assert needles.rows_in(rows).tolist() == [True, False, False, True, False, False]


def test_a_key_that_an_older_type_cannot_hold_hides_no_other():
    """The lake has the wider type, the batch the type of its time."""
    needles = Needles(("price",), ((Decimal("1.50"),), (Decimal("1.25"),)))
    assert needles.rows_in([pa.array([Decimal("1.5"), Decimal("1.2")], pa.decimal128(3, 1))]).tolist() == [True, False]
