"""A worker whose clock is minutes ahead: its merge writes nothing, and says so."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from cdc_lib.merge.load import load_plan
from cdc_lib.model.merge_plan import MergePlan
from cdc_lib.pipeline import Pipeline
from cdc_lib.store import documents
from spark_jobs.merging.run import needs_spark
from tests.chaos.fork_server import ROOT
from tests.chaos.steps import Broken
from tests.harness.servers.skew import wrong_clock

SAYS = "WrongClock: this machine's clock is at "


@dataclass
class WrongWorkers:
    """Starts merges on workers whose clocks are ahead.

    Args:
        pipeline: of the source.
        plan: returns what the lake cursor has in flight.
        folder: for the jobs' files.
        random: the random generator.
        say: takes a line for each merge.
    """

    pipeline: Pipeline
    plan: Callable[[], MergePlan | None]
    folder: Path
    random: Random
    say: Callable[[str], None]

    def merge_with_a_clock_ahead(self) -> None:
        """Nothing may change; a worker whose clock is right merges it later."""
        pipeline, plan = self.pipeline, self.plan()
        if plan is None or not needs_spark(pipeline.config, pipeline.store, load_plan(pipeline.store, plan)):
            return
        ahead, folder = self.random.randrange(60, 900), self.folder / "wrong-workers" / secrets.token_hex(4)
        folder.mkdir(parents=True)
        (folder / "config.json").write_text(pipeline.config.model_dump_json())
        (folder / "plan.json").write_bytes(documents.dump(plan))
        self.say(f"a worker whose clock is {ahead} s ahead merges")
        before = self._lake_files()
        done = subprocess.run(
            [sys.executable, "-m", "tests.harness.lake.merge_job", "config.json", "plan.json"],
            cwd=folder,
            env={**os.environ, **wrong_clock(ahead), "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=600,
        )
        if done.returncode == 0 or SAYS not in done.stdout + done.stderr:
            raise Broken(
                f"a merge {ahead} s ahead ended with {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
            )
        if new := self._lake_files() - before:
            raise Broken(f"a merge whose clock is {ahead} s ahead wrote {sorted(new)[:5]}")

    def _lake_files(self) -> set[str]:
        warehouse = str(self.pipeline.config.lake.warehouse).removeprefix("file://")
        return {str(path) for path in Path(warehouse).rglob("*") if path.is_file()}
