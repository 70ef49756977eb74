"""Benchmarks of the Spark side: merges into large tables, many small tables, and end to end from the binlog."""
