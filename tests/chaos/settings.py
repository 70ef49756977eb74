"""The source file of a run: small chunks, ranges and windows, so that there are many of each."""

from __future__ import annotations

import os
from pathlib import Path

from cdc_lib.config import SourceConfig
from tests.chaos import people, shapes
from tests.chaos.scenarios import Scenarios
from tests.chaos.shapes import POLICIES
from tests.chaos.site import Site
from tests.harness.servers import S3Server

MODES = {**shapes.MODES, **people.MODES}
"""By table, how the lake keeps its rows, where it is not the default."""

ACCESS, SECRET = "CDC_CHAOS_ACCESS_KEY", "CDC_CHAOS_SECRET_KEY"


def chaos_config(
    site: Site, database: str, folder: Path, scenarios: Scenarios, s3: S3Server | None = None
) -> SourceConfig:
    """Return a source of one database, with its batches in a folder or on S3, and its lake in a folder."""
    store: dict[str, str] = {"url": f"file://{folder}/store"}
    if s3 is not None:
        os.environ[ACCESS], os.environ[SECRET] = s3.access_key, s3.secret_key
        url = f"s3://{s3.make_bucket('chaos')}/store"
        keys = {"access_key_env": ACCESS, "secret_key_env": SECRET, "region": s3.region}
        store = {"url": url, "endpoint_url": s3.endpoint, **keys}
    lake = folder / "lake"
    lake.mkdir(parents=True)
    plain = {
        "source": "chaos",
        "server": {
            "host": "127.0.0.1",
            "port": site.wire.own_port,
            "user": site.primary.cdc_user,
            "password_env": "NOT_USED",
        },
        "tables": {"include": [f"{database}.*"]},
        "store": store,
        "lake": {
            "type": "jdbc",
            "uri": f"jdbc:sqlite:{lake}/catalog.db?busy_timeout=30000",
            "warehouse": f"file://{lake}/warehouse",
        },
        "snapshot": {"chunk_rows": 70, "range_bytes": 1, "max_ranges": 3},
        "drain": {"row_group_rows": 64, "max_window_bytes": 4096, "max_windows": 4},
        "merge": {"driver_memory": "1g"},
        "modes": [{"tables": f"{database}.{table}", "mode": mode} for table, mode in MODES.items()],
        "schema_changes": {"tables": [{"tables": f"{database}.{table}", **rule} for table, rule in POLICIES.items()]},
        "on_error": "quarantine" if scenarios.quarantine else "stop",
        "failover": {"fallback_interval": "1s"},
        "reselect": {"mode": "auto" if scenarios.reselects else "never", "when_lag_exceeds": "2s"},
        "maintenance": {"keep_snapshots_for": "1s", "min_small_files": 2},
        "verify": {"wait": "0s"},
    }
    return SourceConfig.model_validate(plain)
