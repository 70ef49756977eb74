"""The question whether a plan continues at a server that lacks transactions (``failover.on_missing_transactions: ask``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from cdc_airflow.approvals import ask

if TYPE_CHECKING:
    from airflow.sdk import Context

    from cdc_lib.config import SourceConfig
    from cdc_lib.errors import TransactionsMissing

SHOWN = 2000
"""Characters of a set of GTIDs that the question shows at most."""


def ask_to_continue(context: Context, config: SourceConfig, error: TransactionsMissing) -> NoReturn:
    """Ask a person; the plan's method ``approved`` is called with the answer.

    Args:
        context: of the plan.
        config: of the source.
        error: what the plan met.
    """
    server, missing = str(error.context["server"]), str(error.context["missing"])
    shown = missing if len(missing) <= SHOWN else f"{missing[:SHOWN]}…"
    body = (
        f"`{server}` never had transactions that were read: `{shown}`. The lake may hold rows of them that no server has any more. "
        f"If this server still catches up, reject: the next run plans again. After an approval, request new snapshots of all "
        f"tables: they replace those rows."
    )
    subject = f"Continue {config.source} at a server that lacks transactions?"
    ask(context, config.approvals, subject, body, server=server, missing=missing)
