"""Buttons of a task that lead to what it did: on the page of its source, and in Spark."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote

from airflow.sdk import BaseOperatorLink

from cdc_airflow.airflow_versions import IS_3_2, conf

if TYPE_CHECKING:
    from cdc_airflow.airflow_versions import TaskInstanceKey

HAS_PAGE = IS_3_2 and importlib.util.find_spec("cdc_airflow.page") is not None
"""Whether this installation has the page that the links lead to; Airflow 3.1 shows none."""


class SourcePageLink(BaseOperatorLink):
    """Leads to a part of the page of the task's source; the address is kept when the task ends."""

    title: ClassVar[str] = ""
    part: ClassVar[str] = ""

    @property
    def name(self) -> str:
        """What the button says."""
        return self.title

    def get_link(self, operator: Any, *, ti_key: TaskInstanceKey) -> str:  # noqa: ARG002 - Airflow's signature
        """Return the address of the source's page; the file of a source is named like it."""
        # A mapped task that fails before it has its arguments is still the operator that maps it.
        file = operator.source_file if hasattr(operator, "source_file") else operator.partial_kwargs["source_file"]
        page = quote(f"cdc_{Path(file).stem}", safe="")
        return f"{conf.get('api', 'base_url', fallback='').rstrip('/')}/plugin/cdc/{page}#{self.place(operator)}"

    def place(self, operator: Any) -> str:  # noqa: ARG002 - for links that know more of their task
        """Return where on the page it leads."""
        return self.part


class WindowLink(SourcePageLink):
    """From a drain to its window on the page of its source; from one that read no window, to all of them."""

    title = "Window"
    part = "windows"

    def place(self, operator: Any) -> str:
        """Return where on the page it leads; the page shows the window alone."""
        window = getattr(operator, "window_id", None)
        return f"{self.part}={quote(window, safe='')}" if window else self.part


class CutLink(SourcePageLink):
    """From a merge and its ack to the cuts of their source."""

    title = "Cut"
    part = "cuts"


class VerifyReportLink(SourcePageLink):
    """From a comparison to the tables of its source, with what was found last."""

    title = "Verify report"
    part = "tables"


class SparkUiLink(BaseOperatorLink):
    """From a task whose job a Spark server runs to the pages of that Spark; the server says where they are."""

    @property
    def name(self) -> str:
        """What the button says."""
        return "Spark UI"

    def get_link(self, operator: Any, *, ti_key: TaskInstanceKey) -> str:  # noqa: ARG002 - Airflow's signature
        """Return the address; empty where there are no pages, and Airflow shows no button then."""
        return operator.spark_ui or ""


def links(*kinds: type[SourcePageLink]) -> tuple[SourcePageLink, ...]:
    """Return one link of each kind; none where there is no page to lead to."""
    return tuple(kind() for kind in kinds) if HAS_PAGE else ()
