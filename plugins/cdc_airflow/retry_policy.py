"""Which errors Airflow retries, by the error itself: from Airflow 3.3 on."""

from __future__ import annotations

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
