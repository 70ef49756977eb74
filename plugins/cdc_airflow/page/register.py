"""What the plugin tells Airflow of the page."""

from __future__ import annotations

from typing import Any

from cdc_airflow.lazy_app import LazyApp

PREFIX = "/cdc/page"

NAME = "CDC"
"""What navigation and tab are called; the JavaScript file puts its component under this name."""

PAGE_APP: dict[str, Any] = {"app": LazyApp("cdc_airflow.page.app"), "url_prefix": PREFIX, "name": "CDC page"}

REACT_APPS: list[dict[str, Any]] = [
    {
        "name": NAME,
        "bundle_url": f".{PREFIX}/page.js",  # relative to the base address: Airflow may live under a path of its own
        "destination": destination,
        "url_route": route,
    }
    for destination, route in (("nav", "cdc"), ("dag", "cdc-source"))
]
