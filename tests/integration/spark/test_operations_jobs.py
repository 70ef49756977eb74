"""Stops of docs/operations.md of the Spark job as a process of its own: what the page says lets it merge, to equal tables."""

from __future__ import annotations

import os
import site
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.docs.pages import ROOT
from tests.harness.shop.source import PAGE, Shop, over_the_running_spark

KILLED = "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n"
BROKEN = "raise ImportError('half of this package is missing')\n"


@pytest.fixture
def shop(any_server, database, tmp_path, lake, monkeypatch):
    """A shop whose batches wait for their merge."""
    monkeypatch.setenv("WAYS_PASSWORD", any_server.cdc_password)
    shop = Shop(any_server, database, tmp_path, lake)
    shop.write(merge={"driver_memory": "1g"})
    shop.drain()
    return shop


def merge(shop, *options, first_on_path="", code=1):
    """Run ``cdc step merge shop`` in its own process; returns what it prints."""
    path = os.pathsep.join(filter(None, (str(first_on_path), str(ROOT))))
    command = [
        sys.executable,
        *options,
        "-m",
        "cdc_lib.cli",
        "--sources",
        str(shop.folder / "sources"),
        "step",
        "merge",
        "shop",
    ]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False, cwd=shop.folder
    )
    assert done.returncode == code, done.stdout + done.stderr
    return " ".join((done.stdout + done.stderr).split())


def says(printed, message):
    """Whether a message of the page was printed."""
    return f"`{message}`" in PAGE and all(part.strip() in printed for part in message.split("…"))


def package(folder, text):
    """Make a package pyspark in a folder for PYTHONPATH."""
    (folder / "pyspark").mkdir(parents=True)
    (folder / "pyspark" / "__init__.py").write_text(text)
    return folder


def without_pyspark(folder):
    """Make a folder of all installed packages but pyspark."""
    folder.mkdir()
    for packages in site.getsitepackages():
        for one in Path(packages).iterdir():
            if one.name != "pyspark":
                (folder / one.name).symlink_to(one)
    return folder


def test_a_job_that_cannot_start_or_is_killed_is_reported_and_merges_afterwards(shop, monkeypatch):
    """Spark is missing, half installed or killed, or the catalog has no folder; then all is as the page says."""
    missing = without_pyspark(shop.folder / "packages")
    assert says(merge(shop, "-S", first_on_path=missing, code=2), "… needs …, which is not installed")
    printed = merge(shop, first_on_path=package(shop.folder / "broken", BROKEN))
    assert says(printed, "the Spark job ended with code …")
    assert "half of this package is missing" in printed  # the last lines of its output
    printed = merge(shop, first_on_path=package(shop.folder / "killed", KILLED))
    assert says(printed, "the Spark job was ended by signal …, possibly because it ran out of memory")
    uri = shop.settings["lake"]["uri"]
    (shop.folder / "file").touch()
    shop.write(lake={**shop.settings["lake"], "uri": f"jdbc:sqlite:{shop.folder}/file/cat/catalog.db"})
    assert says(merge(shop, code=2), "the folder of the lake's catalog cannot be made: …")
    shop.write(lake={**shop.settings["lake"], "uri": uri})
    merge(shop, code=0)
    over_the_running_spark(monkeypatch, shop.lake)
    shop.runs(1)
    shop.assert_equal()
