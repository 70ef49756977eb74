"""Proves, before a job changes a table, that commits do in this Iceberg what merges rely on.

A table in Java's memory gets two commits as a merge makes them. Neither the number of a version nor the names of its classes say
what a commit leaves in a table: builds of clouds are patched.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from cdc_lib.apply.stored_files import WHOLE
from cdc_lib.errors import CdcError, ConfigError, MergeConflict, MergeError
from spark_jobs.errors import said, translate_errors
from spark_jobs.iceberg.loading import texts
from spark_jobs.iceberg.row_delta import Replacement, RowCommit
from spark_jobs.runtime.java_classes import JavaClasses, java_classes

PROVED = "lakecdc.commits.proved"
"""Java's property of a process in which commits were proved: a server runs many jobs."""

_SCHEMA = '{"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": true, "type": "long"}]}'
_FILE, _VECTOR = "memory:/rows.parquet", "memory:/rows.puffin"


def prove_commits(spark: SparkSession) -> None:
    """Make two commits in memory, and one that came too late.

    Raises:
        ConfigError: one of them is not as a merge needs it.
    """
    classes = java_classes(spark)
    if classes.static("java.lang.System", "getProperty")(PROVED) is not None:
        return
    try:
        _commit_and_be_late(spark, classes)
    except (Py4JError, CdcError) as error:
        version = classes.static("org.apache.iceberg.IcebergBuild", "version")()
        why = " / ".join(filter(None, map(str.strip, said(error).splitlines())))[:300]
        raise ConfigError(
            f"Spark {spark.version} with Iceberg {version} cannot commit merges: {why}",
            hint="Nothing was changed. Run the job with a Spark and an Iceberg of the support matrix.",
        ) from error
    classes.static("java.lang.System", "setProperty")(PROVED, "true")


def _commit_and_be_late(spark: SparkSession, classes: JavaClasses) -> None:
    catalog = classes.named("org.apache.iceberg.inmemory.InMemoryCatalog")()
    catalog.initialize("proof", classes.named("java.util.HashMap")())
    namespace = classes.static("org.apache.iceberg.catalog.Namespace", "of")(texts(spark, ("proof",)))
    catalog.createNamespace(namespace)
    name = classes.static("org.apache.iceberg.catalog.TableIdentifier", "of")(namespace, "rows")
    schema = classes.static("org.apache.iceberg.SchemaParser", "fromJson")(_SCHEMA)
    table = catalog.buildTable(name, schema).withProperty("format-version", "3").create()

    first = _commit(classes, _added(classes, table, _FILE), None, 0).publish(table)
    vector = classes.static("org.apache.iceberg.FileMetadata", "deleteFileBuilder")(table.spec()).ofPositionDeletes()
    vector = vector.withFormat("puffin").withPath(_VECTOR).withReferencedDataFile(_FILE).withFileSizeInBytes(100)
    vector = vector.withContentOffset(4).withContentSizeInBytes(40).withRecordCount(1).build()
    second = _commit(classes, Replacement(1, deleted=1, deletes={(_VECTOR, 4): vector}), first, 3)
    late = _commit(classes, _added(classes, table, f"{_FILE}.late"), first, 3).begun(catalog.loadTable(name), 6)
    published = second.publish(catalog.loadTable(name))
    with suppress(MergeConflict), translate_errors("commit"):
        late.commitTransaction()
        raise MergeError("a commit that came too late is not refused")
    shown = catalog.loadTable(name).currentSnapshot()
    if (int(shown.snapshotId()), shown.summary().get("lakecdc.proof")) != (published, "2"):
        raise MergeError("a commit is not shown, or without its property")


def _added(classes: JavaClasses, table: Any, path: str) -> Replacement:
    """Return a new file of three rows, as it is committed: nobody opens it."""
    rows = classes.static("org.apache.iceberg.DataFiles", "builder")(table.spec()).withPath(path)
    rows = rows.withFormat("parquet").withFileSizeInBytes(1000).withRecordCount(3).build()
    return Replacement(3, rows=3, data={(path, WHOLE): rows})


def _commit(classes: JavaClasses, done: Replacement, parent: int | None, before: int) -> RowCommit:
    return RowCommit(done, parent, before, "proof", lambda rows: {"lakecdc.proof": str(rows)}, lambda _: None, classes)
