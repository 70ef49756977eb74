"""The manifests and values of docs/kubernetes: what Kubernetes, the command line and the source files take, and no secret."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from urllib.parse import urlsplit

import kubernetes_validate
import pytest
import yaml

from cdc_lib.config import load_sources
from tests.harness.docs.pages import ROOT, usage_problem

FOLDER = ROOT / "docs" / "kubernetes"
KUBERNETES = "1.30"
"""The oldest version that Airflow's chart supports."""
JOBS = yaml.safe_load((FOLDER / "cronjobs.yaml").read_text())["items"]
KUSTOMIZATION = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())
VALUES = yaml.safe_load((FOLDER / "airflow" / "values.yaml").read_text())
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
CRON_JOBS = {job["metadata"]["name"]: job for job in JOBS if job["kind"] == "CronJob"}
GUIDE = (ROOT / "docs" / "guides" / "kubernetes.md").read_text()
VERSION = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)[1]


def pod_of(job):
    return job["spec"]["jobTemplate"]["spec"]["template"]["spec"]


def container_of(job):
    (container,) = pod_of(job)["containers"]
    return container


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job["metadata"]["name"])
def test_kubernetes_takes_the_manifest(job):
    """With nothing in it that its schema does not know."""
    kubernetes_validate.validate(job, KUBERNETES, strict=True)


def test_a_manifest_that_is_wrong_is_found():
    wrong = json.loads(json.dumps(CRON_JOBS["billing-run"]))
    pod_of(wrong)["containers"][0]["enviroment"] = []
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, KUBERNETES, strict=True)


@pytest.mark.parametrize("name", CRON_JOBS)
def test_a_command_is_one_that_the_image_has(name):
    """The image has no entry point, as the services of the Compose file assume; the command's own parser reads its words."""
    container = container_of(CRON_JOBS[name])
    words = [*container["command"], *container["args"]]
    assert usage_problem(shlex.join(words)) is None
    assert words[-1 if words[-1] != "--yes" else -2] in [one.source for one in load_sources(FOLDER / "sources", {})]
    assert f"| `{name}` | `{shlex.join(words)}` |" in GUIDE


def test_every_step_that_airflow_schedules_has_a_cron_job():
    """Runs, maintenance, the removal of batches, and the comparison."""
    assert {" ".join(container_of(job)["args"][:-1]) for job in CRON_JOBS.values()} == {
        "run", "lake maintain", "batches gc billing", "verify", "doctor",
    }  # fmt: skip


@pytest.mark.parametrize("name", CRON_JOBS)
def test_a_pod_has_no_more_rights_than_it_needs(name):
    pod, container = pod_of(CRON_JOBS[name]), container_of(CRON_JOBS[name])
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert f"useradd --uid {pod['securityContext']['runAsUser']} " in (ROOT / "Dockerfile").read_text()
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is False
    assert_closed(container["securityContext"])
    assert container["resources"]["limits"]["memory"] == container["resources"]["requests"]["memory"]
    writable = [mount["mountPath"] for mount in container["volumeMounts"] if not mount.get("readOnly")]
    assert writable == ["/tmp"] == [container["workingDir"]]  # noqa: S108 - of the container


def assert_closed(context):
    assert context == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
    }  # fmt: skip


def variables_of_sources():
    """Return the variables with secrets that the source files name, and those that they need to load."""
    (loaded,) = load_sources(FOLDER / "sources", {})
    assert loaded.error is None
    config = loaded.config
    return {config.server.password_env, config.store.access_key_env, config.store.secret_key_env}


@pytest.mark.parametrize("name", CRON_JOBS)
def test_secrets_are_named_and_are_those_of_the_source_files(name):
    """By secretKeyRef; the guide makes each of them."""
    env = {one["name"]: one for one in container_of(CRON_JOBS[name])["env"]}
    secrets = {name: one["valueFrom"]["secretKeyRef"] for name, one in env.items() if "valueFrom" in one}
    password = {"BILLING_PASSWORD"} if name not in ("billing-maintain", "billing-gc") else set()
    assert set(secrets) == variables_of_sources() - {"BILLING_PASSWORD"} | password
    assert {name for name, one in env.items() if "value" in one} == {"HOME", "CDC_SOURCES"}
    assert container_of(CRON_JOBS[name])["envFrom"] == OF_A_SPARK_SERVER
    for secret in secrets.values():
        assert_made(secret["name"], "lakecdc", secret["key"])


def test_pods_reach_what_the_source_files_name_and_nothing_else():
    """By the ports of the source, of store and catalog over TLS, and of a Spark server; all pods have the label of the policy."""
    (policy,) = [one["spec"] for one in JOBS if one["kind"] == "NetworkPolicy"]
    labels = [job["spec"]["jobTemplate"]["spec"]["template"]["metadata"]["labels"] for job in CRON_JOBS.values()]
    assert all(one == policy["podSelector"]["matchLabels"] for one in labels)
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    assert "ingress" not in policy
    everywhere, served = policy["egress"]
    (loaded,) = load_sources(FOLDER / "sources", {})
    catalog = urlsplit(loaded.config.lake.uri)
    assert (catalog.scheme, catalog.port, loaded.config.store.endpoint_url) == ("https", None, None)
    assert {one["port"] for one in everywhere["ports"]} == {53, 443, loaded.config.server.port}
    assert served["to"] == [{"podSelector": {"matchLabels": {"app": "spark-server"}}}]
    assert served["ports"] == [{"port": 8998}]


OF_A_SPARK_SERVER = [{"secretRef": {"name": "spark-server", "optional": True}}]
"""Without the secret, the pods are as if nothing named it."""


