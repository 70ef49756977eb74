"""Manifests that name removed files beside others: the bounds of those files are values of rows, and stay with the manifest."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from spark_jobs.iceberg.row_delta import each
from spark_jobs.runtime.java_classes import JavaClasses, java_classes

_INVOKE = "java.lang.invoke."


def drop_removed_entries(session: SparkSession, table: Any) -> None:
    """Write the manifests of the current snapshot again that name removed files; one commit, or none.

    Iceberg itself drops a manifest of removed files alone, with the next commit.

    Args:
        session: of the table.
        table: Iceberg's Java object, as it is now.
    """
    snapshot = table.currentSnapshot()
    manifests = each(snapshot.dataManifests(table.io())) if snapshot is not None else ()
    stale = [one for one in manifests if one.hasDeletedFiles() and (one.hasExistingFiles() or one.hasAddedFiles())]
    if stale:
        classes = java_classes(session)
        chosen = classes.named("java.util.HashSet")()
        for one in stale:
            chosen.add(one)
        of_class = classes.static("java.lang.Class", "forName")
        together = _as(
            classes, of_class("java.util.function.Function"), _constant(classes, of_class("java.lang.Object"))
        )
        is_stale = _as(classes, of_class("java.util.function.Predicate"), _contains(classes, chosen, of_class))
        table.rewriteManifests().clusterBy(together).rewriteIf(is_stale).commit()


def _as(classes: JavaClasses, interface: Any, handle: Any) -> Any:
    """Return a Java object of an interface with one method: Iceberg takes functions, and py4j has none."""
    return classes.static(f"{_INVOKE}MethodHandleProxies", "asInterfaceInstance")(interface, handle)


def _constant(classes: JavaClasses, of_object: Any) -> Any:
    constant = classes.static(f"{_INVOKE}MethodHandles", "constant")(of_object, "")
    ignored = classes.named("java.util.ArrayList")()
    ignored.add(of_object)
    return classes.static(f"{_INVOKE}MethodHandles", "dropArguments")(constant, 0, ignored)


def _contains(classes: JavaClasses, chosen: Any, of_class: Any) -> Any:
    boolean = classes.named("java.lang.Boolean").TYPE
    kind = classes.static(f"{_INVOKE}MethodType", "methodType")(boolean, of_class("java.lang.Object"))
    lookup = classes.static(f"{_INVOKE}MethodHandles", "publicLookup")()
    return lookup.bind(chosen, "contains", kind)
