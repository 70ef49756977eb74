"""Asks the source which keys of the lake lie in a range that a snapshot read."""

from __future__ import annotations

import pyarrow as pa

from cdc_lib.errors import MergeError
from cdc_lib.merge.key_ranges import ReadRange
from spark_jobs.merging.source_rows import Origin


def keys_in_range(origin: Origin | None, max_keys: int, read_range: ReadRange, keys: pa.Table) -> pa.Table:
    """Return the keys that lie in a range by the source's order.

    Args:
        origin: opens the source; None without access to it.
        max_keys: most keys that the source is asked for.
        read_range: the range.
        keys: as the lake holds them.

    Raises:
        MergeError: there are too many keys or no access to the source.
        SourceError: the source does not answer.
    """
    if origin is None or keys.num_rows > max_keys:
        why = "nobody can (reselect.mode)" if origin is None else f"they are more than {max_keys} (reselect.max_keys)"
        raise MergeError(
            f"which rows of {read_range.selection.text} were deleted must be asked of the source, and {why}",
            hint="Change that, or give the snapshot up (cdc snapshot {source} --cancel {table}) and take the whole table.",
            table=read_range.schema.name,
        )
    schema = read_range.schema
    return (
        origin()
        .keys_in_range(schema, read_range.selection, keys.rename_columns(list(schema.primary_key)))
        .rename_columns(keys.column_names)
    )
