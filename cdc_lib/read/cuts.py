"""The lake as of one transaction: finds cuts by time, GTID, position or id.

A module of its own: it needs the object store, and reading the lake does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from cdc_lib.errors import ConfigError
from cdc_lib.lake.arrow_types import parse_instant
from cdc_lib.model.gtid import GtidSet
from cdc_lib.model.merge_plan import Cut
from cdc_lib.model.position import Position
from cdc_lib.model.server_identity import Flavor
from cdc_lib.ports import ObjectStore
from cdc_lib.store import documents
from cdc_lib.store.cuts import cut_of, last_cut, last_cut_by, listed_cuts

LATEST = "latest"

_HINT = "cdc lake cuts {source} lists the cuts."
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_MARIADB_GTID = re.compile(r"\d+-\d+-\d+(,\d+-\d+-\d+)*")
_MYSQL_GTID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}:.+")
_POSITION = re.compile(r"(?P<file>\S+\.\d{6,}):(?P<offset>\d+)")


def find_cut(store: ObjectStore, source: str, which: str) -> Cut:
    """Return a cut.

    Args:
        store: of the source.
        source: its name.
        which: ``latest``; the id of a cut; a time in ISO 8601 or a position, ``binlog.000012:345``: the last cut at or before it;
            a GTID or a set of GTIDs: the first cut that has these transactions.

    Raises:
        ConfigError: it is none of these, or no such cut is stored.
    """
    if which == LATEST:
        return latest_cut(store, source)
    if (cut := _by_id(store, source, which)) is not None:
        return cut
    is_date = _DATE.fullmatch(which) is not None  # which looks like a GTID of MariaDB
    if not is_date and (_MARIADB_GTID.fullmatch(which) or _MYSQL_GTID.fullmatch(which)):
        return cut_with_gtids(store, source, which)
    if place := _POSITION.fullmatch(which):
        return cut_at_position(store, source, Position(place["file"], int(place["offset"])))
    try:
        time = parse_instant(which)
    except ValueError as error:
        raise ConfigError(
            f"{source} has no cut {which!r}",
            hint=f"Write latest, a time, a GTID, file:offset or the id of a cut. {_HINT}",
            source=source,
        ) from error
    return cut_as_of(store, source, time)


def latest_cut(store: ObjectStore, source: str) -> Cut:
    """Return the cut at the furthest position.

    Raises:
        ConfigError: no cut is stored.
    """
    if (cut := last_cut(store, source)) is None:
        raise ConfigError(f"{source} has no cut yet", hint="Its first merge publishes one.", source=source)
    return cut


def cut_as_of(store: ObjectStore, source: str, time: datetime) -> Cut:
    """Return the last cut whose last transaction was committed at a time or before it.

    Old cuts are thinned out, and the snapshots that they name expire: see :class:`cdc_lib.config.maintenance.MaintenanceConfig`.

    Args:
        store: of the source.
        source: its name.
        time: with its time zone.

    Raises:
        ConfigError: the time has no time zone, or no cut is stored that is as old.
    """
    if time.tzinfo is None:
        raise ConfigError("the time of a cut needs a time zone", hint="For example 2026-01-31T12:00:00+00:00.")
    for cut in _newest_first(store, source):
        if cut.event_time is not None and cut.event_time <= time:
            return cut
    raise _missing(source, f"no cut is stored whose last transaction was committed by {time}")


def cut_at_position(store: ObjectStore, source: str, position: Position) -> Cut:
    """Return the last cut at or before a position of the binlog, in the epoch of the last cut.

    Raises:
        ConfigError: no cut is stored that is as old.
    """
    newest = last_cut(store, source)
    cut = last_cut_by(store, source, newest.epoch, position) if newest is not None else None
    if newest is None or cut is None or cut.epoch != newest.epoch:
        raise _missing(source, f"no cut of the current epoch is stored at {position} or before it")
    return cut


def cut_with_gtids(store: ObjectStore, source: str, gtids: str) -> Cut:
    """Return the first stored cut that has all of these transactions.

    Raises:
        ConfigError: no stored cut has them.
    """
    flavor: Flavor = "mysql" if ":" in gtids else "mariadb"
    wanted = GtidSet.parse(flavor, gtids)
    first: Cut | None = None
    for cut in _newest_first(store, source):
        if not cut.gtid_set:
            continue
        if (":" in cut.gtid_set) != (flavor == "mysql") or GtidSet.parse(flavor, cut.gtid_set).lacks(wanted):
            break
        first = cut
    if first is None:
        raise ConfigError(
            f"no stored cut is known to have {gtids[:200]}",
            hint=f"It is not merged yet, or the source has no GTIDs. {_HINT}",
            source=source,
        )
    return first


def _by_id(store: ObjectStore, source: str, text: str) -> Cut | None:
    return cut_of(store, source, text) if re.fullmatch(r"[\w.-]+", text) else None


def _newest_first(store: ObjectStore, source: str) -> Iterator[Cut]:
    for info in reversed(listed_cuts(store, source)):
        if (cut := documents.find(Cut, store, info.key)) is not None:
            yield cut


def _missing(source: str, message: str) -> ConfigError:
    return ConfigError(message, hint=_HINT, source=source)
