"""Runs one merge in its own process: ``python -m tests.harness.lake.merge_job CONFIG.json PLAN.json``."""

from __future__ import annotations

import sys
from pathlib import Path

from cdc_lib.config.source import SourceConfig
from cdc_lib.model.merge_plan import MergePlan
from cdc_lib.store import documents
from cdc_lib.store.objects.open import open_store
from spark_jobs.merging.run import run

if __name__ == "__main__":
    config = SourceConfig.model_validate_json(Path(sys.argv[1]).read_text())
    plan = documents.load(MergePlan, Path(sys.argv[2]).read_bytes(), sys.argv[2])
    cut = run(config, plan, open_store(config.store))
    print("CUT", cut.merge_id, len(cut.tables))
    print("SPARK", "pyspark.sql" in sys.modules and bool(sys.modules["pyspark"].SparkContext._gateway))
