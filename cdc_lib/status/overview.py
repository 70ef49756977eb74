"""The status of a source and the findings about its server."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime

from cdc_lib.config import Credentials, SourceConfig
from cdc_lib.drain.columns import cascade_findings, left_to_tools, shape_of, shared_names, versioned
from cdc_lib.drain.columns import findings as shape_findings
from cdc_lib.errors import CdcError
from cdc_lib.model.binlog_checkpoint import BinlogCheckpoint
from cdc_lib.model.cursor import DRAIN, LAKE
from cdc_lib.model.finding import Finding
from cdc_lib.model.pace import counted
from cdc_lib.model.results import Unanswered
from cdc_lib.mysql.clock import judge_clock
from cdc_lib.mysql.information_schema import InformationSchema
from cdc_lib.mysql.preflight import judge
from cdc_lib.mysql.replica_ids import judge_replica_id, registered_replicas
from cdc_lib.mysql.server_facts import facts_of, read_facts
from cdc_lib.mysql.xa_recover import judge_prepared
from cdc_lib.plan.definitions import ServerDefinitions
from cdc_lib.source import Source
from cdc_lib.status.binlog_retention import look_ahead
from cdc_lib.status.holdings import Holdings, HoldingsReader, progress_of
from cdc_lib.status.lag import in_this_epoch
from cdc_lib.status.mode_findings import mode_findings
from cdc_lib.status.observation import observation_of
from cdc_lib.store.cuts import last_cut
from cdc_lib.store.observations import note_server

log = logging.getLogger(__name__)


def status_of(source: Source) -> Holdings:
    """Return what is known of a source: what the store says if the server cannot be asked, and the other way round."""
    return asked_status(source.config, lambda: source.credentials, lambda: source)


def asked_status(config: SourceConfig, log_in: Callable[[], Credentials], stored: Callable[[], Source]) -> Holdings:
    """Return what is known of a source, see :func:`status_of`.

    Args:
        config: the source.
        log_in: returns its log-in, or raises a CdcError.
        stored: returns it with its store, likewise; its log-in is not used.
    """
    held = Holdings(config, datetime.now(UTC))
    try:
        held = HoldingsReader(stored()).read_all(held.at)
    except CdcError as error:
        held = replace(held, unanswered=(Unanswered("store", error.code, error.what, error.hint),))
    return with_server(held, log_in)


def with_server(held: Holdings, log_in: Callable[[], Credentials]) -> Holdings:
    """Return what is known of a source with what its server says now, or with why that cannot be asked.

    Args:
        held: what is stored.
        log_in: returns its log-in, or raises a CdcError.
    """
    here = held.config.at_server_of(held.drain)
    try:
        credentials = log_in()
        facts = facts_of(here.server, credentials)
        outlook = look_ahead(here, credentials, facts, held.drain)
    except CdcError as error:
        why = Unanswered("server", error.code, error.what, error.hint)
        return replace(held, unanswered=(*held.unanswered, why))
    forecast = outlook.forecast if outlook is not None else None
    seen = observation_of(held.source, facts, _needed(held), forecast, datetime.now(UTC))
    return replace(held, seen=seen, asked=True, outlook=outlook)


def _needed(held: Holdings) -> BinlogCheckpoint | None:
    """Return from where on the lake needs the binlog; None before the first plan."""
    if held.drain is None:
        return None
    return held.drain.checkpoint if held.lake is None else in_this_epoch(held.drain, held.lake)


def gauges_of(source: Source) -> Holdings:
    """Return what a plan shows of a source, and keep what the server says in the store, for readers of the store alone."""
    drain, lake = source.cursor(DRAIN), source.cursor(LAKE)
    published = last_cut(source.store, source.name) is not None
    progress = progress_of(source, drain, lake, published=published)
    held = with_server(
        Holdings(source.config, datetime.now(UTC), drain, lake, progress=progress), lambda: source.credentials
    )
    if held.seen is not None:
        note_server(source.store, held.seen)
    return held


def findings_of(source: Source) -> list[Finding]:
    """Return the findings about the server and about what is stored, each with a hint.

    Raises:
        SourceError: the server cannot be reached.
    """
    config, held = source.config, HoldingsReader(source).read(datetime.now(UTC))
    with closing(source.connect()) as connection:
        facts = read_facts(connection, config.server)
        findings = [*judge(facts), judge_clock(facts.clock, datetime.now(UTC)), *judge_prepared(connection, facts)]
        if (own := config.server.server_id) is not None:
            findings += judge_replica_id(own, facts.identity.server_id, registered_replicas(connection, facts))
        reader = InformationSchema(connection)
        found = reader.tables()
        tables = config.tables.select(found)
        shaped = [*versioned(config, config.tables.select(reader.versioned())), *left_to_tools(config, found)]
        shaped += cascade_findings(
            config, ServerDefinitions.read(connection, config, source.store, facts, tables).cascades
        )
        shaped += shared_names(config, tables)
        shaped += shape_findings(config, shape_of(config, source.credentials), reader, tables)
        shaped += mode_findings(config, reader, tables, held.cut)
    if tables:
        findings.append(Finding("ok", f"{counted(len(tables), 'table')} captured"))
    else:
        patterns = ", ".join(config.tables.include)
        findings.append(
            Finding("error", f"no table is captured by {patterns}", "Check tables.include, and GRANT SELECT on them.")
        )
    outlook = look_ahead(config, source.credentials, facts, held.drain)
    return [*findings, *([outlook.finding] if outlook else []), *shaped, *held.findings]
