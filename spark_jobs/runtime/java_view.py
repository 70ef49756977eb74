"""Java as pyspark sees it, with the names that were looked up once.

pyspark names Java's classes and static methods in nearly every call, and py4j asks Java about a name each time. Java searches all
of Spark's jars for it, once for every package that is imported. The view here is handed to Spark in the place of py4j's own.
"""

from __future__ import annotations

from typing import Any

from py4j.java_gateway import JavaClass, JavaGateway, JavaMember, JavaPackage, JVMView
from py4j.protocol import DEFAULT_JVM_ID, DEFAULT_JVM_NAME


def use_remembering_view(gateway: JavaGateway) -> None:
    """Let all that names Java's classes through a gateway remember them.

    Args:
        gateway: after its imports. A package that is imported later does not change what a remembered name means.
    """
    gateway.jvm = RememberingView(gateway.jvm._gateway_client, DEFAULT_JVM_NAME, id=DEFAULT_JVM_ID)  # noqa: SLF001 - no public name


class RememberingView(JVMView):  # type: ignore[misc] # py4j has no types
    """All of Java."""

    def __getattr__(self, name: str) -> Any:
        return _remembered(self, name, super().__getattr__(name))


class _Package(JavaPackage):  # type: ignore[misc]
    def __getattr__(self, name: str) -> Any:
        return _remembered(self, name, super().__getattr__(name))


class _Class(JavaClass):  # type: ignore[misc]
    def __getattr__(self, name: str) -> Any:
        return _remembered(self, name, super().__getattr__(name))


def _remembered(holder: Any, name: str, found: Any) -> Any:
    """Keep packages, classes and methods where Python looks before it asks ``__getattr__``; the value of a field may change."""
    client = holder._gateway_client  # noqa: SLF001 - its subclasses stand above
    if isinstance(found, JavaPackage):
        found = _Package(found._fqn, client, jvm_id=found._jvm_id)  # noqa: SLF001
    elif isinstance(found, JavaClass):
        found = _Class(found._fqn, client)  # noqa: SLF001
    elif not isinstance(found, JavaMember):
        return found
    vars(holder)[name] = found
    return found
