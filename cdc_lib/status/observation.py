"""What a server says, kept for those who look at the store alone."""

from __future__ import annotations

from datetime import datetime, timedelta

from cdc_lib.model.binlog_checkpoint import BinlogCheckpoint
from cdc_lib.model.observation import ServerObservation
from cdc_lib.model.position import file_number
from cdc_lib.model.retention_forecast import RetentionForecast
from cdc_lib.mysql.server_facts import ServerFacts


def observation_of(
    source: str,
    facts: ServerFacts,
    needed: BinlogCheckpoint | None,
    forecast: RetentionForecast | None,
    at: datetime,
) -> ServerObservation | None:
    """Return what is to be kept of a server's answers; None for a server without a binlog.

    Args:
        source: name of the source.
        facts: of the server.
        needed: from where on the lake needs the binlog; earlier files are left out. None before the first plan.
        forecast: of the drain cursor; None when there is none.
        at: when the server was asked (UTC).
    """
    if facts.binlog_end is None:
        return None
    first = 0
    if needed is not None and facts.identity.is_same_server(needed.identity):
        first = needed.position.file_number
    left = None if forecast is None else 0.0 if forecast.purged else forecast.shortest
    return ServerObservation(
        source=source,
        at=at,
        identity=facts.identity,
        binlog_end=facts.binlog_end,
        files=tuple(file for file in facts.files if file_number(file[0]) >= first),
        purges_at=None if left is None else at + timedelta(seconds=left),
        drain_rate=forecast.bytes_per_second if forecast is not None else None,
    )
