"""``cdc cursor``: where the cursors of a source are, and moving them."""
