"""The merge task."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from cdc_airflow.airflow_versions import AirflowSkipException, conf
from cdc_airflow.hooks import CdcHook
from cdc_airflow.links import CutLink, SparkUiLink, links
from cdc_airflow.operators.base import CdcOperator
from cdc_airflow.operators.spark_job import SparkJobOperator
from cdc_lib.errors import CdcError
from cdc_lib.model.pace import counted

if TYPE_CHECKING:
    from airflow.sdk import Context

    from cdc_lib.model.merge_plan import MergePlan


class PlanMergeOperator(CdcOperator):
    """Adopt the merge that is in flight, or put one in flight for the batches that wait."""

    def work(self, hook: CdcHook, context: Context) -> dict[str, Any] | None:
        """Return the plan's id and bounds; None when there is nothing to merge."""
        plan = hook.lake_pipeline().plan_merge(by=self.by(context))
        if plan is None:
            self.log.info("nothing to merge")
            return None
        self.log.info(
            "merge %s: %s from %s to %s", plan.merge_id, counted(len(plan.batches), "batch"), plan.start, plan.stop
        )
        return {
            "merge_id": plan.merge_id,
            "start": str(plan.start),
            "stop": str(plan.stop),
            "batches": len(plan.batches),
        }


class MergeOperator(SparkJobOperator):
    """Merge what the lake cursor has in flight; skipped when it has nothing.

    The job adopts the plan from the cursor, so that it is the same merge whoever starts it, however often. Then rows that it changed
    are compared with the source, as ``verify.after_merge`` says: what is found, or why nothing could be compared, does not fail the
    task.
    """

    operator_extra_links = (*links(CutLink), SparkUiLink())

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._plan: MergePlan | None = None

    def work(self, hook: CdcHook, context: Context) -> None:
        """Run the job to its end.

        Raises:
            AirflowSkipException: there is nothing to merge.
            CdcError: that of the job.
        """
        by = self.by(context)
        self._plan = hook.lake_pipeline().plan_merge(by=by)
        if self._plan is None:
            raise AirflowSkipException("nothing to merge")
        conf_of_parent = (f"--spark-conf={name}={value}" for name, value in parent_properties(context).items())
        self.run_job(context, "merge", *conf_of_parent, by=by, handed=job_secrets(hook))
        self._compare(hook)

    def finished(self, context: Context, report: str | None, arguments: list[str]) -> None:  # noqa: ARG002 - a merge leaves none
        """Remember what was merged: the plan stays in flight until its ack."""
        hook = self.hook()
        self._plan = hook.lake_pipeline().plan_merge(by=self.by(context))
        self._compare(hook)

    def _compare(self, hook: CdcHook) -> None:
        """Compare rows that the merge changed with the source, and log what was found."""
        from cdc_airflow.connections import store_keys_of
        from cdc_lib.verify.after_merge import check_changed_rows, not_compared, said

        if not hook.config.verify.after_merge:
            return
        try:
            pipeline = hook.pipeline()
        except CdcError as error:
            self.log.warning("%s", not_compared(error.message))
            return
        after = check_changed_rows(pipeline, store_keys_of(hook.config))
        for is_warning, line in said(after):
            self.log.log(logging.WARNING if is_warning else logging.INFO, "%s", line)

    def get_openlineage_facets_on_complete(self, ti: Any) -> Any:  # noqa: ARG002 - OpenLineage's signature
        """Return what the merge read and wrote; the OpenLineage provider calls it, where it is installed.

        None when the job planned its work again under another id: what this one would have merged is not what was.
        """
        from cdc_airflow.lineage.openlineage import merge_lineage
        from cdc_lib.merge.plan import StoredBatch
        from cdc_lib.store.coverage import coverages
        from cdc_lib.store.cuts import cut_of
        from cdc_lib.store.manifests import load_manifest
        from cdc_lib.store.verified import last_verified

        if self._plan is None:
            return None
        pipeline = self.hook().lake_pipeline()
        cut = cut_of(pipeline.store, self._plan.source, self._plan.merge_id)
        if cut is None:
            return None
        batches = [StoredBatch(key, load_manifest(pipeline.store, key)) for key in self._plan.batches]
        store, source = pipeline.store, self._plan.source
        return merge_lineage(pipeline.config, cut, batches, last_verified(store, source), coverages(store, source))


def parent_properties(context: Context) -> dict[str, str]:
    """Return Spark's settings that name this task as the parent of the job's lineage; none unless Airflow is set to hand them on."""
    if not conf.getboolean("openlineage", "spark_inject_parent_job_info", fallback=False):
        return {}
    from airflow.providers.common.compat.openlineage.utils.spark import (
        inject_parent_job_information_into_spark_properties,
    )

    return {
        name: str(value) for name, value in inject_parent_job_information_into_spark_properties({}, context).items()
    }


def job_secrets(hook: CdcHook) -> dict[str, str]:
    """Return the secrets that only Airflow knows and the job may need, because it reads rows back from the source."""
    return hook.handed_on() if hook.config.reselect.is_on else hook.store_handed_on()
