"""All that a store holds, as text, in which tests look for what must not be there."""

from __future__ import annotations

import pyarrow.parquet as pq

from cdc_lib.ports import ObjectStore


def everything(store: ObjectStore) -> str:
    """Return keys, documents as they are, and Parquet files value by value."""
    texts = []
    for info in store.list(""):
        texts.append(info.key)
        with store.open_read(info.key) as data:
            texts.append(
                str(pq.read_table(data).to_pylist()) if info.key.endswith(".parquet") else data.read().decode()
            )
    return "\n".join(texts)
