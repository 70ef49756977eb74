from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import pytest
import yaml
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from cdc_lib.config import load_source
from spark_jobs.runtime.jars import locked_jars
from spark_jobs.server.__main__ import SERVER_JARS, SPARK_SECRET

ROOT = Path(__file__).parents[2]
COMPOSE = ROOT / "docker-compose.yml"
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
VARIABLE = re.compile(r"\$\{(\w+)")
REFERENCE = re.compile(r"\$\$|\$\{(?P<name>\w+)(?P<rest>[^}]*)\}|\$")

Seconds = Annotated[str, StringConstraints(pattern=r"^\d+s$")]
Loopback = Annotated[str, StringConstraints(pattern=r"^127\.0\.0\.1:\d+:\d+$")]


class Strict(BaseModel):
    """A part of the file: a key that is not known here is a mistake or a new decision, and either must be looked at."""

    model_config = ConfigDict(extra="forbid", strict=True)


class HealthCheck(Strict):
    test: Annotated[list[str], Field(min_length=2)]
    interval: Seconds
    timeout: Seconds
    retries: int
    start_period: Seconds = "0s"


class Dependency(Strict):
    condition: Literal["service_healthy"]


class Mount(Strict):
    source: str
    target: str


class Service(Strict):
    image: Annotated[str, StringConstraints(pattern=r"^[a-z/]+:[\w.]+(@sha256:[0-9a-f]{64})?$")]
    healthcheck: HealthCheck
    restart: Literal["unless-stopped"]
    command: list[str] = []
    entrypoint: list[str] = []
    environment: dict[str, str] = {}
    ports: list[Loopback] = []
    volumes: list[Annotated[str, StringConstraints(pattern=r"^([\w./-]+:/[\w/]+(:ro)?|/tmp)$")]] = []
    cap_drop: list[Literal["ALL"]] = []
    security_opt: list[Literal["no-new-privileges:true"]]
    read_only: bool = False
    working_dir: Literal["/tmp"] | None = None  # noqa: S108 - of the container
    configs: list[Mount] = []
    depends_on: dict[str, Dependency] = {}
    build: str | None = None
    init: bool = False
    stop_signal: Literal["SIGINT"] | None = None
    stop_grace_period: Seconds | None = None


class Content(Strict):
    content: str


class Compose(Strict):
    name: str
    services: dict[str, Service]
    configs: dict[str, Content]
    volumes: dict[str, None]


def raw() -> dict[str, Any]:
    document = yaml.safe_load(COMPOSE.read_text())
    return {key: value for key, value in document.items() if not key.startswith("x-")}


def environment(service):
    """The variables of a service as its processes would see them, with a text in the place of each secret."""
    return {name: REFERENCE.sub("secret", value) for name, value in service.environment.items()}


@pytest.fixture(scope="module")
def compose():
    return Compose.model_validate(raw())


@pytest.fixture(scope="module")
def references():
    """Every reference to a variable in the file, as (name, what follows the name)."""
    found = [match for match in REFERENCE.finditer(COMPOSE.read_text()) if match[0] != "$$"]
    assert all(match["name"] for match in found), "a lone $ is not a reference"
    return [(match["name"], match["rest"]) for match in found]


def test_the_file_says_nothing_that_is_not_known(compose):
    """Each service is healthy or not, restarts, and publishes its ports on the loopback interface only."""
    assert set(compose.services) == {"mysql", "s3", "spark-master", "spark-worker", "spark-server", "airflow"}


def test_containers_have_no_more_rights_than_they_need(compose):
    """MySQL's own image starts as root. Others write to /tmp and to volumes only."""
    for name, service in compose.services.items():
        assert service.security_opt == ["no-new-privileges:true"]
        assert (service.cap_drop, service.read_only) == (([], False) if name == "mysql" else (["ALL"], True))
        assert ("/tmp" in service.volumes) == (service.build == ".")  # noqa: S108 - of the container


def test_processes_of_spark_know_each_other(compose):
    """By a secret that daemons read with this setting, and the server always."""
    for name in ("spark-master", "spark-worker", "spark-server"):
        assert SPARK_SECRET in compose.services[name].environment
        daemon = compose.services[name].environment.get("SPARK_DAEMON_JAVA_OPTS")
        assert daemon == (None if name == "spark-server" else "-Dspark.authenticate=true")


def test_no_secret_has_a_default(references):
    """Each is asked for by name, and the message says where to put it."""
    for name, rest in references:
        assert rest == f":?set {name} in .env"


def test_no_secret_is_in_the_file(compose):
    """Whatever is called a key, a secret or a password is taken from the environment."""
    for service in compose.services.values():
        for name, value in service.environment.items():
            if re.search("KEY|SECRET|PASSWORD|TOKEN", name) and not name.endswith("_FILE"):
                assert REFERENCE.fullmatch(value), f"{name} holds a literal"


def test_the_example_names_exactly_the_variables_that_are_asked_for(references):
    """With no values, and git leaves the copy alone."""
    lines = [line for line in (ROOT / ".env.example").read_text().splitlines() if line and line[0] != "#"]
    assert all(line.endswith("=") for line in lines)
    assert sorted(line[:-1] for line in lines) == sorted({name for name, _ in references})
    assert "/.env" in (ROOT / ".gitignore").read_text().splitlines()


