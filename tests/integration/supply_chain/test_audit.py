"""The audit by the real pip-audit, which asks a service of this machine that answers from advisories of the test."""

from __future__ import annotations

import json
import re
import zipfile

import pytest

from spark_jobs.runtime.jars import locked_jars
from tests.harness.docs.pages import ROOT
from tests.harness.servers.process import free_port
from tests.supply_chain import audit
from tests.supply_chain.advisories import Advisories

LOCK = (ROOT / "requirements.lock").read_text()
ICEBERG = next(jar for jar in locked_jars() if jar.name == "iceberg")


@pytest.fixture
def lock(tmp_path):
    """The first entries of the lock, with their hashes; asking about all takes longer."""
    file = tmp_path / "some.lock"
    file.write_text("\n".join(re.split(r"\n(?=\S)", LOCK)[:5]) + "\n")
    return file


def first(lock):
    name, version = re.match(r"([\w.-]+)==(\S+)", lock.read_text()).groups()
    return name, version


def advisory(number, ecosystem, name, **affected):
    return {
        "id": f"TEST-{number}", "aliases": [f"CVE-{number}"], "summary": "made for a test", "published": "2026-01-01T00:00:00Z",
        "affected": [{"package": {"ecosystem": ecosystem, "name": name}, **affected}],
    }  # fmt: skip


def archive(tmp_path, *advisories):
    file = tmp_path / "all.zip"
    with zipfile.ZipFile(file, "w") as zipped:
        for one in advisories:
            zipped.writestr(f"{one['id']}.json", json.dumps(one))
    return str(file)


def fixed_in(version):
    return {"ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": version}]}]}


def test_a_package_and_a_jar_with_an_advisory_are_found(tmp_path, lock, capsys):
    """And no other; the exit status is 1."""
    name, version = first(lock)
    file = archive(
        tmp_path,
        advisory(1, "PyPI", name, **fixed_in("9999.1")),
        advisory(2, "Maven", f"{ICEBERG.group}:{ICEBERG.artifact}", versions=[ICEBERG.version]),
        advisory(3, "PyPI", name, **fixed_in("0.0.1")),
        advisory(4, "Maven", f"{ICEBERG.group}:{ICEBERG.artifact}", versions=["0.1"]),
    )
    assert audit.main(["--offline", file, "--lock", str(lock)]) == audit.FOUND
    assert capsys.readouterr().out.splitlines() == [
        f"{name} {version}: CVE-1 TEST-1 fixed in 9999.1",
        f"{ICEBERG.group}:{ICEBERG.artifact} {ICEBERG.version}: TEST-2 CVE-2 made for a test",
    ]


def test_nothing_known_is_said_in_one_line(tmp_path, lock, capsys):
    file = archive(tmp_path, advisory(1, "PyPI", "nobody-has-this", versions=["1"]))
    assert audit.main(["--offline", file, "--lock", str(lock)]) == audit.CLEAN
    assert capsys.readouterr().out == "no known vulnerability\n"


def test_a_service_that_does_not_answer_is_no_clean_audit(lock, capsys):
    """The exit status is 2, and the way without the service is named."""
    address = f"http://127.0.0.1:{free_port()}/v1/query"
    assert audit.main(["--service", address, "--lock", str(lock)]) == audit.NOT_AUDITED
    said = capsys.readouterr()
    assert said.out == ""
    assert f"the vulnerability service {address} gave no answer" in said.err
    assert "./dev audit --offline" in said.err


@pytest.mark.parametrize("text", ["[]", "{}", "not json"])
def test_a_file_that_holds_no_advisories_is_no_clean_audit(tmp_path, lock, capsys, text):
    (tmp_path / "osv.json").write_text(text)
    assert audit.main(["--offline", str(tmp_path / "osv.json"), "--lock", str(lock)]) == audit.NOT_AUDITED
    assert "Nothing was audited" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("version", "found"),
    [("1.9", []), ("2.0", ["TEST-1"]), ("2.4", ["TEST-1"]), ("2.5", []), ("3.0", ["TEST-1"]), ("3.1", [])],
)
def test_a_version_is_compared_with_all_events_of_a_range(tmp_path, version, found):
    """Introduced twice; fixed once, and once the last one is named."""
    events = [{"introduced": "2.0"}, {"fixed": "2.5"}, {"introduced": "3.0"}, {"last_affected": "3.0"}]
    one = advisory(1, "PyPI", "Some_Name", ranges=[{"type": "ECOSYSTEM", "events": events}])
    (tmp_path / "one.json").write_text(json.dumps(one))
    assert [each["id"] for each in Advisories([tmp_path / "one.json"]).of("PyPI", "some-name", version)] == found


def test_a_version_that_cannot_be_compared_counts_and_a_withdrawn_advisory_does_not(tmp_path):
    one = advisory(1, "Maven", "a:b", **fixed_in("1-jre"))
    withdrawn = {**advisory(2, "Maven", "a:b", versions=["1"]), "withdrawn": "2026-02-01T00:00:00Z"}
    for number, each in enumerate((one, withdrawn)):
        (tmp_path / f"{number}.json").write_text(json.dumps(each))
    assert [each["id"] for each in Advisories([tmp_path]).of("Maven", "a:b", "1")] == ["TEST-1"]
