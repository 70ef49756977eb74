"""From the library's errors to what Airflow does about them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from airflow.sdk.exceptions import AirflowFailException

from cdc_lib.errors import CdcError


@contextmanager
def airflow_errors() -> Iterator[None]:
    """Let Airflow try again what may go away automatically, and end at once what needs a hand.

    A retryable CdcError continues as it is and takes the task's retries; any other of the tree becomes an
    AirflowFailException with its message, place and hint. What is not of the tree is a defect and is left alone.
    """
    try:
        yield
    except CdcError as error:
        if error.retryable:
            raise
        raise AirflowFailException(f"{type(error).__name__}: {error}") from error
