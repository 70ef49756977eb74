"""``merge.spark_master``: what Spark takes is taken, and all else is one error of the source file."""

from __future__ import annotations

import pytest
import yaml
from typer.testing import CliRunner

from cdc_lib.cli.main import app
from cdc_lib.config import load_source
from cdc_lib.errors import ConfigError
from cdc_lib.model.spark_master import is_in_one_process, master_problem


@pytest.fixture
def refused(tmp_path):
    """Return the text of the error for a ``merge`` section that a source file must not have."""

    def _refused(**merge):
        document = {
            "server": {"host": "h", "user": "u", "password_env": "P"},
            "tables": ["shop.*"],
            "store": {"url": f"file://{tmp_path}/store"},
            "lake": {"type": "jdbc", "uri": f"jdbc:sqlite:{tmp_path}/cat.db", "warehouse": f"file://{tmp_path}/lake"},
            "merge": merge,
        }
        (tmp_path / "shop.yaml").write_text(yaml.safe_dump(document))
        with pytest.raises(ConfigError) as caught:
            load_source(tmp_path / "shop.yaml", {})
        return str(caught.value)

    return _refused


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*]", "local[2,3]", "local[*, 3]"])
def test_masters_in_one_process(master):
    assert master_problem(master) == ""
    assert is_in_one_process(master)


@pytest.mark.parametrize(
    "master",
    [
        "spark://master.internal:7077",
        "spark://[::1]:7077",
        "spark://first:7077,second:7078",
        "yarn",
        "k8s://https://kubernetes.default.svc",
        "k8s://https://10.0.0.1:6443",
        "k8s://http://127.0.0.1:8001",
        "k8s://10.0.0.1:6443",
        "k8s://https://rancher.internal/k8s/clusters/c-1",
        "local-cluster[2,1,1024]",
    ],
)
def test_masters_with_executors_elsewhere(master):
    """Those of ``local-cluster`` are processes of their own, which need the jars as on a cluster."""
    assert master_problem(master) == ""
    assert not is_in_one_process(master)


@pytest.mark.parametrize(
    "master",
    [
        "nonsense", "local2", "local[2", "local[0]", "local[two]", "local[2 ]", "spark://host", "spark://", "sparky", "yarn-client",
        "YARN", "mesos://h:5050", "k8s", "k8s://ftp://h", "http://spark.internal:8998", " yarn",
    ],
)  # fmt: skip
def test_what_spark_does_not_take_is_refused_with_what_it_takes(master, refused):
    """Spark 4.1 ends with a trace of Java for each of them."""
    text = refused(spark_master=master)
    assert "merge.spark_master: must be local[N], spark://host:port, yarn or k8s://https://host:port" in text
    assert f"(given {master!r})" in text
    assert text.count("\n") == 1  # one error


@pytest.mark.parametrize("address", ["sc://localhost", "sc://spark.internal:15002/;use_ssl=true"])
def test_spark_connect_is_refused_and_the_error_names_what_to_use(address, refused):
    text = refused(spark_master=address)
    assert "Spark Connect (sc://) is not supported, " in text
    assert "merge.spark_server" in text
    assert "local[N], spark://host:port, yarn or k8s://https://host:port" in text
    assert text.count("\n") == 1


@pytest.mark.parametrize("name", ["spark.master", "spark.remote"])
def test_no_setting_takes_the_place_of_the_master(name, refused):
    """It would go past the check, and past what is derived from the master."""
    assert f"merge.conf: {name} must not be set here; set merge.spark_master" in refused(conf={name: "sc://h"})


def test_a_spark_server_does_not_start_with_such_a_master():
    result = CliRunner().invoke(app, ["spark", "serve", "--master", "sc://localhost"])
    assert result.exit_code == 2
    assert "--master sc://localhost is not a master that a Spark server can use" in " ".join(result.output.split())
