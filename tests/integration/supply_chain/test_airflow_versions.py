"""The package in each version of Airflow that it supports, and in those that are too old: installed, not run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

from tests.harness.airflow.venv import REFUSED, ROOT, airflow_venv
from tests.harness.docs.package import metadata

LOOK = """
import importlib, json, pkgutil, sys
from airflow import plugins_manager
from airflow.providers_manager import ProvidersManager
try:
    from airflow.dag_processing.dagbag import DagBag
except ImportError:
    from airflow.models.dagbag import DagBag
import cdc_airflow

def broken():
    for module in pkgutil.walk_packages(cdc_airflow.__path__, "cdc_airflow.", onerror=lambda name: None):
        if module.name.startswith("cdc_airflow.lineage."):
            continue  # of the OpenLineage provider
        try:
            importlib.import_module(module.name)
        except Exception as error:
            yield module.name, f"{type(error).__name__}: {error}"

plugins = getattr(plugins_manager, "_get_plugins", lambda: None)()
if plugins is None:
    plugins_manager.ensure_plugins_loaded()
    plugins = plugins_manager.plugins, plugins_manager.import_errors
bag = DagBag(sys.argv[1], **({"include_examples": False} if "include_examples" in DagBag.__init__.__code__.co_varnames else {}))
print("SEEN", json.dumps({
    "provider": "lakecdc" in ProvidersManager().providers,
    "plugins": [one.name for one in plugins[0]],
    "errors": plugins[1],
    "dags": sorted(bag.dags),
    "import_errors": {name.rpartition("/")[2]: text for name, text in bag.import_errors.items()},
    "broken": dict(broken()),
}))
"""

OF_AIRFLOW_3_3 = ["cdc_airflow.retry_policy"]


def seen(version, folder, python=sys.executable):
    """Return what an Airflow of a version makes of the DAG files, the plugin and the provider, over one source."""
    sources = folder / "sources"
    sources.mkdir()
    (sources / "_defaults.yaml").write_text((ROOT / "dags" / "sources" / "_defaults.yaml").read_text())
    (sources / "shop.yaml").write_text(
        "server: {host: db.example.com, user: cdc, password_env: SHOP_PASSWORD}\ntables: [shop.*]\nschedule: on_change\n"
    )
    env = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join((metadata(folder / "metadata"), str(ROOT), str(ROOT / "plugins"))),
        "AIRFLOW_HOME": str(folder / "home"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "CDC_SOURCES": str(sources),
    }
    command = [str(airflow_venv(version, python=python)), "-c", LOOK, str(ROOT / "dags")]
    done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=folder, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("SEEN ")]
    return json.loads(line.removeprefix("SEEN "))


@pytest.mark.parametrize("version", ["3.1.8", "3.2.2"])
def test_an_older_airflow_3_has_every_module_the_plugin_and_the_dags(version, tmp_path):
    """The tests run in the newest one."""
    whole(seen(version, tmp_path))


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("version", ["3.1.7", "3.2.1", "3.3.1", "3.3.2"])
def test_a_managed_airflow_has_every_module_the_plugin_and_the_dags(version, tmp_path):
    """Cloud Composer has 3.1.7, MWAA 3.2.1 and 3.3.1, the newest official image 3.3.2: with the pins of their Python."""
    python = shutil.which("python3.12")
    if python is None:
        pytest.skip("no Python 3.12 on PATH")
    whole(seen(version, tmp_path, python), [] if version.startswith("3.3") else OF_AIRFLOW_3_3)


def whole(found, broken=OF_AIRFLOW_3_3):
    """Check what an Airflow has made, and which modules it cannot import."""
    assert list(found.pop("broken")) == broken
    assert found.pop("dags") == [
        "cdc_maintenance",
        "cdc_shop",
        *(
            f"cdc_shop.{kind}"
            for kind in ("answer", "backfill", "cover", "erase", "resume", "rewind", "snapshot", "verify")
        ),
    ]
    assert found == {"provider": True, "plugins": found["plugins"], "errors": {}, "import_errors": {}}
    assert "cdc" in found["plugins"]


@pytest.mark.parametrize("version", REFUSED)
def test_an_airflow_that_is_too_old_starts_and_says_what_it_needs(version, tmp_path):
    """As the import error of each DAG file and of the plugin; its other DAGs and providers go on."""
    found = seen(version, tmp_path)
    sentence = f"the DAGs and operators of lakecdc need Airflow 3.1 or later, and this is {version}"
    assert found["dags"] == []
    assert set(found["import_errors"]) == {"cdc_sources.py", "cdc_maintenance.py", "cdc_wrong_sources.py"}
    assert all(sentence in text for text in (*found["import_errors"].values(), *found["errors"].values()))
    assert found["errors"]
