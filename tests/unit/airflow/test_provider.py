"""What ``pip install`` brings to Airflow: connection types and the plugin, found by entry points."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest
from airflow.sdk import BaseHook

from cdc_airflow.get_provider_info import get_provider_info
from tests.harness.docs.package import ROOT, installed

HEAVY = ("boto3", "cdc_lib.pipeline", "numba", "numpy", "pandas", "pyarrow", "pymysql", "pymysqlreplication", "pyspark")

SEEN = """
import json
from airflow import plugins_manager
from airflow.api_fastapi.core_api.services.ui.connections import HookMetaService
from airflow.providers_manager import ProvidersManager
# First: in Airflow 3.1 it takes the place of packages of which the forms are made.
fields = {one.connection_type: sorted(one.extra_fields) for one in HookMetaService.hook_meta_data() if one.extra_fields}
providers = ProvidersManager()
if hasattr(plugins_manager, "_get_plugins"):
    plugins, errors = plugins_manager._get_plugins()
else:
    plugins_manager.ensure_plugins_loaded()
    plugins, errors = plugins_manager.plugins, plugins_manager.import_errors
hooks = {name: hook.hook_class_name for name, hook in providers.hooks.items() if hook and name.startswith("cdc_")}
print("SEEN", json.dumps({
    "provider": "lakecdc" in providers.providers,
    "hooks": hooks,
    "fields": fields,
    "plugins": [(one.name, type(one).__module__) for one in plugins],
    "errors": errors,
}))
"""


def test_the_provider_info_follows_the_schema_of_airflow():
    """Airflow refuses to start with a provider whose info does not."""
    schema = json.loads((files("airflow") / "provider_info.schema.json").read_text())
    jsonschema.validate(get_provider_info(), schema)


def test_the_classes_of_the_connection_types_are_there():
    """The type in the info is the type of the class."""
    for one in get_provider_info()["connection-types"]:
        module, _, name = one["hook-class-name"].rpartition(".")
        assert module in get_provider_info()["hooks"][0]["python-modules"]
        hook = getattr(importlib.import_module(module), name)
        assert (hook.conn_type, hook.hook_name) == (one["connection-type"], one["hook-name"])


def test_the_modules_that_the_provider_names_are_there():
    """A wrong name would be seen by whoever looks at the list of providers only."""
    info = get_provider_info()
    for kind in ("hooks", "operators", "triggers"):
        for module in info[kind][0]["python-modules"]:
            place = ROOT / "plugins" / module.replace(".", "/")
            assert place.with_suffix(".py").is_file() or (place / "__init__.py").is_file()


@pytest.mark.parametrize("module", ["get_provider_info", "connections", "spark_connections", "hooks", "plugin"])
def test_importing_what_airflow_imports_at_its_start_is_cheap(module: str):
    """Every process of Airflow imports these."""
    program = f"import sys, cdc_airflow.{module}; print(*(one for one in {HEAVY!r} if one in sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=paths())
    assert done.stdout.split() == []


def test_provider_info_imports_nothing_of_this_project():
    """It is asked for by every command of Airflow."""
    program = "import sys, cdc_airflow.get_provider_info; print(*(m for m in sys.modules if m.startswith(('cdc_', 'airflow'))))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=paths())
    assert sorted(done.stdout.split()) == ["cdc_airflow", "cdc_airflow.get_provider_info"]


@pytest.mark.parametrize("kind", [one["connection-type"] for one in get_provider_info()["connection-types"]])
def test_a_connection_may_be_a_uri(kind: str, monkeypatch: pytest.MonkeyPatch):
    """Airflow reads the hyphen of the scheme as what a scheme cannot have, as the page says."""
    scheme = kind.replace("_", "-")
    monkeypatch.setenv("AIRFLOW_CONN_BILLING_DB", f"{scheme}://cdc:PASSWORD@db.example.com:3306")
    found = BaseHook.get_connection("billing_db")
    assert (found.conn_type, found.host, found.port, found.login) == (kind, "db.example.com", 3306, "cdc")
    assert "AIRFLOW_CONN_BILLING_DB=cdc-mysql://cdc:" in (ROOT / "docs" / "guides" / "airflow.md").read_text()


def paths() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "plugins")))}


@pytest.mark.parametrize("folder", ["empty", "plugins"])
def test_an_installed_wheel_brings_connection_types_and_one_plugin(tmp_path: Path, folder: str):
    """Also beside the plugins folder of the checkout, which has the same plugin."""
    packages = installed(tmp_path / "installed")
    (tmp_path / "empty").mkdir()
    plugins = ROOT / "plugins" if folder == "plugins" else tmp_path / "empty"
    found = seen(["-S"], packages, tmp_path, plugins)
    assert found["provider"]
    assert set(found["hooks"]) == {"cdc_mysql", "cdc_store", "cdc_spark"}
    assert found["fields"]["cdc_mysql"] == ["hosts", "source_file", "tables", "tls", "tls_ca"]
    assert found["fields"]["cdc_store"] == ["ca", "endpoint_url", "hosts", "path_style", "region", "url"]
    assert [tuple(one) for one in found["plugins"] if one[0] == "cdc"] == [("cdc", "cdc_airflow.plugin")]
    assert found["errors"] == {}


def test_the_plugins_folder_alone_brings_the_plugin(tmp_path: Path):
    """A folder that is mounted into a plain Airflow, with nothing installed."""
    packages = installed(tmp_path / "installed")
    for one in (*packages.glob("lakecdc-*"), packages / "cdc_airflow"):
        shutil.rmtree(one)
    found = seen(["-S"], packages, tmp_path, ROOT / "plugins")
    assert not found["provider"]
    assert [tuple(one) for one in found["plugins"] if one[0] == "cdc"] == [("cdc", "cdc_airflow.plugin")]
    assert found["errors"] == {}


def seen(options: list[str], packages: Path, home: Path, plugins: Path) -> dict:
    env = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(packages),
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(plugins),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    }
    done = subprocess.run(
        [sys.executable, *options, "-c", SEEN], capture_output=True, text=True, env=env, cwd=home, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("SEEN ")]
    return json.loads(line.removeprefix("SEEN "))
