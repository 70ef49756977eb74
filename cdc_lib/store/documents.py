"""Serializes the model as readable JSON, and parses it, without loss.

Every document begins with its ``format_version`` and its ``kind``. A document with unknown fields is refused, with their names:
an ignored field could be the one that prevents a conflict of two tasks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json, to_json

from cdc_lib.errors import ConfigError, CorruptBatch
from cdc_lib.model.backfill import BackfillReport
from cdc_lib.model.batch_check import DailyChecks
from cdc_lib.model.changed_rows import AfterMerge
from cdc_lib.model.complete import Complete
from cdc_lib.model.coverage import Coverage
from cdc_lib.model.cursor import Cursor
from cdc_lib.model.erasure import TableErasures
from cdc_lib.model.failed_table import Stopped
from cdc_lib.model.foreign import ForeignCommits
from cdc_lib.model.manifest import Manifest
from cdc_lib.model.merge_plan import Cut, MergePlan
from cdc_lib.model.observation import DrainObservation, ServerObservation, TablesObservation, TaskRetries
from cdc_lib.model.raw_event import RawFacts
from cdc_lib.model.schema_question import SchemaAnswer
from cdc_lib.model.schema_version import SchemaVersion
from cdc_lib.model.sealed_days import AnnouncedDays
from cdc_lib.model.spark_application import SparkApplication
from cdc_lib.model.verify import Report, Verified
from cdc_lib.model.window import DrainUnit, SnapshotTask, Window
from cdc_lib.ports import ObjectStore

FORMAT_VERSION = 1
"""Incremented when older versions of this library can no longer read the documents correctly."""

Document = (
    Cursor
    | Manifest
    | MergePlan
    | Cut
    | Window
    | SnapshotTask
    | SchemaVersion
    | Verified
    | Report
    | RawFacts
    | Stopped
    | ForeignCommits
    | Complete
    | ServerObservation
    | DrainObservation
    | TablesObservation
    | TaskRetries
    | AnnouncedDays
    | SchemaAnswer
    | AfterMerge
    | BackfillReport
    | SparkApplication
    | Coverage
    | DailyChecks
    | TableErasures
)
"""Kinds of documents."""

T = TypeVar("T", bound=Document)

_KINDS: dict[type[Any], str] = {
    Cursor: "cursor",
    Manifest: "manifest",
    MergePlan: "merge_plan",
    Cut: "cut",
    Window: "window",
    SnapshotTask: "snapshot_task",
    SchemaVersion: "schema_version",
    Verified: "verified",
    Report: "verify_report",
    RawFacts: "raw_facts",
    Stopped: "stopped",
    ForeignCommits: "foreign_commits",
    Complete: "complete",
    ServerObservation: "server_observation",
    DrainObservation: "drain_observation",
    TablesObservation: "tables_observation",
    TaskRetries: "task_retries",
    AnnouncedDays: "announced_days",
    SchemaAnswer: "schema_answer",
    AfterMerge: "after_merge",
    BackfillReport: "backfill_report",
    SparkApplication: "spark_application",
    Coverage: "coverage",
    DailyChecks: "daily_checks",
    TableErasures: "erasures",
}
_ADAPTERS: dict[type[Any], TypeAdapter[Any]] = {}


def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    return _ADAPTERS[kind]


def prepare() -> None:
    """Make what reads and writes every kind of document now, for processes that are forked later; else each kind is made when it is used."""
    for kind in _KINDS:
        _adapter(kind)


def dump(model: Document) -> bytes:
    """Return a document as indented JSON in UTF-8; the same model gives the same bytes."""
    return to_json(to_plain(model), indent=2) + b"\n"


def load(kind: type[T], data: bytes, where: str) -> T:
    """Read a document.

    Args:
        kind: the expected class, for example ``Cursor``.
        data: bytes of :func:`dump`.
        where: key or URL of the object, for messages.

    Raises:
        CorruptBatch: it has another kind or format, is truncated, or has unknown fields.
    """
    try:
        plain = from_json(data)
    except ValueError as error:
        raise _corrupt(kind, where, f"it is not JSON: {error}") from error
    return _from_plain(kind, plain, where)


def find(kind: type[T], store: ObjectStore, key: str) -> T | None:
    """Read the document under a key; None if it does not exist.

    Raises:
        CorruptBatch: as in :func:`load`.
    """
    stored = store.get(key)
    return None if stored is None else load(kind, stored.data, key)


def below(kind: type[T], store: ObjectStore, prefix: str) -> list[T]:
    """Read all documents of a kind below a prefix, by key; one that is removed meanwhile is left out.

    Raises:
        CorruptBatch: as in :func:`load`.
    """
    keys = [info.key for info in store.list(prefix) if info.key.endswith(".json")]
    return [found for key in keys if (found := find(kind, store, key)) is not None]


def changed(kind: type[T], store: ObjectStore, key: str, change: Callable[[T | None], T], tries: int = 1) -> T | None:
    """Replace the document under a key by what a change makes of it, unless other tasks write it meanwhile.

    Args:
        kind: its class.
        store: holds it.
        key: of the document.
        change: returns the new document; gets None if there is none. If the new one equals the old one, nothing is written.
        tries: it is read again, and changed again, after each try in which another task was faster.

    Returns:
        The new document; None if another task was faster in every try.

    Raises:
        CorruptBatch: as in :func:`load`.
    """
    for _ in range(tries):
        stored = store.get(key)
        old = load(kind, stored.data, key) if stored is not None else None
        new = change(old)
        if new == old:
            return new
        data = dump(new)
        if store.put_if_absent(key, data) if stored is None else store.put_if_match(key, data, stored.etag):
            return new
    return None


def to_plain(model: Document) -> dict[str, Any]:
    """Return a document as dicts, lists, texts and numbers, for XCom or JSON."""
    fields = _adapter(type(model)).dump_python(model, mode="json")
    return {"format_version": FORMAT_VERSION, "kind": _KINDS[type(model)], **fields}


def unit_from_plain(plain: dict[str, Any]) -> DrainUnit:
    """Return the window or snapshot task from the result of :func:`to_plain`.

    Raises:
        CorruptBatch: it is neither.
    """
    if plain.get("kind") == _KINDS[SnapshotTask]:
        return _from_plain(SnapshotTask, plain, "a drain task's argument")
    return _from_plain(Window, plain, "a drain task's argument")


def _from_plain(kind: type[T], plain: object, where: str) -> T:
    if not isinstance(plain, dict):
        raise _corrupt(kind, where, "it is not a JSON object")
    fields = dict(plain)
    version, name = fields.pop("format_version", None), fields.pop("kind", None)
    if version != FORMAT_VERSION:
        raise CorruptBatch(
            f"{where} has format_version {version}, and this version of the library reads {FORMAT_VERSION}",
            hint="Run the version that wrote it, or a newer one; CHANGELOG.md says which reads which.",
        )
    if name != _KINDS[kind]:
        raise _corrupt(kind, where, f"it is a {name}")
    try:
        # Strict JSON mode: no text is accepted as a number, and dates are parsed from their text.
        model: T = _adapter(kind).validate_json(to_json(fields), strict=True)
    except (ValidationError, ConfigError) as error:
        raise _corrupt(kind, where, _first_fault(error)) from error
    known = _adapter(kind).dump_python(model, mode="json")
    # An equal document has no unknown fields; searching them by name is slower than the rest of this function.
    if fields != known and (unknown := _unknown(fields, known)):
        raise _corrupt(kind, where, f"it has fields that are not known here: {', '.join(unknown)}")
    return model


def _corrupt(kind: type[Any], where: str, fault: str) -> CorruptBatch:
    return CorruptBatch(
        f"{where} is not a {_KINDS[kind]}: {fault}",
        hint="Do not edit it by hand. Restore it from the store's versions or a backup, or run the library's version "
        "that wrote it.",
    )


def _first_fault(error: ValidationError | ConfigError) -> str:
    if isinstance(error, ConfigError):
        return str(error)
    fault = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}"


def _unknown(found: object, known: object, path: str = "") -> list[str]:
    """Return the paths of the fields that the model does not have."""
    if isinstance(found, dict) and isinstance(known, dict):
        inner = (_unknown(v, known[k], f"{path}{k}.") if k in known else [f"{path}{k}"] for k, v in found.items())
    elif isinstance(found, list) and isinstance(known, list):
        inner = (_unknown(f, k, f"{path}{i}.") for i, (f, k) in enumerate(zip(found, known, strict=True)))
    else:
        return []
    return [name for names in inner for name in names]
