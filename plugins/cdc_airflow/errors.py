"""From the library's errors to what Airflow does about them, and to the first lines that people read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cdc_airflow.airflow_versions import IS_3_3, AirflowFailException
from cdc_lib.errors import CdcError


@contextmanager
def errors_first(log: Any) -> Iterator[None]:
    """Log what an error of the library says, and what to do, before Airflow logs its traceback.

    Args:
        log: of the task.

    Raises:
        AirflowFailException: before Airflow 3.3, which has no policy for retries, an error that each try would meet again.
    """
    try:
        yield
    except CdcError as error:
        for line in described(error):
            log.error("%s", line)  # noqa: TRY400 - Airflow logs the traceback
        if error.retryable or IS_3_3:
            raise
        raise AirflowFailException(str(error)) from error


def described(error: CdcError) -> list[str]:
    """Return what happened and where, and what to do if that is known: one text each."""
    context = ", ".join(f"{name}={value}" for name, value in error.context.items())
    what = f"{type(error).__name__}: {error.message}" + (f" [{context}]" if context else "")
    retry = ["Airflow tries again."] if error.retryable else []
    return [what, *([f"What to do: {error.hint}"] if error.hint else []), *retry]
