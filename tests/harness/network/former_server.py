"""A cursor of a server that is lost, with transactions that the source's real server never had."""

from __future__ import annotations

from dataclasses import replace

from cdc_lib.config import credentials_from_environment
from cdc_lib.model.cursor import DRAIN, Cursor
from cdc_lib.pipeline import Pipeline
from tests.harness.airflow.source import AirflowSource

FORMER = "11111111-71ca-11e1-9e33-c80aa9429562"
LOST = f"{FORMER}:1-3"


def read_from_a_former_server(source: AirflowSource) -> Cursor:
    """Give the source a drain cursor of a server that is lost, with transactions that its real server never had."""
    pipeline = Pipeline.open(source.config, credentials_from_environment(source.config.server))
    pipeline.plan(by="a test")
    cursor = source.cursor(DRAIN)
    assert cursor is not None
    former = replace(cursor.identity, server_uuid=FORMER, host="former.example.com")
    known = replace(cursor, identity=former, gtid_set=f"{cursor.gtid_set},{LOST}", gtids_known=True, in_flight=())
    return pipeline.cursors.swap(cursor, known)
