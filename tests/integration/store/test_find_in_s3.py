"""The search for a row in a store and a lake in S3."""

from __future__ import annotations

import pytest
from pyiceberg.expressions import EqualTo

from cdc_lib.erase.needles import Needles
from cdc_lib.erase.search import RowSearch
from cdc_lib.model.table_name import TableName
from cdc_lib.source import Source as Opened
from tests.harness.lake.archived_source import PEOPLE, Source, change
from tests.harness.lake.batches import table
from tests.harness.lake.small_lake import row

ANN = 4711


@pytest.fixture
def people(s3_server, tmp_path, monkeypatch):
    """A source whose table has the row of Ann in a window, in an old snapshot, in a lost file and in the write of a killed process."""
    monkeypatch.setenv("FIND_KEY", s3_server.access_key)
    monkeypatch.setenv("FIND_SECRET", s3_server.secret_key)
    bucket = s3_server.make_bucket()
    store = {
        "url": f"s3://{bucket}/cdc", "endpoint_url": s3_server.endpoint, "region": s3_server.region,
        "access_key_env": "FIND_KEY", "secret_key_env": "FIND_SECRET",
    }  # fmt: skip
    lake = {"type": "jdbc", "uri": f"jdbc:sqlite:{tmp_path}/catalog.db", "warehouse": f"s3://{bucket}/lake"}
    source = Source(tmp_path, store=store, lake=lake)
    source.schema = table("shop.people", PEOPLE, key=("id",))
    source.window(change("c", 110, "ann", number=ANN), change("c", 120, "bob"))
    source.merged([row("de", ANN, "ann"), row("de", 1, "bob")], key=("id",))
    client = s3_server.client()
    (first,) = [
        one["Key"] for one in client.list_objects_v2(Bucket=bucket, Prefix="lake/shop/people/data/")["Contents"]
    ]
    source.table.delete(EqualTo("id", ANN))
    for place in ("lake/shop/people/data/lost.parquet", "lake/shop/people@_0123/data/lost.parquet"):
        client.copy_object(Bucket=bucket, Key=place, CopySource={"Bucket": bucket, "Key": first})
    client.create_multipart_upload(Bucket=bucket, Key="cdc/shop/batches/000001/x/shop.people/part-00000.parquet")
    return source


def test_a_row_is_found_in_each_object_and_each_file_of_the_table(people):
    """Also in files that only a listing shows; unfinished writes are named, because nobody can read them."""

    def searched(number):
        needles = Needles(("id",), ((number,),))
        return RowSearch(Opened.over(people.config, people.store), TableName("shop", "people"), needles).run()

    result = searched(ANN)
    found = {one.place for one in result.found}
    for ending in (
        "/people/data/lost.parquet",
        "/people@_0123/data/lost.parquet",
        "/shop.people/part-00000.parquet",
        ".avro",
    ):
        assert any(place.endswith(ending) for place in found), (ending, found)
    assert [one.kind for one in result.unread] == ["unfinished write"]
    nothing = searched(4712)
    assert (nothing.found, nothing.objects) == ([], result.objects)
