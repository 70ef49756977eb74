"""``cdc batches``: what drained windows left in the store."""
