"""The schema history: the schema of every captured table at every binlog position, kept in the store."""
