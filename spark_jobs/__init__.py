"""The Spark jobs, each run by name: merge, backfill, maintain, verify."""
