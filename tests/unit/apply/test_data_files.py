"""Data files of a lake table: what is read of files that lack a column, have no ids, or are damaged."""

from __future__ import annotations

import io
import json
import random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import TypeAdapter
from pyiceberg.conversions import from_json
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType, NestedField

from cdc_lib.apply.data_files import DamagedFile, columns_of, groups_at, lake_fields, rows_at, write_rows
from cdc_lib.errors import MergeError

_TYPE = TypeAdapter(IcebergType)

DEFAULTS = {
    "boolean": True,
    "int": -5,
    "long": 2**62,
    "float": 1.5,
    "double": 0.1,
    "decimal(9, 2)": "-14.20",
    "decimal(38,10)": "1.0000000001",
    "date": "2017-11-16",
    "time": "22:31:08.123456",
    "timestamp": "1931-07-15T22:31:08.000001",
    "timestamptz": "2017-11-16T22:31:08.123456+00:00",
    "string": "é'",
    "uuid": "f79c3e09-677c-4bbd-a479-3f349cb785e7",
    "fixed[2]": "00ff",
    "binary": "00ff01",
}
"""By Iceberg's name of a type, a value as its JSON has it."""


def column(number, name, kind, *, required=False, **more):
    return {"id": number, "name": name, "type": kind, "required": required, **more}


def written(rows, fields, properties=None):
    """Return an open file, and its bytes."""
    to = io.BytesIO()
    write_rows([pa.Table.from_pylist(rows, pa.schema(fields))], to, "{}", properties or {}, "t")
    return pa.BufferReader(to.getvalue()), to.getvalue()


ID = column(1, "id", "long", required=True)


@pytest.mark.parametrize("required", [False, True])
@pytest.mark.parametrize("kind", DEFAULTS)
def test_a_file_that_lacks_a_column_has_its_default(kind, required):
    """The value that another reader of Iceberg makes of it, in its type."""
    fields = lake_fields([ID, column(2, "v", kind, required=required, **{"initial-default": DEFAULTS[kind]})])
    file, _ = written([{"id": number} for number in range(5)], fields[:1])
    found = rows_at(file, fields, np.array([1, 4]))
    of_type = _TYPE.validate_python(kind)
    wanted = from_json(of_type, DEFAULTS[kind])
    wanted = wanted.bytes if kind == "uuid" else wanted
    assert found.column("v").to_pylist() == [wanted, wanted]
    as_theirs = schema_to_pyarrow(Schema(NestedField(2, "v", of_type, required=False))).field("v").type
    theirs = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary(), pa.uuid(): pa.binary(16)}
    assert found.schema.field("v").type == theirs.get(as_theirs, as_theirs)


def test_a_required_column_without_a_default_is_not_made_up():
    fields = lake_fields([ID, column(2, "v", "int", required=True)])
    file, _ = written([{"id": 1}], fields[:1])
    with pytest.raises(DamagedFile, match="it has no column v"):
        rows_at(file, fields, np.array([0]))


def nested(number):
    return {
        "id": number,
        "s": {"a": number, "b": ["x", None]} if number % 3 else None,
        "v": number * 10,
        "m": [("k", number)] if number % 2 else [],
        "w": number * 100,
    }


NESTED = [
    ID,
    column(
        2,
        "s",
        {
            "type": "struct",
            "fields": [
                column(3, "a", "int"),
                column(4, "b", {"type": "list", "element-id": 5, "element": "string", "element-required": False}),
            ],
        },
    ),
    column(6, "v", "int"),
    column(
        7, "m", {"type": "map", "key-id": 8, "key": "string", "value-id": 9, "value": "int", "value-required": True}
    ),
    column(10, "w", "int"),
]


@pytest.mark.parametrize("chosen", [[0, 2], [4], [1, 4], [3], [0, 1, 2, 3, 4]])
def test_columns_are_found_beside_columns_with_parts(chosen):
    """Parquet counts parts, not columns."""
    fields = lake_fields(NESTED)
    rows = [nested(number) for number in range(100)]
    file, _ = written(rows, fields, {"write.parquet.row-group-size-bytes": "500"})
    assert pq.ParquetFile(file).num_row_groups > 3
    names = [fields[one].name for one in chosen]
    found = columns_of(file, [fields[one] for one in chosen])
    assert found.to_pylist() == [{name: row[name] for name in names} for row in rows]
    groups = [*groups_at(file, [fields[one] for one in chosen], np.arange(1, 100, 2))]
    assert np.concatenate([positions for _, positions in groups]).tolist() == [*range(1, 100, 2)]
    assert [row for part, _ in groups for row in part.to_pylist()] == found.to_pylist()[1::2]


def test_a_type_that_is_not_written_is_named():
    for kind in ("variant", {"type": "list", "element-id": 3, "element": "geometry", "element-required": False}):
        with pytest.raises(MergeError, match=r"has the type (variant|geometry), which a merge does not write"):
            lake_fields([ID, column(2, "v", kind)])


def test_a_file_without_ids_is_read_by_names():
    mapping = json.dumps([{"field-id": 1, "names": ["id", "key"]}, {"field-id": 2, "names": ["v.w"]}])
    fields = lake_fields([ID, column(2, "v", "int"), column(3, "more", "int")], mapping)
    to = io.BytesIO()
    pq.write_table(pa.table({"v.w": pa.array([7], pa.int32()), "key": pa.array([1], pa.int64())}), to)
    found = rows_at(pa.BufferReader(to.getvalue()), fields, np.array([0]))
    assert found.to_pylist() == [{"id": 1, "v": 7, "more": None}]
    with pytest.raises(DamagedFile, match="it has no column id"):
        rows_at(pa.BufferReader(to.getvalue()), lake_fields([ID]), np.array([0]))


@pytest.mark.parametrize("seed", range(20))
def test_damaged_bytes_are_an_error_of_the_file_or_no_error(seed):
    """Never one that looks like a mistake of this program."""
    chance = random.Random(seed)
    fields = lake_fields(NESTED)
    _, data = written([nested(number) for number in range(200)], fields)
    errors = 0
    for _ in range(20):
        damaged = bytearray(data)
        if chance.random() < 0.3:
            del damaged[chance.randrange(len(damaged)) :]
        else:
            start = chance.randrange(len(damaged))
            for at in range(start, min(len(damaged), start + chance.choice([1, 8, 100]))):
                damaged[at] = chance.randrange(256)
        try:
            rows_at(pa.BufferReader(bytes(damaged)), fields, np.arange(0, 200, 7))
        except DamagedFile:
            errors += 1
    assert errors
