"""Merges or drains a range of the binlog again: from archived batches, raw events or the server."""
