"""Jars are the ones that the lock names, or they are refused."""

from __future__ import annotations

import hashlib

import pytest

from cdc_lib.errors import ConfigError
from spark_jobs.runtime import jars
from spark_jobs.runtime.jars import Jar, jar_paths, locked_jars


@pytest.fixture
def one_jar(monkeypatch, tmp_path) -> Jar:
    """The only jar of the lock, which is nowhere yet."""
    jar = Jar("lake", "org.example", "lake", "1.2", hashlib.sha256(b"classes").hexdigest())
    lock = tmp_path / "jars.lock"
    lock.write_text(f"# a comment\n{jar.name} {jar.coordinates} {jar.sha256}\n")
    monkeypatch.setattr(jars, "LOCK_FILE", lock)
    monkeypatch.setattr(jars, "locked_jars", lambda: locked_jars(lock))
    monkeypatch.setenv("CDC_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("CDC_JARS", str(tmp_path))
    return jar


def test_every_line_of_the_lock_names_a_whole_sha256():
    assert {len(bytes.fromhex(jar.sha256)) for jar in locked_jars()} == {32}


def test_an_existing_jar_is_not_fetched(one_jar, tmp_path):
    (tmp_path / one_jar.file_name).write_bytes(b"classes")
    assert jar_paths(["lake"]) == [tmp_path / "lake-1.2.jar"]


def test_a_jar_with_another_hash_is_refused(one_jar, tmp_path):
    (tmp_path / one_jar.file_name).write_bytes(b"other classes")
    with pytest.raises(ConfigError, match=r"is not org\.example:lake:1\.2"):
        jar_paths(["lake"])


def test_a_jar_that_was_exchanged_after_it_was_fetched_is_refused(one_jar, tmp_path):
    """The hash is checked when it is used."""
    cached = tmp_path / "cache" / "jars" / one_jar.file_name
    cached.parent.mkdir(parents=True)
    cached.write_bytes(b"classes")
    assert jar_paths(["lake"]) == [cached]
    cached.write_bytes(b"classes of a neighbour")
    with pytest.raises(ConfigError, match=r"is not org\.example:lake:1\.2"):
        jar_paths(["lake"])


def test_a_fetched_jar_is_cached_only_if_its_hash_is_right(one_jar, monkeypatch, tmp_path):
    def retrieve(jar, folder):
        path = folder / jar.file_name
        path.write_bytes(b"cut off")
        return path

    monkeypatch.setattr(jars, "_retrieve", retrieve)
    with pytest.raises(ConfigError, match="the lock says"):
        jar_paths(["lake"])
    assert not (tmp_path / "cache" / "jars" / one_jar.file_name).exists()


def test_jars_are_those_of_the_installed_spark(one_jar, monkeypatch, tmp_path):
    lock, sha256 = jars.LOCK_FILE, one_jar.sha256
    lock.write_text(
        f"lake@3.5 a:a:1 {sha256}\nlake@4.0 a:a:2 {sha256}\nlake a:b:1:fat {sha256}\nold@3.5 a:c:1 {sha256}\n"
    )
    for name in ("a-1.jar", "a-2.jar", "b-1-fat.jar"):
        (tmp_path / name).write_bytes(b"classes")
    for spark, name in (("3.5", "a-1.jar"), ("4.0", "a-2.jar")):
        monkeypatch.setattr(jars, "installed_spark", lambda spark=spark: spark)
        assert jar_paths(["lake"]) == [tmp_path / name, tmp_path / "b-1-fat.jar"]
    with pytest.raises(ConfigError, match=r"has no old for Spark 4\.0") as refused:
        jar_paths(["old"])
    assert refused.value.hint == "Install a pyspark of 3.5."


def test_a_name_that_is_not_in_the_lock_is_refused():
    with pytest.raises(ConfigError, match="no jar is called 'delta'"):
        jar_paths(["delta"])
