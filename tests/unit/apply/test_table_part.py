"""What a part of the changes makes of the rows in data files: which are replaced, and what is refused."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import pyarrow as pa
import pytest

from cdc_lib.apply.data_files import lake_fields, write_rows
from cdc_lib.apply.stored_files import OpenFiles, StoredFile
from cdc_lib.apply.table_part import TablePart
from cdc_lib.errors import MergeError
from cdc_lib.model.lake_table import LakeColumn, LakeTable, Marker
from cdc_lib.model.manifest import ABSENT

TYPES = {
    "id": "long",
    "part": "long",
    "v": "string",
    "_epoch": "int",
    "_binlog": "int",
    "_offset": "long",
    "_row": "long",
}
TYPES |= {"_ts": "timestamptz"}
SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": number, "name": name, "required": False, "type": kind}
        for number, (name, kind) in enumerate(TYPES.items(), 1)
    ],
}
FIELDS = lake_fields(SCHEMA["fields"])
LAKE = LakeTable(tuple(LakeColumn(name, kind) for name, kind in TYPES.items()), ("id",), "mirror", Marker(), 1, None)


class InMemory:
    """Files by location."""

    def __init__(self):
        self.files = {}

    def opened(self, location, _):
        return pa.BufferReader(self.files[location])

    def at_once(self, _):
        return 1


def row(key, offset, v="old", **more):
    return {"id": key, "v": v, "_epoch": 1, "_binlog": 1, "_offset": offset, "_row": 0, **more}


@pytest.fixture
def store():
    return InMemory()


def stored(store, rows, fields=FIELDS):
    """Write a data file with these columns alone."""
    data = io.BytesIO()
    write_rows([pa.Table.from_pylist(rows, pa.schema(fields))], data, json.dumps(SCHEMA), {}, "lake.shop.orders")
    location = f"file-{len(store.files)}"
    store.files[location] = data.getvalue()
    return StoredFile(location, data.tell(), len(rows), ())


def result(store, files, changes, **more):
    schema = pa.schema([pa.field("_op", pa.string()), *FIELDS, pa.field(ABSENT, pa.string())])
    part = replace(TablePart(LAKE, "shop.orders", OpenFiles(store, FIELDS)), **more)
    return part.result(pa.Table.from_pylist(changes, schema), lambda _: files)


def positions(found):
    return {one.file.location: one.positions.tolist() for one in found.touched}


def test_rows_that_another_key_told_apart_are_replaced_together(store):
    """After a change of the key; without one, two rows of a key are a fault."""
    file = stored(store, [row(1, 10), row(2, 11), row(1, 12)])
    change = [{"_op": "u", **row(1, 50, "new")}]
    found = result(store, [file], change, rekeyed=True)
    assert (positions(found), found.rows.column("v").to_pylist()) == ({"file-0": [0, 2]}, ["new"])
    with pytest.raises(MergeError, match="2 rows of 1 changed key"):
        result(store, [file], change)


@pytest.mark.parametrize("rekeyed", [True, False])
def test_newer_rows_of_a_key_stay_however_many_they_are(store, rekeyed):
    """They are counted as found."""
    files = [stored(store, [row(1, 90), row(2, 11)]), stored(store, [row(1, 95), row(1, 20)])]
    found = result(store, files, [{"_op": "u", **row(1, 50, "new")}], guard=True, rekeyed=rekeyed)
    assert (positions(found), found.rows.num_rows) == ({"file-0": [], "file-1": [1]}, 0)


def test_files_from_before_a_column_of_the_key_have_no_row_of_it(store):
    """The column was added with the key, and is null there."""
    file = stored(store, [row(1, 10)], [one for one in FIELDS if one.name != "part"])
    lake = replace(LAKE, primary_key=("id", "part"))
    found = result(store, [file], [{"_op": "c", **row(1, 50, "new", part=1)}], lake=lake, rekeyed=True)
    assert (positions(found), found.rows.num_rows) == ({}, 1)


@pytest.mark.parametrize("mode", ["mirror", "soft_delete"])
def test_a_change_without_a_key_is_refused(store, mode):
    with pytest.raises(MergeError, match="no value of column id, which is in the key"):
        result(store, [], [{"_op": "c", **row(None, 50)}], lake=replace(LAKE, mode=mode))
