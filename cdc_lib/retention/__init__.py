"""Retention of batches, cuts and raw events, and garbage collection."""
