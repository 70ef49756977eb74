"""The Spark server of docs/kubernetes: what Kubernetes, the command line, Spark and the source files take; off by default."""

from __future__ import annotations

import shlex
import shutil
import subprocess

import kubernetes_validate
import pytest
import yaml

from cdc_lib.config import load_sources
from cdc_lib.model.spark_master import is_in_one_process, master_problem
from spark_jobs.job import spark_conf
from tests.harness.docs.pages import ROOT, usage_problem
from tests.unit.docs.test_kubernetes_files import (
    FOLDER,
    KUBERNETES,
    KUSTOMIZATION,
    VALUES,
    assert_closed,
    assert_made,
)

SERVER, EXECUTORS = FOLDER / "spark-server", FOLDER / "spark-executors"
BY_NAME = {"containers", "env", "ports"}
"""Lists of a pod that kustomize merges by the name of what is in them; containers' ports by number, and other lists not at all."""


def rendered(folder):
    """Return the manifests of a folder as kustomize makes them, by kind and name: bases, resources, patches, namespace and image."""
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
    found = {}
    for name in kustomization["resources"]:
        path = folder / name
        found |= rendered(path.resolve()) if path.is_dir() else named(path)
    for patch in kustomization.get("patches", []):
        for key, values in named(folder / patch["path"]).items():
            found[key] = merged(found[key], values)
    images = {one["name"]: f"{one['newName']}:{one['newTag']}" for one in kustomization.get("images", [])}
    for (kind, _), manifest in found.items():
        manifest["metadata"]["namespace"] = kustomization["namespace"]
        for subject in manifest.get("subjects", []):
            subject["namespace"] = kustomization["namespace"]
        for container in pod_of(manifest)["containers"] if kind == "Deployment" else []:
            container["image"] = images.get(container["image"], container["image"])
    return found


def named(path):
    return {(one["kind"], one["metadata"]["name"]): one for one in yaml.safe_load_all(path.read_text())}


def merged(base, patch):
    """Return a strategic merge of a patch that removes nothing."""
    result = dict(base)
    for key, value in patch.items():
        if isinstance(value, dict) and isinstance(base.get(key), dict):
            result[key] = merged(base[key], value)
        elif key in BY_NAME and key in base:
            by_name = {one["name"]: one for one in base[key]}
            by_name |= {one["name"]: merged(by_name.get(one["name"], {}), one) for one in value}
            result[key] = list(by_name.values())
        else:
            result[key] = value
    return result


def pod_of(deployment):
    return deployment["spec"]["template"]["spec"]


def server_of(folder):
    (container,) = pod_of(rendered(folder)["Deployment", "spark-server"])["containers"]
    return container


def conf_of(container):
    return spark_conf([one.removeprefix("--conf=") for one in container["args"] if one.startswith("--conf=")], "--conf")


@pytest.mark.parametrize("folder", [SERVER, EXECUTORS], ids=lambda folder: folder.name)
def test_kubernetes_takes_each_manifest(folder):
    """With nothing in it that its schema does not know."""
    for manifest in rendered(folder).values():
        kubernetes_validate.validate(manifest, KUBERNETES, strict=True)


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
@pytest.mark.parametrize("folder", [SERVER, EXECUTORS], ids=lambda folder: folder.name)
def test_kustomize_makes_the_same(folder):
    """Of lists that it merges by name, the order does not count."""

    def ordered(value):
        if isinstance(value, dict):
            return {key: ordered(one) for key, one in value.items()}
        if isinstance(value, list):
            whole = [ordered(one) for one in value]
            return sorted(whole, key=lambda one: one["name"]) if value and "name" in (value[0] or ()) else whole
        return value

    done = subprocess.run(["kubectl", "kustomize", str(folder)], capture_output=True, text=True, check=True)
    theirs = {(one["kind"], one["metadata"]["name"]): one for one in yaml.safe_load_all(done.stdout)}
    assert {key: ordered(one) for key, one in theirs.items()} == {
        key: ordered(one) for key, one in rendered(folder).items()
    }


@pytest.mark.parametrize("folder", [SERVER, EXECUTORS], ids=lambda folder: folder.name)
def test_the_command_is_one_that_the_image_has(folder):
    """Its master is one that Spark takes, and the image the one of the CronJobs."""
    container = server_of(folder)
    assert usage_problem(shlex.join([*container["command"], *container["args"]])) is None
    (master,) = [one.removeprefix("--master=") for one in container["args"] if one.startswith("--master=")]
    assert master_problem(master) == ""
    assert is_in_one_process(master) == (folder == SERVER)
    (image,) = KUSTOMIZATION["images"]
    assert container["image"] == f"{image['newName']}:{image['newTag']}"