def assert_made(secret, namespace, *keys):
    (line,) = re.findall(rf"^kubectl create secret generic {secret} --namespace {namespace} .*$", GUIDE, re.MULTILINE)
    assert set(keys) <= set(re.findall(r"--from-(?:file|literal)=([\w-]+)", line))


def test_the_source_files_are_mounted_where_the_command_looks():
    """All of the folder, by the kustomization."""
    (generated,) = KUSTOMIZATION["configMapGenerator"]
    assert {FOLDER / name for name in generated["files"]} == {*(FOLDER / "sources").iterdir()}
    assert all((FOLDER / name).is_file() for name in KUSTOMIZATION["resources"])
    for job in CRON_JOBS.values():
        (volume,) = [one for one in pod_of(job)["volumes"] if one.get("configMap") == {"name": generated["name"]}]
        (mount,) = [one for one in container_of(job)["volumeMounts"] if one["name"] == volume["name"]]
        assert {"name": "CDC_SOURCES", "value": mount["mountPath"]} in container_of(job)["env"]


def test_the_compose_file_and_the_manifests_use_one_image():
    """The same name, built from the same Dockerfile, which sets no entry point; the tag is the version of the package."""
    ours = {service["image"] for service in COMPOSE["services"].values() if service.get("build") == "."}
    (image,) = KUSTOMIZATION["images"]
    assert {name.partition(":")[0] for name in ours} == {image["name"]}
    assert {container_of(job)["image"] for job in CRON_JOBS.values()} == {image["name"]}
    assert image["newTag"] == VALUES["images"]["airflow"]["tag"] == VERSION
    assert f"docker build --tag {image['newName']}:{VERSION} ." in GUIDE
    for dockerfile in (ROOT / "Dockerfile", FOLDER / "airflow" / "Dockerfile"):
        assert not re.search("^ENTRYPOINT|^CMD", dockerfile.read_text(), re.MULTILINE)
    assert not any("entrypoint" in one for one in COMPOSE["services"].values() if one.get("build") == ".")


def test_the_values_are_those_of_the_chart():
    """Its keys for Airflow 3; parts of a pod are checked with the schemas of Kubernetes."""
    airflow = re.search(r"^apache-airflow==([\d.]+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE)[1]
    assert VALUES["airflowVersion"] == airflow
    for name in COMPONENTS:
        container = {
            "name": "base", "image": "airflow", "env": VALUES["env"], "envFrom": yaml.safe_load(VALUES["extraEnvFrom"]), "volumeMounts": VALUES["volumeMounts"],
            "securityContext": VALUES["securityContexts"]["containers"], "resources": VALUES[name]["resources"],
        }  # fmt: skip
        pod = {
            "containers": [container], "volumes": VALUES["volumes"], "securityContext": VALUES["securityContexts"]["pod"],
        }  # fmt: skip
        whole = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name.lower()}, "spec": pod}
        kubernetes_validate.validate(whole, KUBERNETES, strict=True)
    assert_closed(VALUES["securityContexts"]["containers"])
    assert VALUES["securityContexts"]["pod"]["runAsNonRoot"] is True


COMPONENTS = ("workers", "scheduler", "dagProcessor", "triggerer", "apiServer")


def test_the_values_hold_no_secret_and_name_those_of_the_source_files():
    """No database and no user with a default password; the guide makes each secret."""
    assert {one["envName"] for one in VALUES["secret"]} == variables_of_sources()
    for one in VALUES["secret"]:
        assert_made(one["secretName"], "airflow", one["secretKey"])
    assert_made(VALUES["data"]["metadataSecretName"], "airflow", "connection")
    keys = {
        "fernetKeySecretName": "fernet-key",
        "apiSecretKeySecretName": "api-secret-key",
        "jwtSecretName": "jwt-secret",
    }
    for name, key in keys.items():
        assert_made(VALUES[name], "airflow", key)
    assert yaml.safe_load(VALUES["extraEnvFrom"]) == OF_A_SPARK_SERVER
    assert VALUES["postgresql"] == VALUES["createUserJob"]["defaultUser"] == {"enabled": False}


def test_airflow_knows_each_setting_of_the_values():
    """Its own, and those of the provider in this repository."""
    from airflow.configuration import conf

    from cdc_airflow.get_provider_info import get_provider_info

    ours = get_provider_info()["config"]
    for section, options in VALUES["config"].items():
        for option in options:
            assert option in ours.get(section, {}).get("options", {}) or conf.has_option(section, option), option


def test_the_image_for_the_chart_has_the_dags_and_source_files_where_the_values_say():
    """All that is copied exists, and the ignore file lets through just that."""
    text = (FOLDER / "airflow" / "Dockerfile").read_text()
    assert f"FROM apache/airflow:{VALUES['airflowVersion']}-python3.11\n" in text
    copies = [line.split()[1:] for line in text.splitlines() if line.startswith("COPY ")]
    copied = {source for *sources, _ in copies for source in sources}
    ignore = (FOLDER / "airflow" / "Dockerfile.dockerignore").read_text().splitlines()
    assert {line[1:] for line in ignore if line.startswith("!")} == copied
    assert all((ROOT / source).exists() for source in copied)
    folder = VALUES["config"]["core"]["dags_folder"]
    assert {Path(source).name for source in copied if source.startswith("dags/")} == {
        path.name for path in (ROOT / "dags").glob("*.py")
    }
    assert all(target == f"{folder}/" for *sources, target in copies if sources[0].startswith("dags/"))
    assert ["docs/kubernetes/sources", f"{folder}/sources"] in copies
    assert {"name": "CDC_SOURCES", "value": f"{folder}/sources"} in VALUES["env"]
    assert (
        f"docker build --file docs/kubernetes/airflow/Dockerfile --tag {VALUES['images']['airflow']['repository']}"
        in GUIDE
    )
