"""Compares whole tables: the lake is read in this process, without Spark."""
