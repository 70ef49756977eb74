"""The versions that pages, packages and Docker files name are those that the tests run."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import NamedTuple

import pyspark
import pytest
import yaml

from spark_jobs.runtime.jars import installed_spark, locked_jars
from tests.harness.docs.pages import ROOT
from tests.harness.servers.azure import PACKAGE
from tests.harness.servers.azure import VERSION as AZURITE
from tests.harness.servers.features import SINCE
from tests.harness.servers.gcs import VERSION as FAKE_GCS
from tests.harness.servers.s3 import VERSITYGW
from tests.harness.servers.versions import DEFAULT, KNOWN, MYSQL_JARS, UnknownVersion, chosen, release
from tests.harness.spark.versions import OTHERS

PAGE = (ROOT / "docs" / "operations" / "support-matrix.md").read_text()
LOCK = (ROOT / "requirements.lock").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
OF_THIS_SPARK = [jar for jar in locked_jars() if jar.spark in ("", installed_spark())]
JARS = {jar.name: jar.version for jar in OF_THIS_SPARK}
NAMES = {"mysql": "MySQL", "mariadb": "MariaDB"}


class Row(NamedTuple):
    part: str
    version: str
    command: str = ""
    tests: str = ""
    last_run: str = ""


def rows(section: str) -> list[Row]:
    """Return the table below a heading."""
    text = PAGE.partition(f"## {section}\n")[2].partition("\n## ")[0]
    lines = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    return [Row(*(cell.strip() for cell in cells)) for cells in lines[2:]]


TESTED, NOT_RUN = rows("Tested"), rows("Not run")


def versions(table: list[Row], part: str) -> list[str]:
    return [version for row in table if row.part == part for version in row.version.split(", ")]


def pin(package: str) -> str:
    """Return the version of a package that the tests run with."""
    (found,) = re.findall(rf"^{package}==([\d.]+)", LOCK, re.MULTILINE)
    return found


def test_a_recipe_for_a_cluster_that_no_test_runs_says_so():
    """The others name their test."""
    page = (ROOT / "docs" / "guides" / "spark-clusters.md").read_text()
    recipes = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL))
    (not_run,) = [row.version for row in NOT_RUN if row.part == "Spark"]
    for name in re.match(r"\[(.+?)\]", not_run)[1].split(", "):
        assert re.search(r"^\*\*Th(is|ese) recipes? ha(s|ve) not been run", recipes[name], re.MULTILINE), name
    for name, version in (("Standalone", "standalone cluster"), ("YARN", "YARN of")):
        (run,) = [row for row in TESTED if row.part == "Spark" and version in row.version]
        assert run.command.strip("`").split()[-1] in recipes[name]


@pytest.mark.parametrize("flavor", ["mysql", "mariadb"])
def test_the_servers_of_the_matrix_are_those_that_the_harness_starts(flavor):
    tested = versions(TESTED, NAMES[flavor])
    assert {".".join(map(str, release(version)[:2])) for version in tested} == set(KNOWN[flavor])
    for version in versions(NOT_RUN, NAMES[flavor]):
        assert version not in KNOWN[flavor]


@pytest.mark.parametrize("row", [row for row in TESTED if row.part in NAMES.values()], ids=lambda row: row.version)
def test_the_command_of_a_server_runs_that_version(row):
    flavor = next(flavor for flavor, name in NAMES.items() if name == row.part)
    series = ".".join(map(str, release(row.version)[:2]))
    default = series == DEFAULT[flavor]
    assert row.command == ("`./dev test`" if default else f"`./dev test-versions {flavor}={series}`")
    assert (row.tests == "all", row.last_run == "each change") == (default, default)
    assert row.tests in {"all", "core"}


def test_other_rows_say_when_their_command_ran():
    for row in TESTED:
        assert row.last_run == "each change" or re.fullmatch(r"\d{4}-\d{2}-\d{2}", row.last_run), row


def test_what_is_pinned_is_what_the_matrix_calls_tested():
    assert versions(TESTED, "Airflow")[0] == pin("apache-airflow")
    assert versions(TESTED, "Spark")[0] == pin("pyspark")
    assert versions(TESTED, "PyIceberg") == [pin("pyiceberg")]
    assert versions(TESTED, "Iceberg")[0] == JARS["iceberg"]
    assert JARS["mariadb-server"] in versions(TESTED, "MariaDB")
    assert f"versitygw {VERSITYGW} (S3)" in versions(TESTED, "store")
    assert f"fake-gcs-server {FAKE_GCS} (Google Cloud Storage)" in versions(TESTED, "store")
    assert f"Azurite {AZURITE} (Azure Blob Storage)" in versions(TESTED, "store")
    assert json.loads((PACKAGE / "package.json").read_text())["dependencies"] == {"azurite": AZURITE}


def test_what_reads_batches_is_of_the_hadoop_inside_pyspark():
    """Hadoop's clients of stores work with the same version of it only."""
    (client,) = Path(pyspark.__file__).parent.glob("jars/hadoop-client-api-*.jar")
    of_hadoop = {jar.version for jar in OF_THIS_SPARK if jar.group == "org.apache.hadoop"}
    assert of_hadoop == {client.stem.rpartition("-")[2]}


