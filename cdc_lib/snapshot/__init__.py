"""The rows of a table as they are, read by its primary key in chunks."""
