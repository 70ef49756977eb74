"""Java's names are asked for once, and mean what they meant."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JError


@pytest.fixture
def commands(spark_lake, monkeypatch):
    """Count what is asked of Java about names."""
    spark, _ = spark_lake
    client, asked = spark._jvm._gateway_client, []
    send = client.send_command

    def counted(command, *args, **kwargs):
        if command.startswith("r\n"):
            asked.append(command)
        return send(command, *args, **kwargs)

    monkeypatch.setattr(client, "send_command", counted)
    return asked


def test_a_package_a_class_and_a_method_are_asked_for_once(spark_lake, commands):
    spark, _ = spark_lake
    for _ in range(3):
        assert spark._jvm.java.nio.file.attribute.PosixFilePermissions.fromString("rwxr-x---").size() == 5
    assert len(commands) <= 7  # java, java.nio, .file, .attribute, the class, the method
    commands.clear()
    spark._jvm.java.nio.file.attribute.PosixFilePermissions.fromString("rwx------")
    assert commands == []


def test_an_inner_class_is_asked_for_once(spark_lake, commands):
    spark, _ = spark_lake
    for _ in range(2):
        assert spark._jvm.java.util.AbstractMap.SimpleEntry("a", "b").getKey() == "a"
        asked, commands[:] = len(commands), []
    assert asked == 0


def test_what_a_static_field_holds_is_read_each_time(spark_lake, commands):
    spark, _ = spark_lake
    settings = spark._jvm.java.lang.Integer
    assert settings.MAX_VALUE == 2**31 - 1
    commands.clear()
    assert settings.MAX_VALUE == 2**31 - 1
    assert len(commands) == 1


def test_a_name_that_is_not_there_is_told_each_time(spark_lake):
    spark, _ = spark_lake
    for _ in range(2):
        with pytest.raises(Py4JError, match="noSuchMethod"):
            spark._jvm.java.lang.Integer.noSuchMethod()
        with pytest.raises(TypeError, match="not callable"):
            spark._jvm.java.lang.NoSuchClass()
