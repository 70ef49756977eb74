"""The schema of every captured table at every position of the binlog, kept in the store."""
