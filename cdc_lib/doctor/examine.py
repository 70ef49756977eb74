"""All that a run of one source needs, looked at side by side."""

from __future__ import annotations

import importlib.util
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta

from cdc_lib.config import SourceConfig
from cdc_lib.doctor.java_check import check_java
from cdc_lib.doctor.lake_check import check_lake
from cdc_lib.doctor.server_check import check_grants, check_place, check_tables
from cdc_lib.doctor.store_check import check_store
from cdc_lib.errors import CdcError
from cdc_lib.model.cursor import DRAIN
from cdc_lib.model.finding import Finding
from cdc_lib.pipeline import Pipeline

PATIENCE = 4.0
"""Seconds that all checks of a source together may take."""

_CONNECT = timedelta(seconds=3)

Check = Callable[[], Iterable[Finding]]


def examine(pipeline: Pipeline) -> list[Finding]:
    """Return what was found, in the order of the checks; what one could not look at hides nothing of the others."""
    config, credentials = _hurried(pipeline.config), pipeline.credentials
    hurried = Pipeline(config, credentials, pipeline.store, pipeline.cursors)
    checks: dict[str, Check] = {
        "the server": hurried.preflight,
        "the grants": lambda: check_grants(config, credentials),
        "the tables": lambda: check_tables(config, credentials),
        "the place to begin": lambda: check_place(config, credentials, hurried.cursors.load(config.source, DRAIN)),
        "the store": lambda: check_store(config.store, pipeline.store),
        "the lake": lambda: check_lake(config.lake),
        "Java": check_java,
        "Spark": _check_spark,
    }
    return _once(side_by_side(checks, PATIENCE))


def _hurried(config: SourceConfig) -> SourceConfig:
    server = config.server
    return config.model_copy(
        update={"server": server.model_copy(update={"connect_timeout": min(_CONNECT, server.connect_timeout)})}
    )


def _check_spark() -> Iterator[Finding]:
    if importlib.util.find_spec("pyspark") is None:
        yield Finding("error", "merges need pyspark, which is not installed", 'pip install "lakecdc[spark]"')


def side_by_side(checks: dict[str, Check], patience: float) -> list[Finding]:
    """Run checks at once and return their findings in the order of the checks.

    Args:
        checks: by what they look at.
        patience: seconds; a check that takes longer is left alone, and a finding says so.
    """
    found: dict[str, list[Finding]] = {}

    def work(name: str, check: Check) -> None:
        try:
            found[name] = list(check())
        except CdcError as error:
            place = ", ".join(f"{key}={value}" for key, value in error.context.items())
            found[name] = [Finding("error", f"{error.message} [{place}]" if place else error.message, error.hint)]
        except Exception as error:  # noqa: BLE001 - it would end in the thread, and its check seem to be fine
            what = f"{name} could not be looked at: {type(error).__name__}: {error}"
            found[name] = [Finding("error", what, "Report it: this is a defect. The other checks are not concerned.")]

    # Not a pool: its threads would keep the process from ending while one of them still waits.
    threads = {name: threading.Thread(target=work, args=one, daemon=True) for name, one in _named(checks)}
    for thread in threads.values():
        thread.start()
    end = time.monotonic() + patience
    for thread in threads.values():
        thread.join(max(0.0, end - time.monotonic()))
    return [finding for name in checks for finding in found.get(name) or _silent(name, patience, name in found)]


def _named(checks: dict[str, Check]) -> Iterator[tuple[str, tuple[str, Check]]]:
    return ((name, (name, check)) for name, check in checks.items())


def _silent(name: str, patience: float, ended: bool) -> Sequence[Finding]:
    if ended:
        return ()
    what = f"{name} could not be looked at within {patience:.0f} s"
    return (Finding("error", what, "Look whether it answers at all; then call cdc doctor again."),)


def _once(findings: Iterable[Finding]) -> list[Finding]:
    """Leave out what several checks say: each of them asks the server automatically."""
    return list(dict.fromkeys(findings))
