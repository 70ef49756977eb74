"""Cache of Java classes and static methods by full name.

py4j sends one request for each part of a dotted name, at each use: ``jvm.java.util.ArrayList`` is three requests. Java answers
each by a search through all of Spark's jars, once for every imported package. A full class name is one request, and its result
is kept here. `tests/integration/spark/test_java_classes.py` counts the requests.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from py4j.java_gateway import JavaClass, JavaMember
from py4j.protocol import STATIC_PREFIX, Py4JError
from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True, eq=False)
class JavaClasses:
    """The classes of one Java process; thread-safe.

    Args:
        jvm: py4j's view of the process.
    """

    jvm: Any
    _found: dict[tuple[str, ...], Any] = field(default_factory=dict, repr=False)

    def named(self, name: str) -> Any:
        """Return a class, for example ``java.util.ArrayList``; calling it creates an object.

        Raises:
            Py4JError: there is no such class.
        """
        if (name,) not in self._found:
            found = getattr(self.jvm, name)
            if not isinstance(found, JavaClass):
                raise Py4JError(f"{name} is not a class of the Java process")
            self._found[name,] = found
        return self._found[name,]

    def static(self, name: str, method: str) -> Any:
        """Return a static method of a class; a call raises Py4JError if the class does not have it.

        py4j is not asked for the method: it looks at the first one of the name in Java's order, which differs between
        processes, and knows no static method if that one is of an object.

        Raises:
            Py4JError: there is no such class.
        """
        if (name, method) not in self._found:
            client = self.named(name)._gateway_client  # noqa: SLF001 - as py4j makes it
            self._found[name, method] = JavaMember(method, None, f"{STATIC_PREFIX}{name}", client)
        return self._found[name, method]


def java_classes(session: SparkSession) -> JavaClasses:
    """Return the classes of the Java process of a session; all its sessions share the cache."""
    spark: Any = session
    return _of(spark._jvm)  # noqa: SLF001 - pyspark has no public way to Java's classes


@lru_cache(maxsize=4)
def _of(jvm: Any) -> JavaClasses:
    return JavaClasses(jvm)
