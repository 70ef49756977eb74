"""Spark jobs on a Spark server: what is sent to it, and what it answers."""
