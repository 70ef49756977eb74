"""Other versions of Spark, in folders of the cache that come before the installed pyspark on Python's path.

``python -m tests.harness.spark.versions 4.0.1`` prints the folder of one.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from spark_jobs.runtime.jars import cache_dir, one_at_a_time

LOCKS = Path(__file__).parent
OTHERS = tuple(sorted(path.stem.removeprefix("pyspark-") for path in LOCKS.glob("pyspark-*.lock")))
"""Each has a lock beside this module, with pyspark and its py4j."""


def spark_folder(version: str) -> Path:
    """Return the folder of one of :data:`OTHERS`; it is installed if it is missing, in minutes."""
    folder = cache_dir() / f"spark-{version}"
    cache_dir().mkdir(parents=True, exist_ok=True)
    with one_at_a_time(cache_dir() / ".spark.lock"):
        if not folder.is_dir():
            with tempfile.TemporaryDirectory(dir=cache_dir(), prefix=".spark-") as scratch:
                command = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--require-hashes", "--no-deps"]
                command += ["--target", f"{scratch}/packages", "--requirement", str(LOCKS / f"pyspark-{version}.lock")]
                subprocess.run(command, check=True)
                Path(scratch, "packages").rename(folder)
    return folder


if __name__ == "__main__":
    print(spark_folder(sys.argv[1]))
