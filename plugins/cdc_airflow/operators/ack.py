"""The tasks that move the cursors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.utils.skipmixin import SkipMixin
from airflow.sdk.bases.xcom import BaseXCom

from cdc_airflow.assets import CutContext, announce
from cdc_airflow.gauges import count, show
from cdc_airflow.links import CutLink, links
from cdc_airflow.operators.base import CdcOperator
from cdc_airflow.operators.seal_days import day_waits
from cdc_lib.model.pace import counted, listed

if TYPE_CHECKING:
    from airflow.sdk import Context

    from cdc_airflow.hooks import CdcHook
    from cdc_lib.model.merge_plan import Cut
    from cdc_lib.model.results import AckResult
    from cdc_lib.pipeline import Pipeline


class AckDrainOperator(CdcOperator):
    """Move the drain cursor over what is durable."""

    def work(self, hook: CdcHook, context: Context) -> dict[str, Any]:
        """Return from where to where it moved."""
        from cdc_lib.model.cursor import DRAIN

        pipeline = hook.pipeline()
        result = pipeline.ack_drain(by=self.by(context))
        if (drain := pipeline.cursor(DRAIN)) is not None:
            show(hook.config.source, quarantined_tables=len(drain.quarantined_tables))
        return self.summary(result)

    def summary(self, result: AckResult) -> dict[str, Any]:
        """Log an ack and return it as plain values."""
        self.log.info(
            "the %s cursor went from %s to %s: %s",
            result.consumer, result.start, result.stop,
            listed((result.windows, "window"), (result.chunks, "chunk")) or "nothing new",
        )  # fmt: skip
        if result.waiting:
            self.log.warning("not complete yet: %s in flight; the next run goes on", counted(result.waiting, "unit"))
        for one in result.quarantined:
            if one.fault is None:
                self.log.info("%s is read again: %s", one.table, one.why)
                continue
            self.log.warning(
                "%s is quarantined; its lake table is as of %s: %s [%s]. See cdc status; cdc quarantine resume brings it back",
                one.table, one.as_of, one.fault.reason, one.fault.position,
            )  # fmt: skip
        tables = [one.table for one in result.quarantined]
        return {**asdict(result), "start": str(result.start), "stop": str(result.stop), "quarantined": tables}


class AckLakeOperator(AckDrainOperator, SkipMixin):
    """Move the lake cursor to the cut that the merge published, and announce the tables that it changed.

    The events of a merge are emitted at least once: again when the task is done again, with the same ``merge_id``. Tasks that
    announce days are skipped while no day waits.
    """

    operator_extra_links = links(CutLink)

    def work(self, hook: CdcHook, context: Context) -> dict[str, Any]:
        """Return from where to where it moved."""
        pipeline = hook.lake_pipeline()
        result = pipeline.ack_lake(by=self.by(context))
        moved = bool(result.windows or result.chunks)
        planned = context["ti"].xcom_pull(task_ids="plan_merge")
        cut = merged_cut(pipeline, planned, moved=moved)
        if cut is not None:
            for uri in announce(cut, context["outlet_events"], cut_context(pipeline, cut)):
                self.log.info("changed: %s", uri)
            if moved:  # an ack that is done again has no rows
                _count_rows(cut)
        summary = self.summary(result)
        after = self.downstream_list if self.downstream_task_ids else ()
        days = [task for task in after if getattr(task, "announces_days", False)]
        if days and not day_waits(pipeline):
            # Airflow keeps no return value of a task that skips others.
            context["ti"].xcom_push(BaseXCom.XCOM_RETURN_KEY, summary)
            self.skip(context["ti"], days)
        return summary


def merged_cut(pipeline: Pipeline, planned: Mapping[str, Any] | None, *, moved: bool) -> Cut | None:
    """Return the cut to announce: that of this run's plan, or the last one when the merge was planned again or only the ack knows of it.

    Args:
        pipeline: whose store holds the cuts.
        planned: what `plan_merge` returned; nothing when it was marked success or had nothing to do.
        moved: whether the ack moved the cursor.
    """
    from cdc_lib.store.cuts import cut_of, last_cut

    cut = cut_of(pipeline.store, pipeline.config.source, str(planned["merge_id"])) if planned is not None else None
    if cut is not None:
        return cut
    # A merge that leaves a table out is planned again by its job, under another id.
    return last_cut(pipeline.store, pipeline.config.source) if moved else None


def cut_context(pipeline: Pipeline, cut: Cut) -> CutContext:
    """Return what the store knows beside a cut: no server is asked, so that the lag is at most what it says."""
    from cdc_lib.status.changed_rows import equal_tables
    from cdc_lib.status.holdings import HoldingsReader

    held = HoldingsReader(pipeline).read(datetime.now(UTC))
    lake = held.lake
    there = lake is not None and (lake.epoch, lake.position) == (cut.epoch, cut.position)
    return CutContext(
        gtid_set=lake.gtid_set if lake is not None and there and lake.gtids_known else "",
        lag_seconds=held.lag_seconds,
        verified=held.compared,
        changed={(one.table, one.lake_table): one for one in equal_tables(held.after_merge, held.verified)},
        covered={pair: one for pair, one in held.covered.items() if not one.wrong},
    )


def _count_rows(cut: Cut) -> None:
    """Send what a merge did as metrics."""
    show(cut.source, merge_seconds=cut.seconds)
    for table in cut.tables:
        if table.rows is not None:
            rows = table.rows
            counts = {"c": rows.inserts, "u": rows.updates, "d": rows.deletes, "r": rows.reads}
            for op, number in counts.items():
                count(cut.source, "rows_merged", number, table=table.table, op=op)
