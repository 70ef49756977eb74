"""The task by which people move the drain cursor, and its form.

The arguments of this operator are templates. The DAGs of the factory fill them from the form; a DAG that is written by hand gives
them as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from airflow.sdk import Param

from cdc_airflow.approvals import approver, ask
from cdc_airflow.errors import errors_first
from cdc_airflow.forms import is_on
from cdc_airflow.hooks import CdcHook
from cdc_airflow.operators.base import CdcOperator
from cdc_lib.errors import ConfigError

if TYPE_CHECKING:
    from airflow.sdk import Context

    from cdc_lib.config.start import StartAt
    from cdc_lib.pipeline import Pipeline


def rewind_params() -> dict[str, Param]:
    """Return the form of a rewind."""
    return {
        "time": Param(
            None,
            type=["null", "string"],
            format="date-time",
            title="Time",
            description="All that committed then or later is read again.",
        ),
        "position": Param("", type="string", title="Position", description="file:offset, as binlog.000012:1079"),
        "gtid": Param(
            "", type="string", title="GTIDs", description="All transactions that are not in this set are read again."
        ),
        "undo": Param(
            False,
            type="boolean",
            title="Undo",
            description="Back to the position before the last move, instead of a given position.",
        ),
        "move": Param(
            False,
            type="boolean",
            title="Move the cursor",
            description="Off: the log says what the position is, and nothing moves.",
        ),
        "why": Param("", type="string", title="Reason", description="Needed for a move. It is kept in the cursor."),
    }


class RewindOperator(CdcOperator):
    """Find a position in the binlog, and let the drain continue there if ``move`` says so; the lake follows.

    With ``approvals.rewind`` in the source file, a move waits until a person has approved the position.

    Args:
        time: all that committed then or later is read again; with its zone.
        position: ``file:offset``.
        gtid: all transactions that are not in this set are read again.
        undo: back to the position before the last move, instead of a given position.
        move: whether the cursor moves.
        why: the reason; needed for a move.
    """

    template_fields = (*CdcOperator.template_fields, "time", "position", "gtid", "undo", "move", "why")

    def __init__(
        self,
        *,
        time: str = "",
        position: str = "",
        gtid: str = "",
        undo: bool | str = False,
        move: bool | str = False,
        why: str = "",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.time = time
        self.position = position
        self.gtid = gtid
        self.undo = undo
        self.move = move
        self.why = why

    def work(self, hook: CdcHook, context: Context) -> dict[str, Any]:
        """Return the position, and whether the cursor moved there.

        Raises:
            ConfigError: no position or several are given, or a move has no reason.
            SourceError: the server does not have the position.
        """
        from cdc_lib import requests

        start = self._start(hook)
        move = is_on(self.move)
        if move and not self.why.strip():
            raise ConfigError("a move of the cursor needs a reason", hint="Fill in why.", source=hook.config.source)
        pipeline = hook.pipeline()
        position = ""
        if start is not None:
            found = requests.locate(pipeline, start)
            position = str(found.checkpoint.position)
            self.log.info("%s is %s; the drain cursor is at %s", start, position, found.cursor)
            if found.is_after_cursor:
                self.log.warning(
                    "it is after the cursor: the changes in between are left out, until their tables are read again"
                )
            if not move:
                self.log.info("nothing was moved; a run with move on does it")
                return {"position": position, "moved": False}
        elif not move:
            raise ConfigError("undo without move does nothing", hint="Set move.", source=hook.config.source)
        if hook.config.approvals.rewind:
            self._ask(hook, context, pipeline, position)
        return self._moved(pipeline, start, by=self.by(context))

    def approved(self, context: Context, event: dict[str, Any], position: str, epoch: int) -> dict[str, Any]:
        """Move the cursor as it was approved.

        Args:
            context: of the task.
            event: the answer.
            position: the one that the question named; empty for an undo.
            epoch: of the cursor at that time.

        Raises:
            AirflowFailException: it was rejected, or nobody answered in time.
            ConfigError: the cursor or the position is another one by now; nothing was moved.
        """
        from cdc_lib import requests
        from cdc_lib.model.cursor import DRAIN

        with errors_first(self.log):
            by, hook = approver(event), self.hook()
            self.log.info("approved by %s", by)
            pipeline, start = hook.pipeline(), self._start(hook)
            now = pipeline.cursor(DRAIN)
            found = str(requests.locate(pipeline, start).checkpoint.position) if start is not None else ""
            if now is None or (now.epoch, found) != (epoch, position):
                raise ConfigError(
                    "the cursor or the position is no longer what was approved",
                    hint="Start a new run: it asks again.",
                    source=hook.config.source,
                )
            return self._moved(pipeline, start, by=f"{self.by(context)}, approved by {by}")

    def _ask(self, hook: CdcHook, context: Context, pipeline: Pipeline, position: str) -> NoReturn:
        source = hook.config.source
        cursor = pipeline.required("drain")
        what = f"Move the drain cursor of {source} to {position}?" if position else f"Undo the last move of {source}?"
        body = f"The cursor is at `{cursor.position}` in epoch {cursor.epoch}. Reason: {self.why}"
        ask(context, hook.config.approvals, what, body, position=position, epoch=cursor.epoch)

    def _moved(self, pipeline: Pipeline, start: StartAt | None, *, by: str) -> dict[str, Any]:
        from cdc_lib import requests

        moved = requests.rewind(pipeline, start, by=by, why=self.why)
        self.log.info("the drain cursor is at %s in epoch %d; undo takes it back", moved.position, moved.epoch)
        return {"position": str(moved.position), "epoch": moved.epoch, "moved": True}

    def _start(self, hook: CdcHook) -> StartAt | None:
        from cdc_lib.config.start import StartAt, position, timestamp

        given = [name for name in ("time", "position", "gtid") if getattr(self, name)]
        if len(given) + is_on(self.undo) != 1:
            raise ConfigError(
                "name exactly one position",
                hint="Fill in one of time, position and gtid; or set undo.",
                source=hook.config.source,
                given=", ".join([*given, *(["undo"] if is_on(self.undo) else [])]) or "nothing",
            )
        try:
            if self.time:
                return StartAt(timestamp=timestamp(self.time))
            if self.position:
                return StartAt(position=position(self.position))
        except ValueError as error:
            raise ConfigError(str(error), hint=f"Correct {given[0]}.", source=hook.config.source) from error
        return StartAt(gtid=self.gtid) if self.gtid else None
