"""``cdc consumers``: who reads the batches of a source."""
