"""Rows that are read from the source again by their primary keys, because their changes do not suffice."""