def test_every_volume_mount_and_config_exists(compose):
    """Folders of the project are mounted for reading only; named volumes are declared and used."""
    used = set()
    for service in compose.services.values():
        for volume in service.volumes:
            source = volume.split(":")[0]
            if source.startswith("."):
                assert (ROOT / source).is_dir(), source
                assert volume.endswith(":ro"), volume
            elif ":" in volume:
                used.add(source)
    assert used == set(compose.volumes)
    assert {mount.source for service in compose.services.values() for mount in service.configs} == set(compose.configs)


def test_whatever_is_waited_for_is_a_service(compose):
    """And is waited for until it is healthy."""
    for service in compose.services.values():
        assert set(service.depends_on) <= set(compose.services)


def test_published_ports_do_not_collide(compose):
    """Each port of the machine is taken once."""
    ports = [port.split(":")[1] for service in compose.services.values() for port in service.ports]
    assert len(ports) == len(set(ports))


def test_every_airflow_setting_is_one_that_airflow_knows(compose):
    """A misspelt one would be ignored in silence."""
    spec = importlib.util.find_spec("airflow")
    if spec is None:
        pytest.skip("no Airflow in this environment")
    assert spec.origin is not None
    known = yaml.load((Path(spec.origin).parent / "config_templates" / "config.yml").read_text(), Loader=LOADER)  # noqa: S506 - a safe one either way
    settings = [name for name in compose.services["airflow"].environment if name.startswith("AIRFLOW__")]
    assert settings
    for name in settings:
        _, section, option = name.lower().split("__", 2)
        assert option in known[section]["options"], name


def test_every_variable_of_ours_is_one_that_a_source_reads(compose):
    """And with them the demo's source follows the servers of this file."""
    environ = environment(compose.services["airflow"])
    sources = ROOT / "dags" / "sources"
    shop = load_source(sources / "shop.yaml", environ)
    read = {name for path in sources.glob("*.yaml") for name in VARIABLE.findall(str(yaml.safe_load(path.read_text())))}
    server = shop.merge.spark_server
    named = {shop.server.password_env, server.token_env}
    # The master of the Spark server is its own option.
    assert {name for name in environ if name.startswith("CDC_")} == (read | named) - {"CDC_SPARK_MASTER"}
    assert shop.server.host in compose.services
    assert urlsplit(shop.store.endpoint_url).hostname in compose.services
    served = compose.services[urlsplit(server.url).hostname]
    assert served.command[:3] == ["cdc", "spark", "serve"]
    assert served.command[served.command.index("--token-env") + 1] == server.token_env in served.environment
    assert urlsplit(served.command[served.command.index("--master") + 1]).hostname in compose.services
    assert f"catalog:{catalog_folder(compose)}" in served.volumes
    bucket = shop.store.bucket
    assert urlsplit(shop.lake.warehouse).netloc == bucket
    assert f"mkdir -p /data/{bucket} " in compose.services["s3"].entrypoint[-1]
    assert f"jdbc:sqlite:{catalog_folder(compose)}/" in shop.lake.uri


def catalog_folder(compose):
    (mount,) = [volume for volume in compose.services["airflow"].volumes if volume.startswith("catalog:")]
    return mount.split(":")[1]


def test_the_server_writes_what_the_drain_needs(compose):
    """The settings that the preflight asks for, and the user's grants."""
    mysql = compose.services["mysql"]
    assert {"--binlog-format=ROW", "--binlog-row-image=FULL", "--binlog-row-metadata=FULL"} <= set(mysql.command)
    user = environment(compose.services["airflow"])["CDC_DEMO_USER"]
    assert mysql.environment["MYSQL_USER"] == user
    assert f"TO '{user}'@'%'" in compose.configs["grants"].content


def instructions(name):
    """Instructions of the Dockerfile with this name, with lines that continue joined."""
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    return [line.split(maxsplit=1)[1] for line in text.splitlines() if line.startswith(f"{name} ")]


def test_everything_that_is_copied_into_the_image_exists_and_reaches_the_build(compose):
    """The ignore file lets through what is copied, and nothing else."""
    assert {service.build for service in compose.services.values()} == {None, "."}
    copied = {source for line in instructions("COPY") for source in line.split()[:-1]}
    assert all((ROOT / source).exists() for source in copied)
    let_through = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert let_through == copied


def test_the_image_installs_what_is_locked_and_runs_without_root():
    """With hashes, with nothing resolved, and with jars that the lock names: all of a Spark server, which may not be able to fetch any."""
    (locked,) = [line for line in instructions("RUN") if "requirements.lock" in line]
    assert "--require-hashes" in locked
    assert "--no-deps" in locked
    assert instructions("USER") == ["cdc"]
    names = {jar.name for jar in locked_jars()}
    (fetched,) = [re.findall(r'"(\w+)"', line) for line in instructions("RUN") if "jar_paths" in line]
    assert set(SERVER_JARS) <= set(fetched) <= names


def test_the_image_has_a_python_that_the_project_supports():
    """As pyproject.toml says it."""
    (base,) = instructions("FROM")
    match = re.fullmatch(r"python:3\.(\d+)-slim-bookworm", base)
    assert match
    text = (ROOT / "pyproject.toml").read_text()
    supported = re.search(r'^requires-python = ">=3\.(\d+),<3\.(\d+)"$', text, re.MULTILINE)
    assert supported
    assert int(supported[1]) <= int(match[1]) < int(supported[2])
