"""``cdc lake``: the lake tables of a source."""
