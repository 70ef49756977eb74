"""Compares key ranges of each table with the source in turns, so that each is compared within a period. Without Spark."""
