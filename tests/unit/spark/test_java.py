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
def test_java_compiles_little_for_little_work(settings: dict[str, Any], rows: int, options: list[str]):
    """Many rows are worth the optimizing compiler, a large heap several threads, and a cluster has its own settings."""
    assert java_options(MergeConfig(**settings), rows) == options


def test_java_maps_the_archive_of_its_class_path_where_there_is_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Another class path has another archive, and without one there is no option at all."""
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
def test_an_archive_that_is_not_written_leaves_nothing_behind(tmp_path: Path, script: str):
    """A process that fails, and one that writes nothing, end in an error that names the file."""
    archive = tmp_path / "classes" / "some.jsa"
    with pytest.raises(ConfigError, match="could not be kept"):
        make(archive, [sys.executable, "-c", f"import sys; {script}"])
    assert list(archive.parent.iterdir()) == []


def test_an_archive_gets_its_name_when_it_is_whole_and_is_made_once(tmp_path: Path):
    """The process is told where to write; where there is an archive, none is started."""
    archive = tmp_path / "some.jsa"
    script = "import os, pathlib; pathlib.Path(os.environ['CDC_SPARK_ARCHIVE']).write_text('classes')"
    make(archive, [sys.executable, "-c", script])
    make(archive, [sys.executable, "-c", "raise SystemExit('started again')"])
    assert archive.read_text() == "classes"
    assert list(tmp_path.iterdir()) == [archive]