@pytest.mark.parametrize("folder", [SERVER, EXECUTORS], ids=lambda folder: folder.name)
def test_the_pod_has_no_more_rights_than_it_needs(folder):
    """Only the driver of other pods has a token of the Kubernetes API."""
    pod = pod_of(rendered(folder)["Deployment", "spark-server"])
    (container,) = pod["containers"]
    assert pod["automountServiceAccountToken"] is (folder == EXECUTORS)
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert f"useradd --uid {pod['securityContext']['runAsUser']} " in (ROOT / "Dockerfile").read_text()
    assert_closed(container["securityContext"])
    assert container["resources"]["limits"]["memory"] == container["resources"]["requests"]["memory"]
    assert [mount["mountPath"] for mount in container["volumeMounts"]] == [container["workingDir"]] == ["/tmp"]  # noqa: S108


def test_clients_reach_the_server_and_nobody_else_does():
    """The CronJobs and Airflow, by the address of the secret; the server listens at the default port, and asks for the token."""
    found = rendered(SERVER)
    service, policy = found["Service", "spark-server"]["spec"], found["NetworkPolicy", "spark-server"]["spec"]
    labels = found["Deployment", "spark-server"]["spec"]["template"]["metadata"]["labels"]
    assert service["selector"] == policy["podSelector"]["matchLabels"] == labels
    (port,) = server_of(SERVER)["ports"]
    assert port["containerPort"] == 8998
    assert [one["port"] for one in service["ports"]] == [8998]
    assert {one["port"] for rule in policy["ingress"] for one in rule["ports"]} == {port["name"]}
    args = server_of(SERVER)["args"]
    assert {"--host=0.0.0.0", "--token-env=CDC_SPARK_TOKEN"} <= set(args)
    assert not any(one.startswith("--port") for one in args)


def test_the_secret_switches_the_server_on_and_without_it_nothing_names_it():
    """One secret for both sides; the guide makes it in both namespaces."""
    (env,) = [one for one in server_of(SERVER)["env"] if "valueFrom" in one]
    secret = env["valueFrom"]["secretKeyRef"]
    for namespace in ("lakecdc", "airflow"):
        assert_made(secret["name"], namespace, "CDC_SPARK_TOKEN", "CDC_SPARK_SERVER")
    given = {"CDC_SPARK_SERVER": "http://spark-server.lakecdc:8998", "CDC_SPARK_TOKEN": "t"}
    (on,), (off,) = (load_sources(FOLDER / "sources", environ) for environ in (given, {}))
    assert on.config.merge.spark_server.url == given["CDC_SPARK_SERVER"]
    assert on.config.merge.spark_server.token_env == secret["key"]
    assert off.config.merge.spark_server is None
    assert yaml.safe_load(VALUES["extraEnvFrom"])[0]["secretRef"]["name"] == secret["name"]


def test_executors_and_driver_find_each_other():
    """The driver says who it is and where; its ports are those that the network policy opens; accounts and rights exist."""
    found, container = rendered(EXECUTORS), server_of(EXECUTORS)
    conf = conf_of(container)
    ports = {one["name"]: one["containerPort"] for one in container["ports"]}
    assert (conf["spark.driver.port"], conf["spark.driver.blockManager.port"]) == (
        str(ports["driver"]),
        str(ports["blocks"]),
    )
    rule = found["NetworkPolicy", "spark-executors"]["spec"]["ingress"][0]
    assert {one["port"] for one in rule["ports"]} == {"driver", "blocks"}
    variables = {one["name"] for one in container["env"]}
    assert {value[2:-1] for value in conf.values() if value.startswith("$(")} <= variables
    assert ("ServiceAccount", conf["spark.kubernetes.authenticate.executor.serviceAccountName"]) in found
    binding = found["RoleBinding", "spark-server"]
    assert (binding["roleRef"]["kind"], binding["roleRef"]["name"]) in found
    assert [one["name"] for one in binding["subjects"]] == [
        pod_of(found["Deployment", "spark-server"])["serviceAccountName"]
    ]


def test_the_executors_image_has_the_drivers_spark():
    """They exchange Java objects."""
    locked = (ROOT / "requirements.lock").read_text()
    image = conf_of(server_of(EXECUTORS))["spark.kubernetes.container.image"]
    assert f"pyspark=={image.rpartition(':')[2]} " in locked
