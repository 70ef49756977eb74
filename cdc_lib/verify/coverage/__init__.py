"""Compares the rows that a merge changed with the source, by their keys, after its cut is published. Without Spark."""
