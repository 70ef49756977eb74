"""``layouts:`` how files of lake tables are partitioned, sorted and written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, TypeVar

from pydantic import AfterValidator, Field

from cdc_lib.config.base import Text
from cdc_lib.config.rules import TableRule
from cdc_lib.model.layout import FormatVersion, Layout, Partition, SortField, WriteMode, partition_of, sort_field_of

_OWN = {
    "format-version": "set format_version",
    **dict.fromkeys(("write.merge.mode", "write.update.mode", "write.delete.mode"), "set write_mode"),
    "sort-order": "set sort_by",
}
"""Properties that a key of the rule sets."""

_NEEDED = frozenset(
    {
        "gc.enabled", "write.format.default", "write.delete.format.default", "write.delete.granularity",
        "write.data.path", "write.metadata.path", "write.object-storage.path", "write.folder-storage.path",
        "write.location-provider.impl", "write.wap.enabled",
    }
)  # fmt: skip
_NEEDED_ENDS = (".isolation-level", ".distribution-mode")
_NEEDED_BEGINNINGS = ("cdc.", "snapshot-property.")

Parsed = TypeVar("Parsed", Partition, SortField)


def _refuse_needed(properties: dict[str, str]) -> dict[str, str]:
    """Refuse properties that a key of the rule sets, or that merges depend on."""
    problems = [f"{name}: {instead} instead" for name, instead in _OWN.items() if name in properties]
    problems += [f"{name}: merges depend on it, so it cannot be set" for name in properties if _is_needed(name)]
    if problems:
        raise ValueError("; ".join(problems))
    return properties


def _is_needed(name: str) -> bool:
    return name in _NEEDED or name.endswith(_NEEDED_ENDS) or name.startswith(_NEEDED_BEGINNINGS)


def _each(parse: Callable[[str], Parsed], texts: Iterable[str]) -> tuple[Parsed, ...]:
    """Parse each text; an error names the text."""
    parsed = []
    for text in texts:
        try:
            parsed.append(parse(text))
        except ValueError as error:
            raise ValueError(f"{text!r} is not valid: {error}") from None
    return tuple(parsed)


def _check_partitions(texts: tuple[str, ...]) -> tuple[str, ...]:
    _refuse_twice("partition_by", [one.field.lower() for one in _each(partition_of, texts)])
    return texts


def _check_sort(texts: tuple[str, ...]) -> tuple[str, ...]:
    _refuse_twice("sort_by", [one.column.lower() for one in _each(sort_field_of, texts)])
    return texts


def _refuse_twice(key: str, names: Sequence[str]) -> None:
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"{key} has {', '.join(twice)} twice")


class LayoutRule(TableRule):
    """The layout of some tables; the first rule that covers a table wins.

    Args:
        partition_by: Iceberg's partition spec. An update that changes the value of a partition moves the row.
        sort_by: order of the rows in written files; the primary key without it.
        properties: Iceberg table properties, passed as they are. Those that merges depend on are refused.
        format_version: version of the Iceberg format. Version 2 has no deletion vectors. Without it, the highest that ``lake.readers`` read.
        write_mode: ``merge_on_read`` marks replaced rows as deleted; ``copy_on_write`` writes files again without them. Without it, what
            ``lake.readers`` need.
    """

    partition_by: Annotated[tuple[str, ...], AfterValidator(_check_partitions)] = Field(
        default=(), description='list of transforms, for example ["day(created)", "bucket(16, id)"]'
    )
    sort_by: Annotated[tuple[str, ...], AfterValidator(_check_sort)] = Field(
        default=(), description='list of columns, for example ["customer_id", "created DESC NULLS LAST"]'
    )
    properties: Annotated[dict[str, Text], AfterValidator(_refuse_needed)] = Field(
        default_factory=dict, description="Iceberg table properties, for example write.target-file-size-bytes"
    )
    format_version: FormatVersion | None = Field(default=None, description="2 or 3")
    write_mode: WriteMode | None = Field(default=None, description="merge_on_read or copy_on_write")

    def over(self, default: Layout) -> Layout:
        """Return the layout, with the default's format version and write mode where the rule has none."""
        return Layout(
            _each(partition_of, self.partition_by),
            _each(sort_field_of, self.sort_by),
            tuple(sorted(self.properties.items())),
            self.format_version or default.format_version,
            self.write_mode or default.write_mode,
        )
