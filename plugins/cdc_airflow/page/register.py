"""What the plugin tells Airflow of the page."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from cdc_airflow.airflow_versions import IS_3_2, IS_3_3, conf
from cdc_airflow.lazy_app import LazyApp

PREFIX = "/cdc/page"

NAME = "CDC"
"""What navigation and tab are called; the JavaScript file puts its component under this name."""

PAGE_APP: dict[str, Any] = {"app": LazyApp("cdc_airflow.page.app"), "url_prefix": PREFIX, "name": "CDC page"}


def _bundle_url() -> str:
    """Return where the JavaScript is: Airflow 3.3 looks from its base address, 3.2 from its own script. Both may live under a path."""
    base = "." if IS_3_3 else urlsplit(conf.get("api", "base_url", fallback="")).path.rstrip("/")
    return f"{base}{PREFIX}/page.js"


REACT_APPS: list[dict[str, Any]] = [
    {
        "name": NAME,
        "bundle_url": _bundle_url(),
        "destination": destination,
        "url_route": route,
    }
    for destination, route in (("nav", "cdc"), ("dag", "cdc-source"))
    if IS_3_2  # the page is made of Chakra, which Airflow 3.1 does not hand to plugins
]
