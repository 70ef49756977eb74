"""Reads in an event loop return what the reader returns."""

from __future__ import annotations

import asyncio

import pytest
from pyiceberg.types import LongType, StringType

from cdc_lib.errors import ConfigError
from cdc_lib.read.asynchronous import AsyncTableReader
from tests.harness.lake.hand_made_table import HandMadeTable

ROWS = [{"id": n, "state": f"s{n}"} for n in range(50)]


@pytest.fixture
def reader(tmp_path):
    made = HandMadeTable(tmp_path, {"id": LongType(), "state": StringType()}, ("id",))
    made.add(ROWS, 10)
    return made.reader()


def test_coroutines_return_what_the_reader_returns(reader):
    """Gets at the same time too; errors are those of the reader."""

    async def read():
        table = AsyncTableReader(reader)
        assert await asyncio.gather(*(table.get(n) for n in (3, 4, 99))) == [ROWS[3], ROWS[4], None]
        assert await table.exists(5)
        assert (await table.multi_get([7, 1], ["state"])).equals(reader.multi_get([7, 1], ["state"]))
        found = [row async for batch in table.scan(10, 20, reverse=True) for row in batch.to_pylist()]
        assert found == ROWS[10:20][::-1]
        with pytest.raises(ConfigError, match="keeps one version of each row"):
            await table.versions(1)
        await table.refresh()

    asyncio.run(read())
