"""``lake:`` the Iceberg catalog that the tables are written to."""

from __future__ import annotations

import string
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from cdc_lib.config.base import Section, Text
from cdc_lib.model.folder import leads_up
from cdc_lib.model.layout import Layout
from cdc_lib.model.readers import READERS, ReaderName, layout_for

ForeignChanges = Literal["stop", "snapshot"]
"""Policy for a lake table whose merged rows another writer changed."""

CatalogType = Literal["jdbc", "rest", "glue", "hive", "hadoop"]

_NEEDS_URI = frozenset({"jdbc", "rest", "hive"})
_NEEDS_WAREHOUSE = frozenset({"jdbc", "glue", "hadoop"})
_PLACEHOLDERS = frozenset({"database", "source"})


class LakeConfig(Section):
    """Catalog, warehouse and names of the lake tables.

    ``uri`` and ``properties`` may contain credentials, so the object's text does not show them.
    """

    catalog: str = Field(
        default="lake", pattern=r"^[A-Za-z][A-Za-z0-9_]*$", description="letters, digits and underscores"
    )
    type: CatalogType = Field(description="jdbc, rest, glue, hive or hadoop")
    uri: str | None = Field(
        default=None,
        min_length=1,
        repr=False,
        description="address of the catalog, for example jdbc:sqlite:/data/cat.db",
    )
    warehouse: str | None = Field(
        default=None,
        min_length=1,
        description="root of the tables, for example file:///data/lake or s3://bucket/lake; of a REST catalog also a name",
    )
    namespace: str = Field(
        default="{database}", min_length=1, description="namespace of a table; {database} and {source} are filled in"
    )
    foreign_changes: ForeignChanges = Field(
        default="stop", description="stop or snapshot: a lake table that others changed stops, or is read again"
    )
    readers: tuple[ReaderName, ...] = Field(
        default=(), description=f"list of engines that read the tables, of {', '.join(READERS)}"
    )
    properties: dict[str, Text] = Field(
        default_factory=dict, repr=False, description="further settings of the Iceberg catalog"
    )

    @field_validator("namespace")
    @classmethod
    def _check_placeholders(cls, namespace: str) -> str:
        try:
            placeholders = {name for _, name, _, _ in string.Formatter().parse(namespace) if name is not None}
        except ValueError as error:
            raise ValueError(f"not a namespace template: {error}") from None
        if placeholders - _PLACEHOLDERS:
            raise ValueError("a namespace may hold {database} and {source}, nothing else in braces")
        levels = namespace.split(".")
        if not all(level.strip() for level in levels) or {"/", "\\", "`"} & set(namespace):
            raise ValueError(
                "a namespace is names with dots between them, such as raw.{database}; no .. / \\ or backticks"
            )
        return namespace

    @field_validator("warehouse")
    @classmethod
    def _warehouse(cls, warehouse: str | None) -> str | None:
        if warehouse is not None and leads_up(warehouse):
            raise ValueError("a warehouse has no .. in it; write the folder that it leads to")
        return warehouse

    @model_validator(mode="after")
    def _complete(self) -> Self:
        missing = [
            name
            for name, kinds in (("uri", _NEEDS_URI), ("warehouse", _NEEDS_WAREHOUSE))
            if self.type in kinds and getattr(self, name) is None
        ]
        if missing:
            raise ValueError(f"a catalog of type {self.type} needs {' and '.join(missing)}")
        return self

    @property
    def default_layout(self) -> Layout:
        """The layout of a table for which ``layouts`` says nothing else: one that all readers read."""
        return layout_for(self.readers)

    def namespace_of(self, source: str, database: str) -> tuple[str, ...]:
        """Return the levels of the namespace of a source table; a dot in a name is not a separator."""
        return tuple(level.format(source=source, database=database) for level in self.namespace.split("."))
