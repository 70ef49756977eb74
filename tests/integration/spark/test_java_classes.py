"""Java's classes are asked for once, and py4j is as it was."""

from __future__ import annotations

import pytest
from py4j.java_gateway import JavaClass, JavaPackage, JVMView
from py4j.protocol import Py4JError
from pyspark.sql import functions

from cdc_lib.model.lake_table import LakeName
from spark_jobs.iceberg.loading import load_table
from spark_jobs.runtime.java_classes import JavaClasses, java_classes
from spark_jobs.runtime.java_view import RememberingView


@pytest.fixture
def classes(spark_lake):
    """Of a view that knows no name yet."""
    spark, _ = spark_lake
    return JavaClasses(JVMView(spark._jvm._gateway_client, "default", id="rj"))


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


def test_a_class_and_its_static_method_are_one_question_each(classes, commands):
    """A name in parts is a question for each part, at each use."""
    for _ in range(3):
        fits = classes.static("java.nio.file.attribute.PosixFilePermissions", "fromString")
        assert fits("rwxr-x---").size() == 5
    assert len(commands) == 2


def test_a_class_makes_objects(classes, commands):
    for _ in range(3):
        assert classes.named("java.util.ArrayList")().size() == 0
    assert len(commands) == 1


def test_the_sessions_of_an_application_share_what_was_found(spark_lake, commands):
    """Each table of a merge has a session of its own."""
    spark, _ = spark_lake
    session = spark.newSession()
    commands.clear()
    for one in (spark, session):
        java_classes(one).named("java.util.LinkedList")
    assert len(commands) == 1


def test_a_table_is_loaded_without_a_question_about_names(spark_lake, commands):
    """From the second one on; it was eleven questions for each."""
    spark, config = spark_lake
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {config.lake.catalog}.names")
    spark.sql(f"CREATE TABLE {config.lake.catalog}.names.t (id INT) USING iceberg")
    name = LakeName(config.lake.catalog, ("names",), "t")
    load_table(spark, name)
    commands.clear()
    assert load_table(spark, name).schema().columns().size() == 1
    assert commands == []


@pytest.mark.parametrize("name", ["java.util", "java.util.NoSuchClass"])
def test_a_class_that_is_not_there_is_named_each_time(classes, name):
    """Nothing is kept of it: a jar may be added."""
    for _ in range(2):
        with pytest.raises(Py4JError, match=name):
            classes.named(name)


@pytest.mark.parametrize("method", ["noSuchMethod", "MAX_VALUE"])
def test_what_is_no_static_method_is_named_each_time(classes, method):
    """What a static field holds may change."""
    for _ in range(2):
        with pytest.raises(Py4JError, match=method):
            classes.static("java.lang.Integer", method)


def test_pyspark_asks_for_a_function_once(spark_lake, commands):
    """It was two questions for each column of each statement."""
    spark, _ = spark_lake
    spark.range(1).select(functions.col("id"), functions.lit(1))
    commands.clear()
    for _ in range(3):
        spark.range(1).select(functions.col("id"), functions.lit(1))
    assert commands == []


def test_py4j_is_as_it_was(spark_lake):
    """The view of Java is one of ours; no class of py4j is changed."""
    spark, _ = spark_lake
    assert type(spark._jvm) is RememberingView
    plain = JVMView(spark._jvm._gateway_client, "default", id="rj")
    assert type(plain.java.util) is JavaPackage
    assert type(plain.java.util.ArrayList) is JavaClass
    assert vars(plain).keys() == {"_gateway_client", "_jvm_name", "_id", "_dir_sequence_and_cache"}
