"""``cdc schema``: schema changes that wait for a person."""
