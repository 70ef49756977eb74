"""``GET /cdc-metrics/``: the figures of the sources as Prometheus takes them, from the stores alone.

Who asks needs the token of ``[cdc] metrics_token``, and sees every source; or is a user of Airflow, and sees the sources whose
DAGs this user may read. Nobody else gets an answer.
"""

from __future__ import annotations

import hmac
import logging
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.core_api.security import get_user
from airflow.configuration import conf
from fastapi import Depends, FastAPI, Header, Request, Response
from fastapi.security import HTTPAuthorizationCredentials
from fastapi.security.utils import get_authorization_scheme_param

from cdc_airflow.connections import open_store_of
from cdc_airflow.dag_ids import dag_id
from cdc_airflow.factory import sources_of_the_api_server
from cdc_airflow.teams import readable, team_of
from cdc_lib.config import Loaded, SourceConfig, load_sources
from cdc_lib.errors import CdcError
from cdc_lib.source import Source
from cdc_lib.status.prometheus import Exposition, Scraped, figures_of

log = logging.getLogger(__name__)

FRESH = 10.0
"""Seconds for which figures are good: several Prometheus servers are one reader of the store."""

PATIENCE = 8.0
"""Seconds that a request waits for the stores; Prometheus gives up after ten. A source that takes longer is down."""

THREADS = 8


@dataclass(frozen=True, slots=True)
class _MetricsRead:
    config: SourceConfig
    figures: Future[Scraped]
    began: float

    def is_good(self, now: float) -> bool:
        return not self.figures.done() or now - self.began < FRESH


class Readings:
    """The figures of sources, each read once at a time, also while its store gives no answer."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="cdc-metrics")
        self._lock = threading.Lock()
        self._kept: dict[str, _MetricsRead] = {}

    def of(self, configs: Mapping[str, SourceConfig]) -> Mapping[str, Scraped | None]:
        """Return the figures of sources by name; None of one that cannot be read, or not in time."""
        asked = {name: self._asked(config) for name, config in configs.items()}
        wait(asked.values(), PATIENCE)
        return {name: _outcome(name, future) for name, future in asked.items()}

    def _asked(self, config: SourceConfig) -> Future[Scraped]:
        with self._lock:
            kept = self._kept.get(config.source)
            if kept is not None and kept.config == config and kept.is_good(time.monotonic()):
                return kept.figures
            reading = _MetricsRead(config, self._pool.submit(_read, config), time.monotonic())
            self._kept[config.source] = reading
            return reading.figures


def _read(config: SourceConfig) -> Scraped:
    return figures_of(Source.over(config, open_store_of(config, team_of(dag_id(config.source)))))


def _outcome(name: str, future: Future[Scraped]) -> Scraped | None:
    if not future.done():
        log.warning("the store of %s has not answered within %s s", name, PATIENCE)
        return None
    try:
        return future.result()
    except CdcError as error:
        log.warning("the figures of %s cannot be read: %s", name, error)
        return None


@dataclass(frozen=True, slots=True)
class MetricsClient:
    """Who asks; without a user it is the holder of the token."""

    user: BaseUser | None

    def may_read(self, loaded: list[Loaded]) -> list[Loaded]:
        """Return the sources that this reader may see."""
        if self.user is None:
            return loaded
        dags = {dag_id(one.source) for one in loaded}
        allowed = readable(dags, self.user)
        return [one for one in loaded if dag_id(one.source) in allowed]


async def reader(request: Request) -> MetricsClient:
    """Return who asks.

    Raises:
        HTTPException: nobody who is known: 401, or 403 for a token that is not one.
    """
    scheme, given = get_authorization_scheme_param(request.headers.get("Authorization"))
    token = conf.get("cdc", "metrics_token", fallback="") or ""
    is_bearer = scheme.lower() == "bearer" and given
    if token and is_bearer and hmac.compare_digest(given.encode(), token.encode()):
        return MetricsClient(None)
    bearer = HTTPAuthorizationCredentials(scheme=scheme, credentials=given) if is_bearer else None
    return MetricsClient(await get_user(request, None, bearer))


def make_app() -> FastAPI:
    """Return the app."""
    app = FastAPI(title="CDC metrics", openapi_url=None, docs_url=None, redoc_url=None)
    readings = Readings()

    @app.get("/")
    def show_metrics(
        asking: Annotated[MetricsClient, Depends(reader)],
        sources: Annotated[Path, Depends(sources_of_the_api_server)],
        accept: Annotated[str, Header()] = "",
    ) -> Response:
        """Return the figures of every source that the reader may see."""
        loaded = asking.may_read(list(load_sources(sources)))
        configs = {one.source: one.config for one in loaded if one.config is not None}
        found = readings.of(configs)
        figures = [one for one in found.values() if one is not None]
        failed = tuple(one.source for one in loaded if found.get(one.source) is None)
        text, content_type = Exposition(figures, failed).negotiated(accept)
        headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
        return Response(text, media_type=content_type, headers=headers)

    return app
