"""Which columns of a table are captured, and their masks: decided once for each schema version."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from cdc_lib.errors import ConfigError, MaskedColumnMissing
from cdc_lib.model.manifest import ABSENT, CHANGE_COLUMNS
from cdc_lib.model.mask import Mask
from cdc_lib.model.schema import Column, TableSchema
from cdc_lib.model.spark_names import clash

Keeps = Callable[[str], bool]
"""Whether a column, by its name, is kept."""

Masks = Callable[[str], Mask | None]
"""The mask of a column, by its name."""


@dataclass(frozen=True, slots=True)
class Projection:
    """Column selection and masks of one table, applied before rows are stored.

    Args:
        source: the kept columns with the types of the source.
        schema: the kept columns as they are stored, masked.
        kept: indexes of the kept columns in the table.
        masks: per kept column, its mask or None.
    """

    source: TableSchema
    schema: TableSchema
    kept: tuple[int, ...]
    masks: tuple[Mask | None, ...]

    @property
    def masked(self) -> frozenset[str]:
        """Names of the columns whose values no message may show."""
        return frozenset(c.name for c, mask in zip(self.schema.columns, self.masks, strict=True) if mask is not None)

    @property
    def masked_keys(self) -> tuple[str, ...]:
        """Names of the key's columns that have a mask."""
        return tuple(name for name in self.schema.primary_key if name in self.masked)


def whole(schema: TableSchema) -> Projection:
    """Return the projection that keeps everything as it is."""
    columns = len(schema.columns)
    return Projection(schema, schema, tuple(range(columns)), (None,) * columns)


def project(schema: TableSchema, keeps: Keeps, masks: Masks, required: Sequence[str] = ()) -> Projection:
    """Return the projection of a table.

    Args:
        schema: every column of the table.
        keeps: whether a column is kept.
        masks: the mask of a column.
        required: columns that masks name exactly; a missing one may have been renamed, and would be stored unmasked.

    Raises:
        MaskedColumnMissing: a column that a mask names does not exist.
        ConfigError: a key column is left out or has a mask other than hash, no column is kept, or Spark takes the name of a
            column for another name.
    """
    _refuse_missing(schema, required)
    kept = tuple(i for i, column in enumerate(schema.columns) if keeps(column.name))
    names = {schema.columns[i].name for i in kept}
    _refuse_left_out(schema, names)
    columns = tuple(schema.columns[i] for i in kept)
    chosen = tuple(masks(column.name) for column in columns)
    for column, mask in zip(columns, chosen, strict=True):
        if mask is not None and mask.kind != "hash" and column.name in schema.primary_key:
            raise ConfigError(
                f"the mask {mask} on column {column.name} of the primary key would make different rows equal",
                hint="Mask a key column by hash, or not at all.",
                table=schema.name,
                column=column.name,
            )
    stored = tuple(_masked(column, mask) for column, mask in zip(columns, chosen, strict=True))
    return with_distinct_names(
        Projection(replace(schema, columns=columns), replace(schema, columns=stored), kept, chosen)
    )


def _masked(column: Column, mask: Mask | None) -> Column:
    if mask is None:
        return column
    nulled = mask.kind == "redact" and mask.text is None
    return Column(column.name, mask.masked_type(column.type), column.nullable or nulled)


def _refuse_missing(schema: TableSchema, required: Sequence[str]) -> None:
    there = {column.name.lower() for column in schema.columns}
    for name in required:
        if name.lower() not in there:
            raise MaskedColumnMissing(
                f"masks name the column {name}, which the table does not have: under another name it would be stored "
                "as it is",
                hint="Name the column as the source does; a name with a wildcard (such as mail*) need not be there.",
                table=schema.name,
                column=name,
            )


def _refuse_left_out(schema: TableSchema, names: set[str]) -> None:
    for name in schema.primary_key:
        if name not in names:
            raise ConfigError(
                f"column {name} belongs to the primary key and cannot be left out",
                hint="Keep it under columns in the source file; a hash under masks hides its values.",
                table=schema.name,
                column=name,
            )
    if schema.columns and not names:
        raise ConfigError(
            "no column of the table is kept", hint="Exclude the table under tables instead.", table=schema.name
        )


def with_distinct_names(projection: Projection) -> Projection:
    """Return a projection as it is, unless Spark or Iceberg takes the name of a column for that of another or of a change column.

    Raises:
        ConfigError: a column has such a name.
    """
    found = clash((column.name for column in projection.schema.columns), (*CHANGE_COLUMNS, ABSENT))
    if found is not None:
        raise ConfigError(
            found[1],
            hint="Exclude the column under columns in the source file, or rename it at the source.",
            table=projection.schema.name,
            column=found[0],
        )
    return projection


def can_be_chunked(schema: TableSchema) -> bool:
    """Whether the table can be read in chunks by its key; else it is read as one chunk."""
    types = {column.name: column.type for column in schema.columns}
    own = [types[name] for name in schema.primary_key]
    return bool(own) and all(one.family.walks and not one.form and not one.has_digits for one in own)


def refuse_masked_keys(projection: Projection) -> None:
    """Refuse masked key columns of chunked tables: manifests of a snapshot contain the last key of each chunk.

    Raises:
        ConfigError: a key column of a table that is read in chunks has a mask.
    """
    if projection.masked_keys and can_be_chunked(projection.source):
        raise ConfigError(
            f"column {projection.masked_keys[0]} of the primary key has a mask, but the manifests of a snapshot contain "
            "the last key of each chunk: the values would be stored without the mask",
            hint="Leave key columns without a mask, or begin the source with start: latest or earliest, which reads no "
            "snapshot.",
            table=projection.schema.name,
            column=projection.masked_keys[0],
        )
