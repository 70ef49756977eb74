"""Runs of a source start when its binlog has grown: the triggerer looks at the end of the binlog.

Triggers of sources on the same servers share one look.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset, AssetWatcher
from airflow.triggers.base import BaseEventTrigger, TriggerEvent
from asgiref.sync import sync_to_async

from cdc_airflow.airflow_versions import AirflowException
from cdc_airflow.connections import credentials_of
from cdc_airflow.hooks import CdcHook
from cdc_lib.config import SourceConfig
from cdc_lib.config.server import ServerConfig
from cdc_lib.errors import CdcError

if TYPE_CHECKING:
    from cdc_lib.status.run_requests import Address, BinlogEnd, SourceProgress


def binlog_asset(config: SourceConfig, source_file: str, interval: float) -> Asset:
    """Return the asset that starts the runs of a source: the binlog of its server.

    Args:
        config: the source's file.
        source_file: its path.
        interval: seconds between two looks.
    """
    servers = {"server": config.server.model_dump(mode="json"), "addresses": config.addresses}
    trigger = BinlogTrigger(source_file, json.dumps(servers, sort_keys=True), interval)
    return Asset(
        name=f"binlog of {config.source}",
        uri=f"cdc-binlog://{config.source}",
        watchers=[AssetWatcher(name=f"cdc_{config.source}", trigger=trigger)],
    )


class BinlogTrigger(BaseEventTrigger):
    """Fires when a source needs a run.

    Args:
        source_file: the source's YAML file; it is read again at each look that may find something.
        servers: JSON with the server of the source file and all addresses; no secrets.
        interval: seconds between two looks.
    """

    def __init__(self, source_file: str, servers: str, interval: float, **kwargs: Any) -> None:
        super().__init__(**kwargs)  # type: ignore[no-untyped-call]
        self.source_file = source_file
        self.servers = servers
        self.interval = interval

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class and its arguments."""
        own = {"source_file": self.source_file, "servers": self.servers, "interval": self.interval}
        return "cdc_airflow.triggers.BinlogTrigger", own

    def shared_stream_key(self) -> tuple[str, str, float]:
        """Return what sources have in common that share a look."""
        return ("binlog ends", self.servers, self.interval)

    @classmethod
    async def open_shared_stream(cls, kwargs: dict[str, Any]) -> AsyncIterator[Mapping[Address, BinlogEnd]]:
        """Look at the end of each server's binlog, again and again."""
        look = sync_to_async(_ends, thread_sensitive=False)
        while True:
            yield await look(kwargs["servers"])
            await asyncio.sleep(kwargs["interval"])

    async def filter_shared_stream(self, shared_stream: AsyncIterator[Any]) -> AsyncIterator[TriggerEvent]:
        """Yield an event for each look after which this source needs a run."""
        needs = sync_to_async(_Needs(self.source_file), thread_sensitive=False)
        async for ends in shared_stream:
            why = await needs(ends)
            if why is not None:
                yield TriggerEvent({"why": why})  # type: ignore[no-untyped-call]

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Do the same without sharing."""
        async for event in self.filter_shared_stream(self.open_shared_stream(self.serialize()[1])):
            yield event


class _Needs:
    """Says of one source, in a thread, why it needs a run."""

    def __init__(self, source_file: str) -> None:
        self._source_file = source_file
        self._requests: Any = None

    def __call__(self, ends: Mapping[Address, BinlogEnd]) -> str | None:
        # These imports take a second of CPU: in this thread, never in the loop that all triggers share.
        from cdc_lib.status.run_requests import RunRequests

        self._requests = self._requests or RunRequests()
        why: str | None = self._requests.reason(ends, lambda: _progress(self._source_file), time.monotonic())
        return why


def _progress(source_file: str) -> SourceProgress:
    from cdc_lib.model.cursor import DRAIN, LAKE
    from cdc_lib.status.run_requests import SourceProgress
    from cdc_lib.status.sealed_days import day_ended

    try:
        pipeline = CdcHook(source_file).lake_pipeline()
        drain, lake = (pipeline.cursor(consumer) for consumer in (DRAIN, LAKE))
        ended = day_ended(pipeline, datetime.now(UTC))
        server = pipeline.at_cursor(drain).config.server
        return SourceProgress.of((server.host, server.port), drain, lake, day_ended=ended)
    except (CdcError, AirflowException) as error:
        # The run that is requested fails with the same error, where people look for it.
        return SourceProgress(("", 0), error=str(error))


def _ends(servers: str) -> dict[Address, BinlogEnd]:
    from cdc_lib.mysql.server_facts import binlog_end_of
    from cdc_lib.status.run_requests import BinlogEnd

    described = json.loads(servers)
    server = ServerConfig.model_validate(described["server"])
    ends: dict[Address, BinlogEnd] = {}
    for host, port in described["addresses"]:
        here = server.model_copy(update={"host": host, "port": port})
        try:
            ends[host, port] = BinlogEnd(binlog_end_of(here, credentials_of(here)))
        except (CdcError, AirflowException) as error:
            ends[host, port] = BinlogEnd(None, str(error))
    return ends
