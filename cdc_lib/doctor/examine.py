"""Runs all checks of one source in parallel."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial

from cdc_lib.config import Credentials, ServerConfig, TablesConfig
from cdc_lib.doctor.dropped_tables import check_dropped_tables
from cdc_lib.doctor.erasures_check import check_erasures
from cdc_lib.doctor.hop_check import check_hop
from cdc_lib.doctor.java_check import check_java
from cdc_lib.doctor.kernels_check import check_kernels
from cdc_lib.doctor.lake_check import check_lake
from cdc_lib.doctor.server_check import check_grants, check_line, check_server, check_standby, check_start, check_tables
from cdc_lib.doctor.spark_check import check_spark, check_spark_server
from cdc_lib.doctor.store_check import check_store
from cdc_lib.doctor.waiting_clock import waited
from cdc_lib.errors import CdcError, StoreUnavailable
from cdc_lib.model.finding import Finding
from cdc_lib.source import Source
from cdc_lib.status.overview import findings_of

PATIENCE, PATIENCE_OF_ONE = 4.0, 30.0
"""Time limit for all checks of a source among many, and of one alone, in seconds of :func:`cdc_lib.doctor.waiting_clock.waited`."""

_LOOK = 0.1
"""How often the clock is looked at, in seconds."""

_AGAIN = "Look whether it answers at all; then call cdc doctor again."

Check = Callable[[], Iterable[Finding]]


def examine(
    source: Source,
    patience: float = PATIENCE_OF_ONE,
    java: Check = check_java,
    environ: Mapping[str, str] = os.environ,
) -> list[Finding]:
    """Return all findings, in the order of the checks; a failed check does not hide the others.

    Args:
        source: the source.
        patience: time limit for all checks, in seconds of :func:`cdc_lib.doctor.waiting_clock.waited`.
        java: the check of Java, which many sources can share.
        environ: has the token of the Spark server.
    """
    server = _hurried(source.config.server, patience)
    config, credentials = source.config.model_copy(update={"server": server}), source.credentials
    hurried = replace(source, config=config)
    checks: dict[str, Check] = {
        "the store": lambda: check_store(config.store, source.store),
        "the way to the server": lambda: check_hop(config.server, credentials),
        "the line to the server": lambda: check_line(config.server, credentials),
        "the server": partial(findings_of, hurried),
        "the grants": lambda: check_grants(config.server, config.tables, credentials),
        "the tables": partial(check_tables, hurried),
        "the place to begin": partial(check_start, hurried),
        "the kernels": check_kernels,
        "the lake": lambda: check_lake(config, source.store),
        "lake tables of dropped tables": lambda: check_dropped_tables(config, source.store),
        "erasures": lambda: check_erasures(config.source, source.store),
    }
    if config.merge.spark_server is not None:
        checks["the Spark server"] = partial(check_spark_server, config.merge.spark_server, environ)
    else:
        checks |= {"Java": java, "Spark": partial(check_spark, config.merge.spark_master)}
    for host, port in config.addresses[1:]:
        standby = config.at(host, port).server
        checks[f"the standby {host}:{port}"] = partial(check_standby, standby, credentials)
    again = f"cdc doctor {config.source} waits longer." if patience < PATIENCE_OF_ONE else _AGAIN
    return _once(side_by_side(checks, patience, again))


def shared(check: Check) -> Check:
    """Return a check that runs once, and gives its findings to all that call it."""
    lock = threading.Lock()
    found: list[Sequence[Finding]] = []

    def run() -> Iterable[Finding]:
        with lock:
            if not found:
                found.append(tuple(check()))
            return found[0]

    return run


def examine_server(server: ServerConfig, tables: TablesConfig, credentials: Credentials) -> list[Finding]:
    """Return what was found at a server of which there is no source file yet.

    Args:
        server: how it is reached.
        tables: which of its tables shall be captured.
        credentials: log-in of the user who shall read it.
    """
    hurried = _hurried(server, PATIENCE_OF_ONE)
    checks: dict[str, Check] = {
        "the line to the server": lambda: check_line(hurried, credentials),
        "the server": lambda: check_server(hurried, tables, credentials),
        "the grants": lambda: check_grants(hurried, tables, credentials),
    }
    return _once(side_by_side(checks, PATIENCE_OF_ONE))


def _hurried(server: ServerConfig, patience: float) -> ServerConfig:
    """Return the server with a time limit for connections that leaves time to say which of them had no answer."""
    limit = min(timedelta(seconds=0.75 * patience), server.connect_timeout)
    return server.model_copy(update={"connect_timeout": limit})


def side_by_side(checks: dict[str, Check], patience: float, again: str = _AGAIN) -> list[Finding]:
    """Run checks in parallel and return their findings in the order of the checks.

    Args:
        checks: the checks, by name.
        patience: time limit in seconds of :func:`cdc_lib.doctor.waiting_clock.waited`; what a check looks at that takes longer is unknown.
        again: the hint for it.
    """
    found: dict[str, list[Finding]] = {}
    outages: list[Finding] = []

    def work(name: str, check: Check) -> None:
        seen: list[Finding] = []
        try:
            for finding in check():
                seen.append(finding)  # noqa: PERF402 - also those before an error
        except CdcError as error:
            seen.append(Finding("error", error.what, error.hint))
            if isinstance(error, StoreUnavailable):
                outages.append(seen[-1])
        except Exception as error:  # noqa: BLE001 - it would be lost in the thread, and the check would seem to pass
            what = f"{name} could not be looked at: {type(error).__name__}: {error}"
            seen.append(Finding("error", what, "Report it: this is a defect. The other checks are not concerned."))
        found[name] = seen

    # Not a pool: its threads would keep the process alive while a check hangs.
    threads = {name: threading.Thread(target=work, args=one, daemon=True) for name, one in _named(checks)}
    for thread in threads.values():
        thread.start()
    end = waited() + patience
    for thread in threads.values():
        while thread.is_alive() and (left := end - waited()) > 0:
            thread.join(min(left, _LOOK))
    all_found = [one for name in checks for one in found.get(name) or _silent(name, patience, again, name in found)]
    return [*_one_of_each_outage(all_found, tuple(outages))]


def _one_of_each_outage(findings: Iterable[Finding], outages: Sequence[Finding]) -> Iterator[Finding]:
    """Leave out findings of an outage that another check named before: their hint is the same, their key is not."""
    named: set[str] = set()
    for finding in findings:
        if finding in outages and finding.hint in named:
            continue
        if finding in outages:
            named.add(finding.hint)
        yield finding


def _named(checks: dict[str, Check]) -> Iterator[tuple[str, tuple[str, Check]]]:
    return ((name, (name, check)) for name, check in checks.items())


def _silent(name: str, patience: float, again: str, ended: bool) -> Sequence[Finding]:
    return () if ended else (Finding("unknown", f"{name} could not be looked at within {patience:.0f} s", again),)


def _once(findings: Iterable[Finding]) -> list[Finding]:
    """Remove duplicate findings: several checks connect to the same server."""
    return list(dict.fromkeys(findings))
