"""Where people see the Spark application of a job that has its own Spark: while it runs, and when it has ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self
from urllib.parse import quote

APPLICATION_FILE = "CDC_APPLICATION_FILE"
"""Environment variable of a job: the file in which it leaves its :class:`SparkApplication`, once Spark has started."""

ID = "{id}"
"""Stands for the id of the application in ``merge.application_url``."""


@dataclass(frozen=True, slots=True)
class SparkApplication:
    """An application and its pages.

    Args:
        id: of the application, as Spark and its cluster have it.
        running: address of its own pages, which end with it; None where they are switched off.
        ended: address of a page that stays; None where the source file names none.
    """

    id: str
    running: str | None
    ended: str | None

    @classmethod
    def at(cls, application: str, own_pages: str | None, url: str | None) -> Self:
        """Return the application.

        Args:
            application: its id.
            own_pages: address of its own pages; None where they are switched off.
            url: ``merge.application_url`` of the source file.
        """
        ended = url.replace(ID, quote(application, safe="")) if url is not None else None
        return cls(application, own_pages, ended)

    @property
    def page(self) -> str | None:
        """What to look at while it runs: masters and history servers know it by then too."""
        return self.running or self.ended
