"""Loads a lake table by its name parts, so that no name is parsed: its metadata, or Iceberg's Java object for commits."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

from cdc_lib.model.lake_table import LakeName
from spark_jobs.iceberg.table_metadata import TableMetadata
from spark_jobs.runtime.java_classes import java_classes

_FOUND: WeakKeyDictionary[SparkSession, dict[LakeName, tuple[Any, Any]]] = WeakKeyDictionary()
"""The catalog and the identifier of each table that a session loaded: a merge loads a table eight times."""

_PARSED: WeakKeyDictionary[SparkSession, tuple[tuple[Any, Any], TableMetadata]] = WeakKeyDictionary()
"""The metadata that a session read last, with its file and the table's UUID: half of the loads of a merge find no newer one."""


def load_table(session: SparkSession, name: LakeName) -> Any:
    """Return a table newly loaded from the catalog, for operations without SQL such as branches.

    Raises:
        Py4JJavaError: Iceberg's error, such as NoSuchTableException.
    """
    catalog, identifier = _found(session, name)
    return catalog.loadTable(identifier)


def drop_table(session: SparkSession, name: LakeName) -> None:
    """Remove a table from the catalog, without its files; nothing of the table is read."""
    catalog, identifier = _found(session, name)
    catalog.dropTable(identifier, False)


def file_io(session: SparkSession, name: LakeName) -> Any:
    """Return the FileIO that a table of this name would have, Iceberg's Java object; nothing is created."""
    catalog, identifier = _found(session, name)
    schema = java_classes(session).named("org.apache.iceberg.Schema")(
        java_classes(session).named("java.util.ArrayList")()
    )
    return catalog.buildTable(identifier, schema).createTransaction().table().io()


def _found(session: SparkSession, name: LakeName) -> tuple[Any, Any]:
    """Return the catalog and the identifier of a table, Iceberg's Java objects."""
    known = _FOUND.setdefault(session, {})
    if name not in known:
        classes = java_classes(session)
        namespace = classes.static("org.apache.iceberg.catalog.Namespace", "of")(texts(session, name.namespace))
        catalog = spark_catalog(session, name.catalog).icebergCatalog()
        identifier = classes.static("org.apache.iceberg.catalog.TableIdentifier", "of")(namespace, name.name)
        known[name] = catalog, identifier
    return known[name]


def load_metadata(session: SparkSession, name: LakeName) -> TableMetadata:
    """Return a table's metadata, newly loaded from the catalog. Raises what :func:`load_table` raises."""
    return metadata_of(session, load_table(session, name))


def metadata_of(session: SparkSession, table: Any) -> TableMetadata:
    """Return a table's metadata as last loaded, in one call to Java instead of several for each snapshot.

    Args:
        session: a Spark session.
        table: Iceberg's Java object.
    """
    current = table.operations().current()
    # No commit changes a metadata file. Those of a Hadoop catalog have the same names again after a table is dropped.
    file = current.metadataFileLocation(), current.uuid()  # without a file while a transaction is open
    known = _PARSED.get(session)
    if known is None or known[0] != file or None in file:
        to_json = java_classes(session).static("org.apache.iceberg.TableMetadataParser", "toJson")
        known = _PARSED[session] = file, TableMetadata.from_json(str(to_json(current)))
    return known[1]


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
