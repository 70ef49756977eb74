"""Reads the batches of a plan as Spark frames of changes."""
