"""A py4j view of Java that caches names.

pyspark names Java's classes and static methods in nearly every call, and py4j sends a request for a name each time. Java searches
all of Spark's jars for it, once for every imported package. This view replaces py4j's own in Spark.
"""

from __future__ import annotations

from typing import Any

from py4j.java_gateway import JavaClass, JavaGateway, JavaMember, JavaPackage, JVMView
from py4j.protocol import DEFAULT_JVM_ID, DEFAULT_JVM_NAME


def use_caching_view(gateway: JavaGateway) -> None:
    """Replace a gateway's view with a caching one.

    Args:
        gateway: after its imports. A package that is imported later does not change a cached name.
    """
    gateway.jvm = CachingView(gateway.jvm._gateway_client, DEFAULT_JVM_NAME, id=DEFAULT_JVM_ID)  # noqa: SLF001 - no public name


class CachingView(JVMView):  # type: ignore[misc] # py4j has no types
    """The root of Java's names."""

    def __getattr__(self, name: str) -> Any:
        return _cached(self, name, super().__getattr__(name))


class _Package(JavaPackage):  # type: ignore[misc]
    def __getattr__(self, name: str) -> Any:
        return _cached(self, name, super().__getattr__(name))


class _Class(JavaClass):  # type: ignore[misc]
    def __getattr__(self, name: str) -> Any:
        return _cached(self, name, super().__getattr__(name))


def _cached(holder: Any, name: str, found: Any) -> Any:
    """Cache packages, classes and methods as attributes, which Python finds before ``__getattr__``; a field may change."""
    client = holder._gateway_client  # noqa: SLF001 - an attribute of the base classes
    if isinstance(found, JavaPackage):
        found = _Package(found._fqn, client, jvm_id=found._jvm_id)  # noqa: SLF001
    elif isinstance(found, JavaClass):
        found = _Class(found._fqn, client)  # noqa: SLF001
    elif not isinstance(found, JavaMember):
        return found
    vars(holder)[name] = found
    return found
