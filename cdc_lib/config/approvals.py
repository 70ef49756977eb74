"""``approvals:`` what waits in Airflow until a person has approved it."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import Field

from cdc_lib.config.base import Duration, Section, at_most


class ApprovalsConfig(Section):
    """What the DAGs of a source do only after a person has approved it in Airflow; only an erasure waits by default.

    The command line asks nobody else.

    Args:
        rewind: whether a move of the drain cursor waits.
        resume: whether the end of a table's quarantine waits.
        answer: whether an answer to a schema change waits.
        erase: whether an erasure of rows waits.
        repair_rows: a repair of more wrong rows waits.
        timeout: the task fails when nobody has answered by then.
    """

    rewind: bool = Field(default=False, description="true or false")
    resume: bool = Field(default=False, description="true or false")
    answer: bool = Field(default=False, description="true or false")
    erase: bool = Field(default=True, description="true or false")
    repair_rows: int | None = Field(default=None, ge=0, description="a number of rows, or null: no repair waits")
    timeout: Annotated[Duration, at_most(timedelta(days=365))] = Field(
        default=timedelta(days=1), description="a duration such as 24h, up to 365d"
    )
