"""Snapshots: the current rows of a table, read in chunks by primary key."""