def test_other_sparks_of_the_matrix_are_those_that_the_suite_runs_with_their_iceberg():
    run = {row.version for row in TESTED if row.command.endswith("test_other_sparks.py`")}
    runtimes = {jar.spark: jar.version for jar in locked_jars() if jar.name == "iceberg"}
    assert run == {f"{spark} with Iceberg {runtimes[spark.rpartition('.')[0]]}" for spark in OTHERS}
    assert {spark.rpartition(".")[0] for spark in OTHERS} == set(runtimes) - {installed_spark()}


def test_servers_in_jars_are_in_the_lock():
    assert set(MYSQL_JARS.values()) <= set(JARS)


def test_pythons_that_install_are_in_the_matrix_and_classifiers_name_the_tested_ones():
    tested, not_run = versions(TESTED, "Python"), versions(NOT_RUN, "Python")
    low, high = re.fullmatch(r">=3\.(\d+),<3\.(\d+)", PROJECT["requires-python"]).groups()
    assert sorted([*tested, *not_run]) == [f"3.{minor}" for minor in range(int(low), int(high))]
    named = [one.rpartition(" ")[2] for one in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", one)]
    assert named == tested


def test_the_image_has_the_python_and_the_java_that_the_tests_run():
    dockerfile = (ROOT / "Dockerfile").read_text()
    assert re.search(r"FROM python:(3\.\d+)-", dockerfile)[1] in versions(TESTED, "Python")
    assert re.search(r"openjdk-(\d+)-", dockerfile)[1] in versions(TESTED, "Java")


def test_compose_starts_the_server_that_is_tested_and_no_floating_tag():
    images = {
        name: one["image"]
        for name, one in yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"].items()
    }
    (mysql,) = (version for version in versions(TESTED, "MySQL") if version.startswith(f"{DEFAULT['mysql']}."))
    assert images["mysql"] == f"mysql:{mysql}"
    assert images["s3"] == f"versity/versitygw:v{VERSITYGW}"


def test_the_readme_names_the_same_versions():
    paragraph = " ".join((ROOT / "README.md").read_text().partition("## Versions\n")[2].partition("\n## ")[0].split())
    for part in ("Airflow", "Spark", "Iceberg", "PyIceberg", "Python", "Java", "MySQL", "MariaDB"):
        (default,) = {
            row.version.split(", ")[0] for row in TESTED if row.part == part and row.last_run == "each change"
        }
        assert f"{part} {default}" in paragraph
    core = re.search(r"core tests also ran on MySQL ([\d., and]+) and on MariaDB ([\d., and]+\d)", paragraph)
    for flavor, text in zip(NAMES, core.groups(), strict=True):
        series = {".".join(map(str, release(version)[:2])) for version in re.findall(r"\d+(?:\.\d+)+", text)}
        assert series == set(KNOWN[flavor]) - {DEFAULT[flavor]}


def test_a_version_that_the_harness_cannot_start_is_refused(monkeypatch):
    monkeypatch.setenv("CDC_TEST_MYSQL", "5.7")
    with pytest.raises(UnknownVersion, match=r"CDC_TEST_MYSQL=5\.7: the versions are 8\.0, 9\.7"):
        chosen("mysql")


def test_a_feature_is_skipped_on_a_version_that_the_harness_starts():
    """An entry that every version has would say nothing."""
    for feature, since in SINCE.items():
        lacking = [one for flavor, first in since.items() for one in KNOWN[flavor] if release(one) < first[:2]]
        assert lacking or any(len(first) > 2 for first in since.values()), feature
