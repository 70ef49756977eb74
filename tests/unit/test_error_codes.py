"""An error has one name in documents and JSON, also after its class is renamed."""

from __future__ import annotations

import ast
import json
import pickle
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cdc_lib.errors import (
    CdcError,
    IncompatibleSchema,
    MergeError,
    TableReplaced,
    dump_error,
    error_classes,
    load_error,
)
from cdc_lib.model.failed_table import Stopped, StoppedTable
from cdc_lib.model.position import Position
from cdc_lib.model.quarantine import Fault, is_replaced
from cdc_lib.model.table_name import TableName
from cdc_lib.store import documents

ROOT = Path(__file__).parents[2]

CODES = frozenset(
    [
        "error",
        "config_error",
        "source_error",
        "source_unavailable",
        "tunnel_unavailable",
        "tunnel_refused",
        "position_purged",
        "position_not_found",
        "table_unreadable",
        "binlog_incomplete",
        "unsupported_server",
        "replicated_changes_not_logged",
        "server_changed",
        "date_in_key",
        "decode_error",
        "unknown_event",
        "unknown_schema",
        "unsupported_value",
        "table_replaced",
        "rows_rolled_back",
        "checksum_mismatch",
        "reselect_error",
        "store_error",
        "store_unavailable",
        "wrong_clock",
        "corrupt_batch",
        "batches_missing",
        "batch_mismatch",
        "merge_error",
        "machine_exhausted",
        "lake_refused",
        "lake_table_shared",
        "mask_lost",
        "masked_column_missing",
        "merge_conflict",
        "foreign_change",
        "spark_unavailable",
        "anonymous_not_sent",
        "schema_change_stopped",
        "transactions_missing",
        "schema_change_asked",
        "incompatible_schema",
        "table_redefined",
        "values_not_logged",
        "ack_error",
        "cursor_moved",
        "cursor_missing",
        "consumer_held",
        "batch_not_durable",
        "lake_missing",
    ]
)
"""What stored documents hold. A code may be added; none may be changed or taken away."""

WRITERS = {
    "cdc_lib/doctor/examine.py",
    "cdc_lib/erase/search.py",
    "cdc_lib/config/load.py",
    "cdc_lib/jobs/client.py",
    "cdc_lib/lake/catalog.py",
    "cdc_lib/read/keys.py",
    "cdc_lib/read/parquet.py",
    "spark_jobs/server/jobs.py",
}
"""They put the class of an error that is not of the tree into a message."""

LINES = {
    "cdc_lib/store/objects/cloud.py",
    "spark_jobs/job.py",
    "spark_jobs/merging/run.py",
    "spark_jobs/merging/table_merge.py",
    "spark_jobs/server/__main__.py",
    "plugins/cdc_airflow/errors.py",
    "plugins/cdc_airflow/retry_policy.py",
    "plugins/cdc_airflow/notifications.py",
}
"""They show the class of an error or a store in a log or a message."""


def classes():
    """Every class of the tree, however deep."""
    found = [CdcError]
    for kind in found:
        found += [below for below in kind.__subclasses__() if below.__module__ == "cdc_lib.errors"]
    return found


def test_each_class_has_a_code_of_its_own():
    """An inherited code would name two errors."""
    kinds = classes()
    assert [kind for kind in kinds if "code" not in vars(kind)] == []
    assert {kind.code: kind for kind in kinds} == error_classes()
    assert len(error_classes()) == len(kinds)
    assert [code for code in error_classes() if not re.fullmatch(r"[a-z]+(_[a-z]+)*", code)] == []


def test_codes_stay_as_they_are():
    """Stored documents and programs that read the JSON output know them."""
    assert set(error_classes()) == CODES


@pytest.mark.parametrize("kind", classes())
def test_an_error_crosses_processes_as_its_code(kind):
    """Its class has any name."""
    document = dump_error(kind("what", hint="do", table="shop.orders"))
    assert json.loads(document)["code"] == kind.code
    assert kind.__name__ not in document.decode()
    assert type(load_error(document)) is kind


def test_an_error_of_a_newer_release_keeps_its_code():
    """This release can show it, and no more."""
    document = json.loads(dump_error(MergeError("what", hint="do", table="shop.orders"))) | {"code": "lake_on_fire"}
    error = load_error(json.dumps(document).encode())
    assert type(error) is CdcError
    assert error.context == {"table": "shop.orders", "code": "lake_on_fire"}
    assert str(error) == str(pickle.loads(pickle.dumps(error))) == "what [table=shop.orders, code=lake_on_fire]. do"  # noqa: S301


def test_a_stored_code_of_a_newer_release_is_shown_as_it_is():
    """What a table stopped with is shown, and nothing is decided by it."""
    table = StoppedTable((TableName("shop", "orders"),), "lake.shop.orders", "lake_on_fire", "what", "do")
    stopped = Stopped("shop", "m1", datetime(2026, 11, 1, tzinfo=UTC), (table,))
    assert documents.load(Stopped, documents.dump(stopped), "stopped.json") == stopped
    assert b'"code": "lake_on_fire"' in documents.dump(stopped)


def test_a_table_that_is_released_automatically_is_known_by_its_code():
    """Any other code waits for a person."""
    at = Position("binlog.000001", 4)
    assert is_replaced(Fault(at, TableReplaced.code, "why"))
    assert not is_replaced(Fault(at, IncompatibleSchema.code, "why"))
    assert not is_replaced(Fault(at, "lake_on_fire", "why"))


def named():
    """Every file that takes the name of a value's class."""
    for room in ("cdc_lib", "spark_jobs", "plugins"):
        for path in sorted((ROOT / room).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Attribute) and node.attr in {"__name__", "__qualname__"}:
                    yield str(path.relative_to(ROOT))


def test_no_class_name_is_taken_where_documents_are_written():
    """A class that is renamed would change what is stored."""
    assert set(named()) == WRITERS | LINES
