"""Names of Java classes are resolved once, and py4j is not changed."""

from __future__ import annotations

import pytest
from py4j.java_gateway import JavaClass, JavaPackage, JVMView
from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession, functions

from cdc_lib.model.lake_table import LakeName
from spark_jobs.iceberg.loading import load_table
from spark_jobs.runtime.java_classes import JavaClasses, java_classes
from spark_jobs.runtime.java_view import CachingView


@pytest.fixture
def classes(spark_lake):
    """The classes of a view without cached names."""
    spark, _ = spark_lake
    return JavaClasses(JVMView(spark._jvm._gateway_client, "default", id="rj"))


@pytest.fixture
def commands(spark_lake, monkeypatch):
    """Record the requests to Java that resolve names."""
    spark, _ = spark_lake
    client, asked = spark._jvm._gateway_client, []
    send = client.send_command

    def counted(command, *args, **kwargs):
        if command.startswith("r\n"):
            asked.append(command)
        return send(command, *args, **kwargs)

    monkeypatch.setattr(client, "send_command", counted)
    return asked


@pytest.fixture
def view(spark_lake, monkeypatch):
    """Give pyspark the view that the jobs of a server have."""
    spark, _ = spark_lake
    view = CachingView(spark._jvm._gateway_client, "default", id="rj")
    monkeypatch.setattr(SparkContext, "_jvm", view)
    for session in (spark, SparkSession.getActiveSession()):  # tests before this one may have left another active
        if session is not None:
            monkeypatch.setattr(session, "_jvm", view)
    return view


def test_a_class_and_its_static_method_need_one_request(classes, commands):
    """py4j alone sends a request for each part of a name, at each use."""
    for _ in range(3):
        fits = classes.static("java.nio.file.attribute.PosixFilePermissions", "fromString")
        assert fits("rwxr-x---").size() == 5
    assert len(commands) == 1


def test_a_static_method_is_found_beside_methods_of_objects_with_its_name(spark_lake, classes):
    """py4j finds it or not, by Java's order of the methods; most of these it does not find."""
    assert classes.static("java.lang.Integer", "hashCode")(7) == 7
    assert classes.static("java.lang.Boolean", "hashCode")(True) == 1231
    assert classes.static("java.lang.Double", "isNaN")(float("nan"))
    assert classes.static("org.apache.iceberg.spark.SparkTableCache", "get")().size() == 0


def test_a_class_makes_objects(classes, commands):
    for _ in range(3):
        assert classes.named("java.util.ArrayList")().size() == 0
    assert len(commands) == 1


def test_the_sessions_of_an_application_share_resolved_names(spark_lake, commands):
    """Each table of a merge has its own session."""
    spark, _ = spark_lake
    session = spark.newSession()
    commands.clear()
    for each in (spark, session):
        java_classes(each).named("java.util.LinkedList")
    assert len(commands) == 1


def test_loading_a_table_resolves_no_names(spark_lake, view, commands):
    """From the second table on; without the cache it takes eleven requests each."""
    spark, config = spark_lake
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {config.lake.catalog}.names")
    spark.sql(f"CREATE TABLE {config.lake.catalog}.names.t (id INT) USING iceberg")
    name = LakeName(config.lake.catalog, ("names",), "t")
    load_table(spark, name)
    commands.clear()
    assert load_table(spark, name).schema().columns().size() == 1
    assert commands == []


@pytest.mark.parametrize("name", ["java.util", "java.util.NoSuchClass"])
def test_a_missing_class_is_reported_each_time(classes, name):
    """It is not cached: a jar may be added."""
    for _ in range(2):
        with pytest.raises(Py4JError, match=name):
            classes.named(name)


@pytest.mark.parametrize("method", ["noSuchMethod", "MAX_VALUE"])
def test_a_call_of_a_name_that_is_no_static_method_fails(classes, method):
    with pytest.raises(Py4JError, match=method):
        classes.static("java.lang.Integer", method)()


def test_pyspark_resolves_a_function_once(spark_lake, view, commands):
    """Without the cache, two requests for each column of each statement."""
    spark, _ = spark_lake
    spark.range(1).select(functions.col("id"), functions.lit(1))
    commands.clear()
    for _ in range(3):
        spark.range(1).select(functions.col("id"), functions.lit(1))
    assert commands == []


def test_py4j_is_not_patched(spark_lake, view):
    """The view of Java is our subclass; no class of py4j is changed."""
    spark, _ = spark_lake
    assert isinstance(view.java.util.ArrayList, JavaClass)
    plain = JVMView(spark._jvm._gateway_client, "default", id="rj")
    assert type(plain.java.util) is JavaPackage
    assert type(plain.java.util.ArrayList) is JavaClass
    assert vars(plain).keys() == {"_gateway_client", "_jvm_name", "_id", "_dir_sequence_and_cache"}
