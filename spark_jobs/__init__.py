"""Spark jobs: merge, backfill, maintain, verify."""
