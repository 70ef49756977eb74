"""The answer to a schema change at which a table waits (``schema_changes: ask``), given by a run with a form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

from airflow.sdk import Param

from cdc_airflow.approvals import approver, ask
from cdc_airflow.errors import errors_first
from cdc_airflow.hooks import CdcHook
from cdc_airflow.operators.base import CdcOperator
from cdc_lib.errors import ConfigError
from cdc_lib.model.position import Position
from cdc_lib.model.schema_question import Decision

if TYPE_CHECKING:
    from airflow.sdk import Context

    from cdc_lib.model.schema_question import SchemaQuestion
    from cdc_lib.pipeline import Pipeline

DECISIONS: tuple[Decision, ...] = get_args(Decision)


def answer_params() -> dict[str, Param]:
    """Return the form of an answer."""
    return {
        "table": Param(
            type="string",
            minLength=1,
            title="Table",
            description="A table that waits, by its name: shop.orders. The page and cdc schema questions list them.",
        ),
        "answer": Param(
            type="string",
            enum=[*DECISIONS],
            title="Answer",
            description="follow: the lake does as the source. keep: it keeps what it has. The page says which are possible.",
        ),
        "position": Param(
            "",
            type="string",
            title="Position",
            description="Only if the table waits at this statement: binlog.000012:1079",
        ),
    }


class AnswerOperator(CdcOperator):
    """Answer the schema change at which a table waits; the next merge applies the answer.

    The same answer given twice is one answer. With ``approvals.answer`` in the source file, it is recorded when a person has
    approved it.

    Args:
        table: ``database.table``; a name and no pattern.
        answer: ``follow`` or ``keep``.
        position: of the statement, ``file:offset``; empty for the one at which the table waits.
    """

    template_fields = (*CdcOperator.template_fields, "table", "answer", "position")

    def __init__(self, *, table: str, answer: str, position: str = "", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.table = table
        self.answer = answer
        self.position = position

    def work(self, hook: CdcHook, context: Context) -> dict[str, Any]:
        """Return the statement and its answer; no server is contacted.

        Raises:
            ConfigError: the table does not wait there, or the answer is not possible; nothing was recorded.
        """
        from cdc_lib.merge.answers import find_question

        pipeline, decision = hook.lake_pipeline(), self._decision(hook)
        position = Position.parse(self.position.strip()) if self.position.strip() else None
        asked = find_question(pipeline, self.table, decision, position)
        if hook.config.approvals.answer:
            ask(
                context,
                hook.config.approvals,
                f"Answer {decision} to {asked.kind} of {asked.table}?",
                f"The source file asks about the statement at `{asked.position}`. The next merge applies the answer.",
                position=str(asked.position),
            )
        return self._answered(pipeline, asked, decision, by=self.by(context))

    def approved(self, context: Context, event: dict[str, Any], position: str) -> dict[str, Any]:
        """Record the answer as it was approved.

        Args:
            context: of the task.
            event: what the person said.
            position: of the statement that was shown.

        Raises:
            AirflowFailException: it was rejected, or nobody approved in time.
            ConfigError: the table does not wait there any more; nothing was recorded.
        """
        from cdc_lib.merge.answers import find_question

        with errors_first(self.log):
            by, hook = approver(event), self.hook()
            self.log.info("approved by %s", by)
            pipeline, decision = hook.lake_pipeline(), self._decision(hook)
            asked = find_question(pipeline, self.table, decision, Position.parse(position))
            return self._answered(pipeline, asked, decision, by=f"{self.by(context)}, approved by {by}")

    def _decision(self, hook: CdcHook) -> Decision:
        if self.answer not in DECISIONS:
            raise ConfigError(
                f"{self.answer!r} is not an answer", hint=f"Answer {' or '.join(DECISIONS)}.", source=hook.config.source
            )
        return self.answer

    def _answered(self, pipeline: Pipeline, asked: SchemaQuestion, decision: Decision, *, by: str) -> dict[str, Any]:
        from cdc_lib.merge.answers import answer_question

        given = answer_question(pipeline, str(asked.table), decision, asked.position, by=by)
        self.log.info(
            "%s: %s is the answer to %s at %s (%s)", asked.table, given.decision, asked.kind, asked.position, given.by
        )
        self.log.info("the next merge applies it: the next run of cdc_%s", pipeline.config.source)
        return {
            "table": str(asked.table),
            "change": asked.kind,
            "position": str(asked.position),
            "answer": given.decision,
            "by": given.by,
        }
