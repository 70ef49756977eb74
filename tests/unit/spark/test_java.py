"""How Java is started for Spark."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from cdc_lib.config.work import MergeConfig
from cdc_lib.errors import ConfigError
from spark_jobs.runtime.build_class_archive import make
from spark_jobs.runtime.class_archive import archive_of, archive_options
from spark_jobs.runtime.java_options import CODE_CACHE, QUICK_ROWS, java_options

ONE_THREAD = "-XX:+UseSerialGC"
QUICK = ("-XX:TieredStopAtLevel=1", CODE_CACHE)


@pytest.mark.parametrize(
    ("settings", "rows", "options"),
    [
        ({}, 0, [*QUICK, ONE_THREAD]),
        ({}, QUICK_ROWS, [*QUICK, ONE_THREAD]),
        ({}, QUICK_ROWS + 1, [ONE_THREAD]),
        ({"driver_memory": "4096M"}, 0, [*QUICK, ONE_THREAD]),
        ({"driver_memory": "5g"}, 0, [*QUICK]),
        ({"driver_memory": "1t"}, QUICK_ROWS + 1, []),
        ({"spark_master": "spark://host:7077"}, 0, []),
    ],
)
def test_java_options_depend_on_rows_and_memory(settings: dict[str, Any], rows: int, options: list[str]):
    """Many rows need the optimizing compiler, a large heap a parallel collector, and a cluster has its own settings."""
    merge = MergeConfig(**settings)
    assert java_options(merge.spark_master, merge.driver_memory, rows) == options


def test_java_uses_the_archive_of_its_class_path_if_it_exists(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Another class path has another archive; without an archive there is no option."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    one, other = [Path("iceberg.jar")], [Path("iceberg.jar"), Path("s3.jar")]
    archive = archive_of(one)
    assert archive is not None
    assert archive_options(one) == []
    archive.parent.mkdir()
    archive.touch()
    assert archive_options(one)[0] == f"-XX:SharedArchiveFile={archive}"
    assert archive_options(other) == []
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "another"))
    assert archive_options(one) == []


@pytest.mark.parametrize("script", ["sys.exit('no space left')", "pass"])
def test_a_failed_build_leaves_no_archive(tmp_path: Path, script: str):
    """A process that fails or writes nothing ends in an error that names the file."""
    archive = tmp_path / "classes" / "some.jsa"
    with pytest.raises(ConfigError, match="could not be kept"):
        make(archive, [sys.executable, "-c", f"import sys; {script}"])
    assert list(archive.parent.iterdir()) == []


def test_an_archive_gets_its_name_when_it_is_complete_and_is_built_once(tmp_path: Path):
    """If the archive exists, no process is started."""
    archive = tmp_path / "some.jsa"
    script = "import os, pathlib; pathlib.Path(os.environ['CDC_SPARK_ARCHIVE']).write_text('classes')"
    make(archive, [sys.executable, "-c", script])
    make(archive, [sys.executable, "-c", "raise SystemExit('started again')"])
    assert archive.read_text() == "classes"
    assert list(tmp_path.iterdir()) == [archive]
