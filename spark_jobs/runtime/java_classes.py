"""Java's classes and static methods by their full names, each asked for once.

py4j asks Java about each part of a dotted name, each time that it is written: ``jvm.java.util.ArrayList`` are three questions.
Java answers each by a search through all of Spark's jars, once for every package that is imported. A class that is named in one
piece is one question, and what was found is kept here. `tests/integration/spark/test_java_classes.py` counts the questions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from py4j.java_gateway import JavaClass, JavaMember
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True, eq=False)
class JavaClasses:
    """The classes of one Java process; all threads may share it.

    Args:
        jvm: py4j's view of the process.
    """

    jvm: Any
    _found: dict[tuple[str, ...], Any] = field(default_factory=dict, repr=False)

    def named(self, name: str) -> Any:
        """Return a class, for example ``java.util.ArrayList``. A call of it makes an object.

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
        """Return a static method of a class, to be called.

        Raises:
            Py4JError: there is no such class or no such method.
        """
        if (name, method) not in self._found:
            found = getattr(self.named(name), method)
            if not isinstance(found, JavaMember):
                raise Py4JError(f"{method} is not a static method of {name}")
            self._found[name, method] = found
        return self._found[name, method]


def java_classes(session: SparkSession) -> JavaClasses:
    """Return the classes of the Java process in which a session runs; all its sessions share what was found."""
    spark: Any = session
    return _of(spark._jvm)  # noqa: SLF001 - pyspark has no public way to Java's classes


@lru_cache(maxsize=4)
def _of(jvm: Any) -> JavaClasses:
    return JavaClasses(jvm)
