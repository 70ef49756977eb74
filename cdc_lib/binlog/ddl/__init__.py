"""What DDL statements do to the schemas of tables, read from their text."""
