"""Counts the results of the main job: manifests, the last cut, runs of the DAG."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from cdc_lib.model.manifest import Manifest
from cdc_lib.pipeline import Pipeline
from cdc_lib.status.holdings import Holdings
from cdc_lib.status.overview import status_of
from cdc_lib.store import layout
from cdc_lib.store.documents import load
from demo.paths import DemoError
from demo.progress import Figures
from tests.harness.airflow.standalone import AirflowStandalone

DAG = "cdc_shop"


class RunMonitor:
    """Follows one run of the demo.

    Args:
        pipeline: pipeline of the shop; only read.
        air: the Airflow that runs its DAG.
    """

    def __init__(self, pipeline: Pipeline, air: AirflowStandalone) -> None:
        self.pipeline = pipeline
        self.air = air
        self.status: Holdings | None = None
        self._seen: set[str] = set()
        self._reported: set[tuple[str, str, int, int]] = set()
        self._figures = Figures()

    def look(self, doing: str, workload: int) -> Figures:
        """Return the newest figures.

        Raises:
            DemoError: a run of the DAG has failed; the message shows the task's log.
        """
        figures = self._figures
        figures.doing, figures.workload = doing, workload
        self._count_batches()
        self.status = status_of(self.pipeline)
        figures.lag, figures.not_merged = self.status.lag_seconds, self.status.pending_bytes
        figures.merged = len(self.status.cut.tables) if self.status.cut else 0
        runs = self.runs()
        figures.runs = [(_clock(run), run["state"], _took(run)) for run in runs]
        for run in runs:
            if run["state"] == "failed":
                raise DemoError(self._why(run["dag_run_id"]))
        return figures

    def troubles(self) -> list[str]:
        """Return failed tasks that will be retried, each failure once, with the end of its log."""
        texts = []
        for run in self.runs():
            if run["state"] != "running":
                continue
            for task in self.air.tasks(DAG, run["dag_run_id"]):
                name = (run["dag_run_id"], task["task_id"], task["map_index"], task["try_number"])
                if task["state"] == "up_for_retry" and name not in self._reported:
                    self._reported.add(name)
                    texts.append(f"{task['task_id']} will be tried again:\n{self._log_of(run['dag_run_id'], task, 12)}")
        return texts

    def runs(self) -> list[dict[str, Any]]:
        """Return the runs of this demo's Airflow, oldest first."""
        return self.air.dag_runs(DAG)

    def good_scheduled_runs(self) -> int:
        """Count the successful scheduled runs."""
        return sum(run["state"] == "success" and run["run_type"] == "scheduled" for run in self.runs())

    def merged_up_to(self, file: str, offset: int) -> bool:
        """Whether the lake has all changes before a binlog position, and all snapshots are complete."""
        status = self.status
        if status is None or status.lake is None or status.drain is None:
            return False
        at = status.lake.position
        number = int(file.rpartition(".")[2])
        return not status.drain.open_snapshots and (at.file_number, at.offset) >= (number, offset)

    def _count_batches(self) -> None:
        store, source = self.pipeline.store, self.pipeline.config.source
        for prefix in (layout.batches_prefix(source), layout.snapshots_prefix(source)):
            for info in store.list(prefix):
                if info.key in self._seen or not info.key.endswith(f"/{layout.MANIFEST}"):
                    continue
                self._seen.add(info.key)
                stored = store.get(info.key)
                if stored is not None:
                    self._add(load(Manifest, stored.data, info.key))

    def _add(self, manifest: Manifest) -> None:
        self._figures.rows += manifest.rows
        self._figures.windows += manifest.window is not None
        self._figures.chunks += manifest.chunk is not None

    def _why(self, run_id: str) -> str:
        for task in self.air.tasks(DAG, run_id):
            if task["state"] == "failed":
                return f"run {run_id} failed in {task['task_id']}:\n{self._log_of(run_id, task, 40)}"
        return f"run {run_id} failed"

    def _log_of(self, run_id: str, task: dict[str, Any], lines: int) -> str:
        log = self.air.task_log(DAG, run_id, task["task_id"], task["try_number"], task["map_index"])
        return "\n".join(log.splitlines()[-lines:])


def _clock(run: dict[str, Any]) -> str:
    return f"{datetime.fromisoformat(run['run_after']):%H:%M}"


def _took(run: dict[str, Any]) -> float | None:
    start, end = run.get("start_date"), run.get("end_date")
    if not (start and end):
        return None
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
