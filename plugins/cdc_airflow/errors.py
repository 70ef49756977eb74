"""From the library's errors to what Airflow does about them, and to the first lines that people read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from airflow.sdk import RetryDecision, RetryPolicy

from cdc_lib.errors import CdcError


class CdcRetryPolicy(RetryPolicy):
    """Retries what a later try may not meet, and fails at once what needs a person; each error of the library says which it is.

    An error of no class of the library takes the task's retries as in any other task.
    """

    def evaluate(
        self,
        exception: BaseException,
        try_number: int,  # noqa: ARG002 - Airflow's signature
        max_tries: int,  # noqa: ARG002 - Airflow's signature
        context: Any = None,  # noqa: ARG002 - Airflow's signature
    ) -> RetryDecision:
        """Decide by the error alone."""
        if isinstance(exception, CdcError) and not exception.retryable:
            return RetryDecision.fail(f"{type(exception).__name__} is the same at each try until somebody acts")
        return RetryDecision.default()

    def serialize(self) -> dict[str, Any]:
        """There is nothing to remember."""
        return {}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> CdcRetryPolicy:  # noqa: ARG003 - Airflow's signature
        """Return the same."""
        return cls()


@contextmanager
def errors_first(log: Any) -> Iterator[None]:
    """Log what an error of the library says, and what to do, before Airflow logs its traceback.

    Args:
        log: of the task.
    """
    try:
        yield
    except CdcError as error:
        for line in described(error):
            log.error("%s", line)  # noqa: TRY400 - Airflow logs the traceback
        raise


def described(error: CdcError) -> list[str]:
    """Return what happened and where, and what to do if that is known: one text each."""
    context = ", ".join(f"{name}={value}" for name, value in error.context.items())
    what = f"{type(error).__name__}: {error.message}" + (f" [{context}]" if context else "")
    retry = ["Airflow tries again."] if error.retryable else []
    return [what, *([f"What to do: {error.hint}"] if error.hint else []), *retry]
