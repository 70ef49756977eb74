"""The task that reads a window or snapshots; a run has one for each unit in flight."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, cast

from cdc_airflow.airflow_versions import AirflowSkipException
from cdc_airflow.gauges import show
from cdc_airflow.hooks import CdcHook
from cdc_airflow.links import WindowLink, links
from cdc_airflow.operators.base import CdcOperator
from cdc_airflow.units import NOTHING, SHARE, snapshots_of, title_of, title_of_share
from cdc_lib.errors import CdcError
from cdc_lib.model.pace import counted, listed

if TYPE_CHECKING:
    from airflow.sdk import Context

    from cdc_lib.model.window import DrainUnit
    from cdc_lib.pipeline import Pipeline

MAP_INDEX = "{{ unit_title }}"
"""``map_index_template`` of mapped drain tasks."""


class DrainOperator(CdcOperator):
    """Read one unit, or a share of many snapshots, and write its batches; a batch that is there already is left as it is.

    Args:
        unit: a window, a snapshot task or a share, as :class:`PlanOperator` returned it.
    """

    operator_extra_links = links(WindowLink)

    def __init__(self, *, unit: dict[str, Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.unit = unit
        self._drained_units: list[DrainUnit] = []
        self.window_id: str | None = None
        """Id of the window that was read, or tried; None before it is known, and of snapshots."""

    def work(self, hook: CdcHook, context: Context) -> dict[str, Any]:
        """Return what was written.

        A table of a share that needs a person keeps no other from being read. The task fails after the last one. Snapshots are
        read until the run is ``snapshot.run_for`` old, and at least one chunk of one table; the next run goes on.
        """
        from cdc_lib.model.cursor import DRAIN
        from cdc_lib.store.documents import unit_from_plain

        if self.unit.get("kind") == NOTHING:
            cast("dict[str, Any]", context)["unit_title"] = "nothing"
            raise AirflowSkipException("the plan of this run was made again and has no work for this task")
        pipeline = hook.pipeline()
        run = context.get("dag_run")
        began = run.start_date if run is not None and run.start_date is not None else datetime.now(UTC)
        until = hook.config.snapshot.until(began)
        if self.unit.get("kind") != SHARE:
            unit = unit_from_plain(self.unit)
            self.window_id = unit.id if self.unit.get("kind") == "window" else None
            return self._drained(pipeline, unit, context, title_of(unit), until)
        tasks = snapshots_of(self.unit, pipeline.cursor(DRAIN))
        title = title_of_share(tasks)
        pipeline = pipeline.for_snapshots()
        cast("dict[str, Any]", context)["unit_title"] = title  # also if no snapshot is left
        failed: list[CdcError] = []
        done: list[dict[str, Any]] = []
        for task in tasks:
            if done and until is not None and until <= datetime.now(UTC):
                self.log.info(
                    "the next run goes on: this one read %d of %s", len(done), counted(len(tasks), "snapshot")
                )
                break
            try:
                done.append(self._drained(pipeline, task, context, title, until))
            except CdcError as error:
                if error.retryable:
                    raise  # the next table would most likely meet the same
                failed.append(error)
                self.log.error("%s: %s", title_of(task), error.message)  # noqa: TRY400 - Airflow logs the traceback of the first
        if failed:
            self.log.error("%d of %s failed; the first error follows", len(failed), counted(len(tasks), "snapshot"))
            raise failed[0]
        sums = {name: sum(one[name] for one in done) for name in ("batches", "rows", "bytes", "events", "seconds")}
        return {"snapshots": len(done), **sums, "quarantined": [table for one in done for table in one["quarantined"]]}

    def get_openlineage_facets_on_complete(self, ti: Any) -> Any:  # noqa: ARG002 - OpenLineage's signature
        """Return what was read and which batches hold it; the OpenLineage provider calls it, where it is installed.

        It also asks after a task that failed: then for the snapshots of a share that were read. None when nothing was.
        """
        from cdc_airflow.lineage.openlineage import drain_lineage
        from cdc_lib.store.manifests import manifests_of

        if not self._drained_units:
            return None
        pipeline = self.hook().lake_pipeline()
        found = [one for unit in self._drained_units for one in manifests_of(pipeline.store, unit)]
        return drain_lineage(pipeline.config, found) if found else None

    def _drained(
        self, pipeline: Pipeline, unit: DrainUnit, context: Context, title: str, until: datetime | None
    ) -> dict[str, Any]:
        """Drain one unit, log and count it."""
        from cdc_lib.model.window import Window
        from cdc_lib.store.layout import manifest_key
        from cdc_lib.store.manifests import find_manifest

        named = cast("dict[str, Any]", context)
        named["unit_title"] = title  # names the mapped task; see map_index_template
        result = pipeline.drain(unit, until=until)
        self._drained_units.append(unit)
        if isinstance(unit, Window):
            named["unit_title"] = title_of(unit, find_manifest(pipeline.store, manifest_key(unit)))
        kind = "window" if isinstance(unit, Window) else "snapshot"
        figures = {"rows": result.rows, "bytes": result.bytes, "seconds": result.seconds}
        show(unit.source, **{f"{kind}_{name}": value for name, value in figures.items()})
        self.log.info(
            "%s: %s", title_of(unit),
            listed((result.batches, "batch"), (result.rows, "row"), (result.events, "event"), (result.bytes, "byte")) or "nothing new",
        )  # fmt: skip
        for one in result.quarantined:
            self.log.warning("%s is left out: %s [%s]", one.table, one.fault.reason, one.fault.position)
        return {**asdict(result), "quarantined": [one.table for one in result.quarantined]}
