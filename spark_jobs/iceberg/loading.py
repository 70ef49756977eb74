"""Loads Iceberg's Java object of a lake table by its name parts, so that no name is parsed."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from cdc_lib.model.lake_table import LakeName
from spark_jobs.runtime.java_classes import java_classes


def load_table(session: SparkSession, name: LakeName) -> Any:
    """Return a table newly loaded from the catalog, for operations without SQL such as branches.

    Raises:
        Py4JJavaError: Iceberg's error, such as NoSuchTableException.
    """
    classes = java_classes(session)
    namespace = classes.static("org.apache.iceberg.catalog.Namespace", "of")(texts(session, name.namespace))
    catalog = spark_catalog(session, name.catalog).icebergCatalog()
    identifier = classes.static("org.apache.iceberg.catalog.TableIdentifier", "of")(namespace, name.name)
    return catalog.loadTable(identifier)


def spark_catalog(session: SparkSession, name: str) -> Any:
    """Return the catalog of a session by its name."""
    spark: Any = session
    return spark._jsparkSession.sessionState().catalogManager().catalog(name)  # noqa: SLF001 - pyspark has no public way to it


def texts(session: SparkSession, names: tuple[str, ...]) -> Any:
    """Return texts as a Java array."""
    spark: Any = session
    gateway = spark.sparkContext._gateway  # noqa: SLF001 - as above
    array = gateway.new_array(java_classes(session).named("java.lang.String"), len(names))
    for index, name in enumerate(names):
        array[index] = name
    return array


def identity_of(table: Any) -> tuple[list[str], list[str]]:
    """Return the identifier fields of an Iceberg table, and its required columns."""
    columns, names = table.schema().columns(), table.schema().identifierFieldNames()
    required = [str(one.name()) for one in (columns.get(index) for index in range(columns.size())) if one.isRequired()]
    return [name for name in required if names.contains(name)], required
