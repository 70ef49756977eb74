"""Java's classes by their names, each asked for once.

py4j asks Java anew whenever a package or class is named, and Java looks for each part of the name as for a class: in each of
Spark's jars, some hundreds, for every package that is imported. Merging 50 changes into a table named some 170 of them, for
a fifth of the time that Java was busy.
"""

from __future__ import annotations

from typing import Any

from py4j.java_gateway import JavaClass, JavaMember, JavaPackage, JVMView


class _KnownClass(JavaClass):  # type: ignore[misc] - py4j has no types
    """A class that remembers its methods and inner classes; what a static field holds may change."""

    def __getattr__(self, name: str) -> Any:
        return _remembered(self, name, super().__getattr__(name))


class _KnownPackage(JavaPackage):  # type: ignore[misc]
    """A package that remembers what is in it."""

    def __getattr__(self, name: str) -> Any:
        return _remembered(self, name, super().__getattr__(name))


class _KnownView(JVMView):  # type: ignore[misc]
    """What stands for Java in a session, with the names that were looked up."""

    def __getattr__(self, name: str) -> Any:
        return _remembered(self, name, super().__getattr__(name))


def remember_names(jvm: Any) -> None:
    """Let a view of Java remember the packages, classes and static methods that are named through it.

    Args:
        jvm: ``spark._jvm``. Nothing may be imported into it afterwards that has the name of a package.
    """
    jvm.__class__ = _KnownView


def _remembered(holder: object, name: str, found: Any) -> Any:
    """Keep what always means the same where Python looks before it asks the holder's ``__getattr__``."""
    if isinstance(found, JavaPackage):
        found.__class__ = _KnownPackage
    elif isinstance(found, JavaClass):
        found.__class__ = _KnownClass
    elif not isinstance(found, JavaMember):
        return found
    vars(holder)[name] = found
    return found
